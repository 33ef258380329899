"""How long does an epoch of training take, and where does the time go? One command, two tables.

The paper's network and the default one on NCI1 with K = C = 7, batches cut out of the data set included, beside the filter
products of the same epoch alone (forward and backward, which no implementation can avoid), the networks of the tables (K = 3,
with one component and with fitted ones) and a GIN of three layers of the same widths. All take turns in every round, and
medians are compared.
"""

import argparse
import statistics
import time
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from tqdm import tqdm

from torch_gic import GIC
from torch_gic.nn.gic_conv import GICConv

from .data import add_data_arguments
from .experiments import Setting
from .graph_networks import NETWORKS
from .graphs import load_graphs
from .measure import describe_machine, print_table
from .tables import GIC_SCALES, OWN_SIZES
from .training import RECIPES, train

SCALES = COMPONENTS = 7
PRODUCTS = "products alone of "
STAGES = {  # by the beginning of the name of an operation, the outermost counts
    "batches": ("batches",),
    "optimiser": ("Optimizer.step", "Optimizer.zero_grad"),
    "fields of coarse graphs": ("torch_gic::adjacency_powers",),
    "encoding": ("torch_gic::encode_moments", "GeneratedBackwardFor_torch_gic_encode_moments"),
    "coarsening": tuple(f"torch_gic::{name}" for name in ("undirected", "structural", "merge", "move", "vigmm", "responsib")),
    "products": ("aten::mm", "aten::addmm"),
}


class Batches:
    """The graphs, with a mark in the profile where batches are made."""

    def __init__(self, graphs):
        self.graphs = graphs

    def batch(self, numbers):
        with record_function("batches"):
            return self.graphs.batch(numbers)


def models(args):
    """Each network with the graphs that it is trained on, whose fields have the scales that it needs."""
    plain, fields, short = (load_graphs(args, args.dataset, scales) for scales in (None, SCALES, GIC_SCALES))
    loops = load_graphs(args, args.dataset, SCALES, add_self_loops=True)
    everything = torch.arange(plain.y.numel())
    for graphs in (plain, fields, short, loops):
        graphs.scale(everything)
    size = (plain.num_features, plain.num_classes)
    setting = Setting("", "GIC", False, 1, num_scales=SCALES, num_components=COMPONENTS)
    made = {
        "GIC, the paper's network": (GIC(*size, GIC.PRINTED, SCALES, COMPONENTS, readout="last", root_weight=False), loops),
        "GIC, default": (NETWORKS["GIC"](fields, everything, setting), fields),
    }
    for name, (scales, components) in OWN_SIZES.items():
        own = setting._replace(num_scales=scales, num_components=components)
        made[f"{name} of the tables, K = {scales}, C = {components}"] = (NETWORKS[name](short, everything, own), short)
    return {**made, "GIN, the same widths": (NETWORKS["GIN"](plain, everything, setting), plain)}


def epoch(model, graphs, recipe):
    return lambda: list(train(model, graphs, torch.arange(graphs.graphs.y.numel()), recipe, 1, seed=0))


def product_shapes(run, model):
    """Of all filter products of an epoch: vertices, encoding, channels."""
    shapes = []

    def record(layer, arguments, out):
        shapes.append((out.size(0), layer.lin.in_channels, layer.out_channels))

    hooks = [m.register_forward_hook(record) for m in model.modules() if isinstance(m, GICConv)]
    run()
    for hook in hooks:
        hook.remove()
    return shapes


def products(shapes):
    """The products alone: the output, and the gradients of the encoding, which mixtures need in the first layer too, and
    of the filter."""
    rows = max(n for n, _, _ in shapes)
    inputs, filters, outputs = {}, {}, {}
    for _, k, m in shapes:
        inputs[k], filters[k, m], outputs[m] = torch.randn(rows, k), torch.randn(m, k), torch.randn(rows, m)

    def run():
        for n, k, m in shapes:
            x, w, grad = inputs[k][:n], filters[k, m], outputs[m][:n]
            x @ w.t()
            grad @ w
            grad.t() @ x

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
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.epoch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="NCI1", help="name in the TU collection (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="epochs of each, after one to warm up (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=100, help="graphs in a batch (default: %(default)s)")
    add_data_arguments(parser)
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"Expected --rounds to be at least 1 (got {args.rounds})")
    return args


def main():
    args = parse_args()
    torch.set_num_threads(args.threads)
    recipe = RECIPES["default"]._replace(batch_size=args.batch_size)
    calls = {}
    torch.manual_seed(0)
    for name, (model, graphs) in models(args).items():
        calls[name] = epoch(model, Batches(graphs), recipe)
        if name.startswith("GIC"):
            calls[PRODUCTS + name] = products(product_shapes(calls[name], model))
    times = {name: [] for name in calls}
    for _ in tqdm(range(args.rounds + 1), unit="round"):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(values[1:]) for name, values in times.items()}
    ratio = {
        name: f"{seconds / median[PRODUCTS + name]:.2f}x" for name, seconds in median.items() if PRODUCTS + name in median
    }
    rows = [[name, f"{seconds:.2f} s", ratio.get(name, "-")] for name, seconds in median.items()]
    machine = ", ".join(f"{key} {value}" for key, value in describe_machine().items())
    print(f"{machine}\nthreads {args.threads}, batches of {args.batch_size}, K = C = {SCALES} if not said otherwise")
    print_table(f"{args.dataset}: an epoch", ["", "time", "of its products"], rows)
    for name in [name for name in calls if name.startswith("GIC")]:
        parts = stages(calls[name])
        total = sum(parts.values())
        rows = [[stage, f"{seconds:.2f} s", f"{100 * seconds / total:.0f} %"] for stage, seconds in parts.items()]
        print_table(f"{name}: where the time goes (with a profiler running, which slows it)", ["", "time", "share"], rows)


if __name__ == "__main__":
    main()
