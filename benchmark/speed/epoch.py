"""How long does an epoch of training take, and where does the time go? One command, two kinds of tables.

The default GIC, the same with one component, the paper's network (K = C = 7), and GIN and PNA, all of three layers of 128
channels behind the same encoder. Batches are cut out of the data set as part of the epoch; receptive fields of the input
graphs are computed before it, once. All networks take turns in every round, and medians are compared.
"""

import time
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from tqdm import tqdm

from ..common.command import add_data_arguments, make_parser, parse, print_table
from ..common.measure import describe_machine, median_times
from ..common.training import Recipe, loss_of, train
from ..graphs.data import load_graphs
from ..graphs.networks import NETWORKS, Shape, field_settings

BASE = "GIN"  # what all others are compared with
CONTENDERS = ["GIC", "GIC, C = 1", "GIC.as_printed", BASE, "PNA"]
SHAPE = Shape(width=128)
QUICK_GRAPHS, QUICK_ROUNDS = 64, 1
STAGES = {  # by the beginning of the name of an operation, the outermost counts
    "batches": ("batches",),
    "optimiser": ("Optimizer.step", "Optimizer.zero_grad"),
    "fields of coarse graphs": ("torch_gic::adjacency_powers",),
    "encoding": ("torch_gic::gaussian_encode", "GeneratedBackwardFor_torch_gic_gaussian_encode"),
    "coarsening": tuple(f"torch_gic::{name}" for name in ("undirected", "structural", "merge", "move", "vigmm", "responsib")),
    "products": ("aten::mm", "aten::addmm"),
}


def epochs(args):
    """An epoch of each network as a function without arguments, by name."""
    graphs = load_graphs(args, args.dataset)
    chosen = torch.arange(graphs.y.numel())[: QUICK_GRAPHS if args.quick else None]
    graphs.scale(chosen)
    return {name: epoch(name, graphs, chosen, args.batch_size) for name in CONTENDERS}


def epoch(name, graphs, chosen, batch_size):
    torch.manual_seed(0)
    model = NETWORKS[name](graphs, chosen, SHAPE)

    def batches():
        for part in chosen[torch.randperm(chosen.numel())].split(batch_size):
            with record_function("batches"):
                batch = graphs.batch(part)
            yield batch

    def loss(data):
        return loss_of(model(data), data.y, graphs.metric), data.size

    def run():
        graphs.use_fields(settings)  # kept from the first time on, as long as the next network has the same
        train(model, batches, loss, lambda: (0.0, 0.0), Recipe(epochs=1))

    settings = field_settings(model)
    return run


def stages(run):
    """Seconds of each stage of an epoch; the rest is normalisation, activations, readout, loss, and Python itself."""
    start = time.perf_counter()
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        run()
    seconds, total = Counter(), time.perf_counter() - start
    for event in profiled.events():
        stage, node = None, event
        while node is not None:
            stage = next((name for name, starts in STAGES.items() if node.name.startswith(starts)), stage)
            node = node.cpu_parent
        if stage is not None:
            seconds[stage] += event.self_cpu_time_total / 1e6
    return {**{stage: seconds[stage] for stage in STAGES}, "the rest": total - sum(seconds.values())}


def parse_args():
    parser = make_parser("speed.epoch", __doc__)
    parser.add_argument("--dataset", help="name in the TU collection (default: NCI1, or MUTAG with --quick)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="epochs of each, after one to warm up (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=100, help="graphs per batch (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help=f"to see that it works: one round, {QUICK_GRAPHS} graphs at most")
    add_data_arguments(parser)
    args = parse(parser, {"threads": 1, "rounds": QUICK_ROUNDS}, "rounds")
    args.dataset = args.dataset or ("MUTAG" if args.quick else "NCI1")
    return args


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    calls = epochs(args)
    with tqdm(total=args.rounds + 1, unit="round") as progress:
        median = median_times(calls, args.rounds, progress)
    rows = [[name, f"{time / 1000:.2f} s", f"{time / median[BASE]:.2f}"] for name, time in median.items()]
    print(", ".join(f"{key} {value}" for key, value in describe_machine().items()))
    graphs = f"{QUICK_GRAPHS} graphs at most" if args.quick else "all graphs"
    print(f"threads {args.threads}, batches of {args.batch_size}, {graphs}")
    print_table(f"{args.dataset}: an epoch", ["", "time", f"times {BASE}"], rows)
    for name in [name for name in calls if name.startswith("GIC")]:
        parts = stages(calls[name])
        total = sum(parts.values())
        rows = [[stage, f"{seconds:.2f} s", f"{100 * seconds / total:.0f} %"] for stage, seconds in parts.items()]
        print_table(f"{name}: where the time goes (with a profiler running, which slows it)", ["", "time", "share"], rows)


if __name__ == "__main__":
    main()
