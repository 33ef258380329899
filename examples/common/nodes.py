"""What the examples on PPI and Reddit share: arguments, loading, samplers, scores, and training that resumes."""

import json
import time
from pathlib import Path

import torch
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from tqdm import tqdm

from torch_gic import receptive_fields

from .checkpoint import Checkpoint


def add_arguments(parser, recipes):
    """The arguments of both scripts. What the recipe sets is None, unless it is given."""
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data (default: %(default)s)")
    parser.add_argument("--data-url", help="folder with the zip file, as http(s):// or file:// (default: PyG's own)")
    parser.add_argument("--recipe", choices=list(recipes), default="modern", help="(default: %(default)s)")
    names = {"architecture": str, "num_scales": int, "num_components": int, "max_neighbors": int, "epochs": int}
    for name, kind in {**names, "batch_size": int, "lr": float}.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help="(default: that of the recipe)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and batches (default: %(default)s)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(default: %(default)s)")
    parser.add_argument("--checkpoint", type=Path, help="file to go on from, written after every epoch (default: none)")
    parser.add_argument("--result", type=Path, help="JSON file for the figures (default: none)")


def parse(parser, recipes):
    """The arguments, completed by the recipe."""
    args = parser.parse_args()
    for name, value in recipes[args.recipe].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
        least = 0 if name == "lr" else 1
        if isinstance(value, int | float) and getattr(args, name) < least:
            parser.error(f"Expected --{name.replace('_', '-')} to be at least {least} (got {getattr(args, name)})")
    return args


def load(make, dataset, file, args):
    """A data set of PyG, from `args.data_url` or from where PyG finds it."""
    if args.data_url:
        dataset.url = f"{args.data_url.rstrip('/')}/{file}"
    try:
        return make()
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {dataset.__name__} from {dataset.url}: {error}\n"
            f"Check the network, or give the folder of {file}: --data-url file:///path/to/folder"
        ) from error


def check_sampler():
    if not (WITH_TORCH_SPARSE or WITH_PYG_LIB):
        raise SystemExit(
            "Sampling needs pyg-lib or torch-sparse, and neither is installed; --loader cluster of reddit.py needs none"
        )


def sampled_fields(batch):
    """The receptive fields of a sampled graph, normalised by the walks of the whole graph, which the sample cannot count."""
    counts = batch.walk_count
    return receptive_fields(batch.edge_index, num_nodes=batch.num_nodes, num_scales=counts.size(1), walk_count=counts)


def standardise(parts, training):
    """Brings the features to zero mean and unit variance on the nodes to train on."""
    mean, deviation = training.mean(dim=0), training.std(dim=0).clamp(min=1e-6)
    for part in parts:
        part.x = (part.x - mean) / deviation


def micro_f1(out, y):
    """The F1 score over all decisions. With one label per node, `y: [N]`, it is the accuracy."""
    if y.dim() == 1:
        return float((out.argmax(dim=1) == y).double().mean())
    predicted, wanted = out > 0, y > 0.5
    right = int((predicted & wanted).sum())
    return 2 * right / max(int(predicted.sum()) + int(wanted.sum()), 1)


def train(args, model, loader, loss, evaluate):
    """Trains with AdamW along a cosine and tests once, with the weights of the epoch that validation chooses.

    Args:
        args: The arguments.
        model: The network.
        loader: Gives batches.
        loss: The loss of a batch, and the number of nodes that it is the mean of.
        evaluate: The score of a part, "validation" or "test".
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    settings = {name: value for name, value in vars(args).items() if isinstance(value, str | int | float)}
    settings = {name: value for name, value in settings.items() if name not in ("device", "data_url")}
    checkpoint = Checkpoint(args.checkpoint, settings, model=model, optimizer=optimizer, scheduler=scheduler)
    state = {"epoch": 0, "validation": -1.0, "chosen": 0, "best": {}, "seconds": 0.0, "nodes": 0}
    if args.checkpoint:
        state = checkpoint.load() or state
        if state["epoch"]:
            print(f"Going on from {args.checkpoint} after epoch {state['epoch']}")
    for epoch in range(state["epoch"] + 1, args.epochs + 1):
        model.train()
        start, total = time.perf_counter(), 0.0
        for batch in (progress := tqdm(loader, desc=f"epoch {epoch}/{args.epochs}", unit="batch", leave=False)):
            optimizer.zero_grad()
            value, count = loss(batch.to(args.device))
            value.backward()
            optimizer.step()
            total, state["nodes"] = total + value.item() * count, state["nodes"] + count
            progress.set_postfix_str(f"loss {value.item():.4f}")
        scheduler.step()
        state["seconds"] += time.perf_counter() - start
        model.eval()
        score = evaluate("validation")
        print(f"epoch {epoch}: validation micro-F1 {score:.4f}", flush=True)
        if score > state["validation"]:
            weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
            state.update(validation=score, chosen=epoch, best=weights)
        state["epoch"] = epoch
        if args.checkpoint:
            checkpoint.save(**state)
    model.load_state_dict(state["best"])
    model.eval()
    figures = {"test": evaluate("test"), "validation": state["validation"], "epoch": state["chosen"]}
    figures["nodes per second"] = state["nodes"] / max(state["seconds"], 1e-9)
    print(f"test micro-F1 {figures['test']:.4f}, at epoch {figures['epoch']}, which validation chose", end="")
    print(f" ({figures['validation']:.4f}); {figures['nodes per second']:.0f} nodes per second in training")
    if args.result:
        args.result.parent.mkdir(parents=True, exist_ok=True)
        args.result.write_text(json.dumps({"settings": settings, **figures}, indent=1) + "\n")
