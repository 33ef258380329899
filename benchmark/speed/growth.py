"""How time and memory of the convolution grow with the receptive fields."""

import torch

from torch_gic import Fields, GICConv, receptive_fields

from ..common.measure import exponent, median_times, peak_megabytes
from ..common.tables import print_table
from .layers import COMPONENTS, SCALES

STEP = "training step, 32 to 32"
ENTRIES = [round(10**e) for e in (4, 4.5, 5, 5.5, 6, 6.5, 7)]
MIXTURES = ((1, 8), (COMPONENTS, 8), (COMPONENTS, 64), (COMPONENTS, 256))  # components, channels


def ring(num_entries):
    """The edges of a ring in which the fields of K = 7 scales have 71 entries per node."""
    n = max(72, round(num_entries / 71))
    node, step = torch.arange(n).repeat_interleave(10), torch.tensor([*range(-5, 0), *range(1, 6)]).repeat(n)
    return torch.stack([node, (node + step) % n]), n


def measure_growth(args, results, progress):
    def times(num_entries):
        edge_index, n = ring(num_entries)
        fields = receptive_fields(edge_index, num_nodes=n, num_scales=SCALES)
        x, conv = torch.randn(n, 32, requires_grad=True), GICConv(32, 32, num_scales=SCALES)
        calls = {
            STEP: lambda: conv(x, edge_index, fields=fields).square().mean().backward(),
            "receptive_fields": lambda: receptive_fields(edge_index, num_nodes=n, num_scales=SCALES),
        }
        return {"entries": fields.index.size(1), **median_times(calls, args.rounds, progress)}

    torch.set_num_threads(args.threads[-1])
    points = [results.get(f"growth/{entries}", times, entries) for entries in ENTRIES]
    names = [name for name in points[0] if name != "entries"]
    rows = [[f"{point['entries']}", *(f"{point[name]:.1f} ms" for name in names)] for point in points]
    sizes = [point["entries"] for point in points]
    rows.append(["exponent", *(f"{exponent(sizes, [point[name] for point in points]):.2f}" for name in names)])
    print_table(f"Growth with the number of field entries, threads: {args.threads[-1]}", ["entries", *names], rows)


def measure_entry_memory(args, results, progress):
    """Peak memory per field entry: what a tenfold field of the same nodes adds."""

    def peak(entries, components, channels, n=1000):
        index = torch.stack([torch.randint(n, (entries,)), torch.arange(n).repeat_interleave(entries // n)])
        fields = Fields.from_pair(index, torch.rand(entries, SCALES), (n, n))
        x, conv = torch.randn(n, channels, requires_grad=True), GICConv(channels, 16, components, SCALES, hidden_channels=None)
        return peak_megabytes(lambda: conv(x, index, fields=fields).square().mean().backward())

    def bytes_of_entry(components, channels, small=200_000, large=2_000_000):
        peaks = [peak(entries, components, channels) for entries in (small, large)]
        return None if None in peaks else (peaks[1] - peaks[0]) * 2**20 / (large - small)

    torch.set_num_threads(args.threads[-1])
    rows = []
    for components, channels in MIXTURES:
        label = f"C = {components}, d = {channels}"
        value = results.get(f"entry memory/{label}", bytes_of_entry, components, channels)
        rows.append([label, "-" if value is None else f"{value:.0f} bytes"])
    print_table(f"Peak memory of a training step for each field entry, K = {SCALES}", ["", "memory"], rows)
