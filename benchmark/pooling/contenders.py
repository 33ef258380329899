"""The contenders of the pooling benchmark: each takes one graph to a cluster number for every node.

All are asked for C = ceil(n / 4) clusters of a graph of n nodes. Graclus, NDP and k-MIS have a number of their own; TopK
drops nodes and has no partition at all. Packages that are not part of torch_gic are optional.
"""

import importlib.util
import math
import warnings
from importlib import metadata

import numpy as np
import torch
from torch_geometric.nn import GCNConv
from torch_geometric.utils import coalesce, get_laplacian, to_dense_adj, to_scipy_sparse_matrix

from torch_gic import VIGMMPool

RATIO = 0.25
STEPS, RATE, HIDDEN = 200, 0.01, 64  # of the fit of the trained ones

PACKAGES = {"pymetis": "pymetis", "sklearn": "scikit-learn", "tgp": "torch-geometric-pool", "torch_cluster": "torch-cluster"}
DENSE = {"mincut": "MinCutPooling", "dmon": "DMoNPooling", "diffpool": "DiffPool", "justbalance": "JustBalancePooling"}
TRAINED = list(DENSE)
OWN_COUNT = ["graclus", "ndp", "kmis"]
NEEDS = {
    "metis": ["pymetis"],
    "spectral": ["sklearn"],
    "graclus": ["tgp", "sklearn", "torch_cluster"],
    **{name: ["tgp", "sklearn"] for name in ("ndp", "kmis", "topk", *DENSE)},  # tgp imports it
}


def available(names):
    """Those of the contenders whose packages are installed."""
    return [name for name in names if all(importlib.util.find_spec(package) for package in NEEDS.get(name, []))]


def versions():
    """Of the packages, for the record; None of those that are missing."""
    return {name: metadata.version(name) if importlib.util.find_spec(module) else None for module, name in PACKAGES.items()}


def print_missing():
    for package, install in PACKAGES.items():
        if importlib.util.find_spec(package) is None:
            without = ", ".join(name for name, needs in NEEDS.items() if package in needs)
            print(f"{install} is not installed: {without} left out (pip install {install})")


def set_threads(threads):
    """For torch, and for the linear algebra of scikit-learn, which does not ask torch."""
    torch.set_num_threads(threads)
    if importlib.util.find_spec("sklearn"):
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, user_api="blas")


def num_clusters(graph):
    return math.ceil(RATIO * graph.num_nodes)


def vigmm(graph, **settings):
    """With a constant influence h: what the edges alone give."""
    x = torch.ones(graph.num_nodes, 1)
    return VIGMMPool(None, RATIO, **settings)(x, graph.edge_index).select.cluster_index


def random(graph):
    """Clusters of equal size without any look at the edges: what every method has to beat."""
    return torch.randperm(graph.num_nodes) % num_clusters(graph)


def metis_adjacency(graph):
    import pymetis

    row, col = graph.edge_index.numpy()
    starts = np.zeros(graph.num_nodes + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=graph.num_nodes), out=starts[1:])
    return pymetis.CSRAdjacency(starts, col[np.argsort(row, kind="stable")].astype(np.int32))


def metis_parts(adjacency, count):
    """Recursive bisection with METIS's default options. In trials on MUTAG, IMDB-BINARY and a grid it cut less than the k-way
    scheme with these options. It was also faster, and left no cluster empty. A looser balance (ufactor) was not tuned.
    """
    import pymetis

    return pymetis.part_graph(count, adjacency, recursive=True).vertex_part


def metis(graph):
    return torch.tensor(metis_parts(metis_adjacency(graph), num_clusters(graph)), dtype=torch.long)


def spectral(graph):
    from sklearn.cluster import SpectralClustering

    count = num_clusters(graph)
    if count == 1 or graph.num_edges == 0:  # nothing to decide, and no eigenvectors to decide by
        return torch.arange(graph.num_nodes) % count
    affinity = to_scipy_sparse_matrix(graph.edge_index, num_nodes=graph.num_nodes).tocsr()
    model = SpectralClustering(count, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of graphs that are not connected, which its eigenvectors show all the same
        return torch.from_numpy(model.fit_predict(affinity)).long()


def graclus(graph):
    """Matchings of matchings: up to four nodes per cluster."""
    from tgp.select import GraclusSelect

    match = GraclusSelect()
    edge_index, weight = graph.edge_index, torch.ones(graph.num_edges)
    pair = match(edge_index, weight, num_nodes=graph.num_nodes).cluster_index
    edge_index, weight = coalesce(pair[edge_index], weight, reduce="sum")
    between = edge_index[0] != edge_index[1]
    return match(edge_index[:, between], weight[between], num_nodes=int(pair.max()) + 1).cluster_index[pair]


def ndp(graph):
    """Keeps one side of a large cut, about half of the nodes; tgp gives each of the others to the nearest one kept."""
    from tgp.select import NDPSelect

    batch = torch.zeros(graph.num_nodes, dtype=torch.long)  # without it, tgp forgets isolated nodes at the end
    kept = NDPSelect()(graph.edge_index, batch=batch, num_nodes=graph.num_nodes)
    if kept.num_supernodes == 1:  # as in a star, which tgp cannot extend
        return batch
    return kept.assign_all_nodes(graph.edge_index, batch=batch).cluster_index


def kmis(graph):
    """A maximal independent set, nodes of low degree first; each of the others joins a neighbour in it."""
    return tgp_pooler("kmis", 1, None).select(edge_index=graph.edge_index, num_nodes=graph.num_nodes).cluster_index


def tgp_pooler(name, channels, count):
    """A pooler of tgp; `count` is the number of clusters of a dense one."""
    from tgp import poolers

    if name in DENSE:
        return getattr(poolers, DENSE[name])(channels, count)
    makers = {
        "graclus": poolers.GraclusPooling,
        "ndp": poolers.NDPPooling,
        "kmis": lambda: poolers.KMISPooling(scorer="constant"),  # the default is a score to be learnt, random at the start
        "topk": lambda: poolers.TopkPooling(channels, RATIO),
    }
    return makers[name]()


def trained(name, graph):
    """A dense pooler fitted to this one graph by nothing but its own losses, then the likeliest cluster of each node.

    It sees the eigenvectors of the Laplacian that spectral clustering uses, behind a graph convolution: more than its usual
    place in a network would show it. In short trials, one-hot degrees cut more on MUTAG;
    random features cut as little there, but more on REDDIT-BINARY.
    """
    count = num_clusters(graph)
    if count == 1:
        return torch.zeros(graph.num_nodes, dtype=torch.long)
    x, batch = smooth_eigenvectors(graph, count), torch.zeros(graph.num_nodes, dtype=torch.long)
    conv, pool = GCNConv(x.size(1), HIDDEN), tgp_pooler(name, HIDDEN, count)
    optimizer = torch.optim.Adam([*conv.parameters(), *pool.parameters()], lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        out = pool(conv(x, graph.edge_index).relu(), graph.edge_index, batch=batch)
        sum(out.loss.values()).backward()
        optimizer.step()
    return out.so.s.squeeze(0).argmax(dim=1)


def smooth_eigenvectors(graph, count):
    """The `count` eigenvectors of smallest eigenvalue of the normalised Laplacian, of mean square 1."""
    index, weight = get_laplacian(graph.edge_index, normalization="sym", num_nodes=graph.num_nodes)
    matrix = to_dense_adj(index, edge_attr=weight, max_num_nodes=graph.num_nodes)[0]
    return torch.linalg.eigh(matrix)[1][:, :count] * math.sqrt(graph.num_nodes)


PARTITIONS = {
    "vigmm": vigmm,
    "vigmm, soft": lambda graph: vigmm(graph, soft=True),
    "laplacian": lambda graph: vigmm(graph, affinity="laplacian"),
    "random": random,
    "metis": metis,
    "spectral": spectral,
    "graclus": graclus,
    "ndp": ndp,
    "kmis": kmis,
    "mincut": lambda graph: trained("mincut", graph),
    "dmon": lambda graph: trained("dmon", graph),
    "diffpool": lambda graph: trained("diffpool", graph),
    "justbalance": lambda graph: trained("justbalance", graph),
}
