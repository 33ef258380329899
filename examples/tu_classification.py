"""Ten-fold graph classification with the GIC network on any TUDataset, such as MUTAG.

PyG downloads the data set, or takes NAME.zip from --data-url. Vertex attributes are the one-hot label and the degree (scaled
to zero mean and unit variance on the training graphs), or the degree alone where there are no labels. Each finished fold is
written to the results file, and a run that is started again goes on from there.

Two figures are printed, which must not be mixed: `paper` takes the best test epoch of every fold (optimistic: the test
graphs choose it), `gin` the one epoch with the best mean over the folds. Neither is fit for claims of being better.
"""

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree
from tqdm import tqdm

from torch_gic import GIC, ReceptiveFields
from torch_gic.nn.architecture import DEFAULT


def load(args):
    if args.data_url:
        TUDataset.url = args.data_url.rstrip("/")
    try:
        return TUDataset(args.root / f"scales{args.num_scales}", args.dataset, pre_transform=ReceptiveFields(args.num_scales))
    except Exception as error:  # PyG and the file systems behind it raise what they like
        raise SystemExit(
            f"Could not get {args.dataset} from {TUDataset.url}: {error}\n"
            "Check the name and the network, or give the folder of its zip file: --data-url file:///path/to/folder"
        ) from error


def stratified_folds(y, num_folds, seed):
    """The fold of each graph: every class spread evenly over the folds."""
    generator, fold = np.random.default_rng(seed), np.empty(len(y), dtype=int)
    for label in np.unique(y):
        members = generator.permutation(np.flatnonzero(y == label))
        fold[members] = np.arange(len(members)) % num_folds
    return fold


def attributes(dataset, training):
    """All graphs with their attributes; the degree is scaled by the training graphs alone."""
    graphs = list(dataset)
    degrees = [degree(graph.edge_index[1], graph.num_nodes) for graph in graphs]
    known = torch.cat([d for d, train in zip(degrees, training, strict=True) if train])
    for graph, d in zip(graphs, degrees, strict=True):
        scaled = ((d - known.mean()) / known.std().clamp(min=1e-6)).unsqueeze(1)
        graph.x = scaled if dataset.num_node_labels == 0 else torch.cat([graph.x, scaled], dim=1)
    return graphs


def run_fold(job):
    """Trains on all folds but one; returns the test accuracy after every epoch."""
    args, number = job
    torch.set_num_threads(1)
    torch.manual_seed(args.seed + number)
    dataset = load(args)
    training = stratified_folds(dataset.y.numpy(), args.folds, args.seed) != number
    graphs = attributes(dataset, training)
    train_loader = DataLoader([g for g, t in zip(graphs, training, strict=True) if t], args.batch_size, shuffle=True)
    test_loader = DataLoader([g for g, t in zip(graphs, training, strict=True) if not t], args.batch_size)
    model = GIC(graphs[0].num_features, dataset.num_classes, args.architecture, args.num_scales, args.num_components)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)

    def predict(data):
        return model(data.x, data.edge_index, batch=data.batch, fields=(data.field_index, data.field_weight))

    start, curve = time.perf_counter(), []
    for _ in range(args.epochs):
        model.train()
        for data in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(predict(data), data.y).backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            correct = sum(int((predict(data).argmax(dim=1) == data.y).sum()) for data in test_loader)
        curve.append(correct / len(test_loader.dataset))
    return number, {"accuracy": curve, "seconds": round(time.perf_counter() - start, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--dataset", default="MUTAG", help="name in the TU collection")
    parser.add_argument("--root", type=Path, default=Path("data"), help="where PyG keeps the data")
    parser.add_argument("--data-url", help="folder with NAME.zip, as http(s):// or file:// (default: PyG's own)")
    parser.add_argument("--architecture", default=DEFAULT)
    parser.add_argument("--num-scales", type=int, default=7)
    parser.add_argument("--num-components", type=int, default=7)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="folds that run at the same time, each on one core")
    parser.add_argument("--results", type=Path, help="file of finished folds (default: results/DATASET.json)")
    args = parser.parse_args()

    load(args)
    path = args.results or Path("results") / f"{args.dataset}.json"
    config = {name: str(value) for name, value in vars(args).items() if name not in ("root", "data_url", "jobs", "results")}
    results = json.loads(path.read_text()) if path.exists() else {"config": config, "folds": {}}
    if results["config"] != config:
        raise SystemExit(f"{path} holds folds of other settings: name another file with --results, or delete it")
    missing = [(args, number) for number in range(args.folds) if str(number) not in results["folds"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool, tqdm(total=args.folds, unit="fold") as progress:
        progress.update(args.folds - len(missing))
        for number, result in pool.imap_unordered(run_fold, missing):
            results["folds"][str(number)] = result
            path.write_text(json.dumps(results))
            progress.update()
            progress.set_postfix_str(f"fold {number}: best {max(result['accuracy']):.1%}")

    curves = 100 * np.array([fold["accuracy"] for fold in results["folds"].values()])
    best, epoch = curves.max(axis=1), curves.mean(axis=0).argmax()
    common = curves[:, epoch]
    seconds = sum(fold["seconds"] for fold in results["folds"].values())
    print(f"\n{args.dataset}: {len(curves)} folds, {args.epochs} epochs, {seconds / 60:.1f} minutes of one core")
    print(f"paper  {best.mean():.2f} ± {best.std():.2f}   best test epoch of each fold (optimistic)")
    print(f"gin    {common.mean():.2f} ± {common.std():.2f}   epoch {epoch + 1}, the best mean over the folds")


if __name__ == "__main__":
    main()
