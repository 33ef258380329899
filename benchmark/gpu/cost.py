"""What the GPU kernels cost at least, on paper: bytes and flops of a field entry, and the roofline bound they give.

Nothing is measured here. Bytes are those between memory and processor. At best, all that is read several times comes from a
cache after the first time. At worst, every entry fetches the data of its member from memory.
"""

import math
from itertools import product
from typing import NamedTuple

from ..common.command import make_parser, print_table
from ..common.layers import COMPONENTS, SCALES

# By the data sheets of NVIDIA: bytes/s; flops/s without matrix units, and of these for dense products in three TF32 parts.
DEVICES = {
    "A100 80GB SXM": {"memory": 2.039e12, "fp32": 19.5e12, "fp64": 9.7e12, "tf32x3": 156e12 / 3},
    "H100 SXM": {"memory": 3.35e12, "fp32": 67e12, "fp64": 34e12, "tf32x3": 494.5e12 / 3},
}
SORT = 4 * 2 * 12  # a radix sort reads and writes 32-bit keys and 64-bit places once for each of four bytes
FLOAT, DOUBLE, INDEX = 4, 8, 8


class Cost(NamedTuple):
    best: float  # bytes
    worst: float
    flops: float
    unit: str


def encoding(d, n, components):
    """Costs of a field entry, in fields of n entries, of members that are in n fields. One component needs no distances."""
    rows = SCALES * components
    distances = rows if components > 1 else 0
    field = FLOAT * rows * 2 * (d + 1) / n  # encoding and masses, or the gradient of the encoding
    entry = INDEX + FLOAT * SCALES  # member, weights
    member = FLOAT * (d + distances)  # features and distances, or what is added to their gradients
    products = 2 * 2 * rows * d  # of both moments
    logits = field + entry + FLOAT * (distances + SCALES)
    features = field + entry + FLOAT * d
    members = member + INDEX + member / n
    filters = 2 * rows * 2 * d * 2 * d / n
    costs = {
        "forward": Cost(field + entry + member / n, field + entry + member, products, "tf32x3"),
        "backward, mixture": Cost(2 * field, 2 * field, 10 * rows * d / n, "fp32"),
        "backward, logits": Cost(logits + member / n, logits + member, products, "tf32x3"),
        "backward, features": Cost(features + member / n, features + member, products, "tf32x3"),
        "backward, sorting": Cost(SORT, SORT, 0, "fp32"),
        "backward, members": Cost(members, members, d + distances, "fp32"),
    }
    if distances > 0:  # by operations of PyTorch, each of which reads and writes: counted one after the other
        there, back = (44 * d + 76 * rows) / n, (140 * d + 60 * rows) / n
        costs["distances, both directions"] = Cost(2 * there, 2 * there, 2 * products / n, "fp64")
        costs["backward, distances"] = Cost(back, back, 2 * products / n, "fp64")
    return costs | {f"filter product, {d} to {2 * d}": Cost(field, field, filters, "fp32")}


def coarse(degree, n):
    """Costs of a pair of nodes and a scale, and of a node, a cluster and an iteration."""
    pair, state = 2 * INDEX + 2 * DOUBLE, (2 + 2 + 3) * DOUBLE  # products, sums, responsibilities
    bisection = degree * (INDEX * math.ceil(math.log2(n + 1)) + 2 * DOUBLE + INDEX)
    return {
        "fields, a scale": Cost(pair, pair + bisection, 2 * degree, "fp64"),
        "soft EM, an iteration": Cost(state, state + degree * DOUBLE, 2 * degree + 6 + 2 * 20, "fp64"),
    }


def rounds(ratio):
    """Costs of a pair of nodes in a round of merging or moving, which keep this share of the nodes as clusters. Links of
    merging are read twice, those of moving read and cleared, and read and written where there is an edge. Sums by rank compare
    all pairs: two of them in merging, five in moving, beside two sums over the members of each cluster."""
    return {
        "merging, a round": Cost(0, 2 * DOUBLE, 1 + 9 + 2, "fp64"),
        "moving, a round": Cost(0, 2 * DOUBLE * ratio, 10 * ratio + 5 + 2, "fp64"),
    }


def bounds(cost, peaks):
    """The least time of a million, in microseconds, at best and at worst."""
    return [1e12 * max(number / peaks["memory"], cost.flops / peaks[cost.unit]) for number in (cost.best, cost.worst)]


def print_costs(title, costs):
    rows = []
    for name, cost in costs.items():
        cells = [name, f"{cost.best:.0f} to {cost.worst:.0f}", f"{cost.flops:.0f} {cost.unit}"]
        for peaks in DEVICES.values():
            low, high = bounds(cost, peaks)
            limit = "compute" if cost.flops / peaks[cost.unit] > cost.worst / peaks["memory"] else "memory"
            cells.append(f"{low:.{low < 10:d}f} to {high:.{high < 10:d}f} ({limit})")
        rows.append(cells)
    print_table(title, ["", "bytes", "flops", *(f"{name}, us for 10^6" for name in DEVICES)], rows)


def print_training_step(costs):
    """Forward and backward of the encoding, beside the filter product: one forward, two backward."""
    *kernels, filters = costs.values()
    for name, peaks in DEVICES.items():
        low, high = (sum(times) for times in zip(*(bounds(cost, peaks) for cost in kernels), strict=True))
        whole = 3 * bounds(filters, peaks)[0]
        shares = f"{100 * low / whole:.0f} to {100 * high / whole:.0f} % of the filter product's {whole:.0f} us"
        print(f"A training step on {name}: {low:.0f} to {high:.0f} us for 10^6 entries, {shares}")


def main():
    parser = make_parser("gpu.cost", __doc__)
    parser.add_argument("--entries", type=float, default=22, help="of a field (default: 22, as in NCI1)")
    parser.add_argument("--degree", type=float, default=3, help="of a node, its self-loop counted (default: 3, as in NCI1)")
    parser.add_argument("--quick", action="store_true", help="changes nothing: it takes a second")
    args = parser.parse_args()
    for d, components in product((64, 128), (COMPONENTS, 1)):
        title = f"A field entry: d = {d}, K = {SCALES}, C = {components}, {args.entries:g} entries per field, float32"
        costs = encoding(d, args.entries, components)
        print_costs(title, costs)
        if components > 1:
            print_training_step(costs)
    title = f"A pair, or a node and a cluster: degree {args.degree:g}, {args.entries:g} entries per field, float64"
    print_costs(title, coarse(args.degree, args.entries))
    title = "A pair of nodes of one graph, half of which remain, float64; one graph per multiprocessor"
    print_costs(title, rounds(0.5))


if __name__ == "__main__":
    main()
