"""Receptive fields: their time beside products of sparse matrices, and how time and memory grow with them."""

import resource

import torch

from torch_gic import Fields, GICConv, receptive_fields
from torch_gic.fields.adjacency_powers import reference as fields_reference

from ..common.command import print_table
from ..common.data import load_batch, power_law
from ..common.layers import COMPONENTS, SCALES
from ..common.measure import exponent, median_times, peak_megabytes, print_ratios, resident_peak

OWN_FIELDS = "receptive_fields"
ENTRIES = [round(10**e) for e in (4, 4.5, 5, 5.5, 6, 6.5, 7)]
MIXTURES = ((1, 8), (COMPONENTS, 8), (COMPONENTS, 64), (COMPONENTS, 256))  # components, channels

SIZES = [round(10**e) for e in (4, 4.5, 5, 5.5, 6)]  # nodes of power-law graphs
QUICK_SIZES = [1000, 2000, 4000]
FEW_AND_MANY = (3, 7)  # scales
MAX_NEIGHBORS = 32
SHORT = 1.0  # seconds; calls are repeated while they take less in all, and the shortest counts


def sparse_powers(edge_index, num_nodes, num_scales, shared=True):
    """The fields by products of `torch.sparse` matrices. Without `shared`, the bare powers are all that is computed."""
    index = torch.cat([edge_index.flip(0), torch.arange(num_nodes).repeat(2, 1)], dim=1)
    adjacency = torch.sparse_coo_tensor(index, torch.ones(index.size(1)), (num_nodes, num_nodes)).to_sparse_csr()
    powers = [adjacency]
    while len(powers) < num_scales:
        powers.append(powers[-1] @ adjacency)
    if not shared:
        return powers
    keys, values = [], []
    for power in powers:
        degrees = (power @ torch.ones(num_nodes, 1)).squeeze(1)
        row, col = power.to_sparse_coo().indices()
        keys.append(row * num_nodes + col)
        values.append(power.values() / degrees[col])
    key, position = torch.unique(torch.cat(keys), return_inverse=True)
    weight = torch.zeros(key.numel(), num_scales)
    for k, part in enumerate(position.split([k.numel() for k in keys])):
        weight[part, k] = values[k]
    return torch.stack([key % num_nodes, key // num_nodes]), weight


def measure_fields(args, results, progress):
    def times(batch):
        edges, n, loops = batch.edge_index, batch.num_nodes, torch.arange(batch.num_nodes)
        row, col = torch.cat([edges[1], loops]), torch.cat([edges[0], loops])
        fields = receptive_fields(edges, num_nodes=n, num_scales=SCALES, add_self_loops=True)
        index, weight = sparse_powers(edges, n, SCALES)
        assert torch.equal(index, fields.index)
        torch.testing.assert_close(weight, fields.weight)
        calls = {
            OWN_FIELDS: lambda: receptive_fields(edges, num_nodes=n, num_scales=SCALES, add_self_loops=True),
            "K = 1": lambda: receptive_fields(edges, num_nodes=n),
            "torch.sparse, same result": lambda: sparse_powers(edges, n, SCALES),
            "torch.sparse, bare powers": lambda: sparse_powers(edges, n, SCALES, shared=False),
            "our reference": lambda: fields_reference(row, col, torch.ones(row.numel()), n, SCALES, None),
        }
        if fields.index.size(1) * batch.num_edges / n > 2e7:  # the steps of all walks at once: minutes
            del calls["our reference"]
        return median_times(calls, args.rounds, progress)

    for name in args.datasets:
        batch, measured = load_batch(args, name), {}
        for threads in args.threads:
            torch.set_num_threads(threads)
            measured[f"threads: {threads}"] = results.get(f"fields/{name}/{threads}", times, batch)
        print_ratios(f"{name}: receptive fields, K = {SCALES}", measured, (OWN_FIELDS,))


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
            "training step, 32 to 32": lambda: conv(x, edge_index, fields=fields).square().mean().backward(),
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


def measure_power_law(size, num_scales):
    graph = power_law(size)

    def call():
        return receptive_fields(graph.edge_index, num_nodes=size, num_scales=num_scales, max_neighbors=MAX_NEIGHBORS)

    times = []
    with resident_peak() as peak:
        while not times or (sum(map(sum, times)) < SHORT and len(times) < 10):
            start = resource.getrusage(resource.RUSAGE_SELF)
            entries = call().index.size(1)
            end = resource.getrusage(resource.RUSAGE_SELF)
            times.append((end.ru_utime - start.ru_utime, end.ru_stime - start.ru_stime))
    own, system = min(times, key=sum)
    memory = {"megabytes": peak["megabytes"], "entries": entries, "edges": graph.num_edges}
    return {"seconds": own, "system seconds": system, **memory}


def print_power_law(args, results):
    sizes = QUICK_SIZES if args.quick else SIZES
    for num_scales in FEW_AND_MANY:
        points = [results.get(f"fields/{num_scales}/{size}", measure_power_law, size, num_scales) for size in sizes]
        rows = [[f"{size}", *_field_cells(point)] for size, point in zip(sizes, points, strict=True)]
        whole = [{**point, "seconds": point["seconds"] + point["system seconds"]} for point in points]
        growth = [_growth(sizes, values, "seconds") for values in (points, whole)]
        rows.append(["exponent", "", "", *growth, _growth(sizes, points, "megabytes")])
        title = f"Fields of a power-law graph, K = {num_scales}, max_neighbors = {MAX_NEIGHBORS}, threads: {args.threads}"
        print_table(title, ["nodes", "edges", "field entries", "time", "with the system's", "memory"], rows)


def _field_cells(point):
    memory = "-" if point["megabytes"] is None else f"{point['megabytes']:.0f} MB"
    times = point["seconds"], point["seconds"] + point["system seconds"]
    return [f"{point['edges']}", f"{point['entries']}", *(f"{1000 * seconds:.0f} ms" for seconds in times), memory]


def _growth(sizes, points, name):
    values = [point[name] for point in points]
    return "-" if None in values or min(values) <= 0 else f"{exponent(sizes, values):.2f}"
