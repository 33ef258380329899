"""Draws a graph, its clusters and the coarsened graph, for the kernel that cuts and for the one the paper prints."""

import argparse
from pathlib import Path

import networkx
import torch
from torch_geometric.utils import from_networkx

from torch_gic import VIGMMPool
from torch_gic.visualize import plot_clusters, plot_coarse_graph

GRAPHS = {
    "grid": lambda: networkx.grid_2d_graph(8, 8),
    "karate": networkx.karate_club_graph,
    "caveman": lambda: networkx.connected_caveman_graph(6, 6),
    "tree": lambda: networkx.balanced_tree(3, 3),
}


def normalised_cut(edge_index, cluster, num_clusters):
    """The mean over the clusters of links to the rest / all links: 0 for separate parts, 1 if no edge is inside."""
    source, target = cluster[edge_index]
    links = torch.bincount(source[source != target], minlength=num_clusters)
    return float((links / torch.bincount(source, minlength=num_clusters).clamp(min=1)).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--graph", choices=GRAPHS, default="grid")
    parser.add_argument("--ratio", type=float, default=0.25, help="share of the nodes that remain")
    parser.add_argument("--picture", type=Path, default=Path("coarsening.png"))
    args = parser.parse_args()
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("This example draws: pip install matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    graph = GRAPHS[args.graph]()
    pos = torch.tensor(list(graph.nodes)) if args.graph == "grid" else None  # a node of a grid is its coordinates
    graph = networkx.convert_node_labels_to_integers(graph)
    for _, _, attributes in graph.edges.data():
        attributes.clear()
    for _, attributes in graph.nodes.data():
        attributes.clear()
    data = from_networkx(graph)
    x, edge_weight = torch.ones(data.num_nodes, 1), torch.ones(data.num_edges)  # no features: every node counts the same
    figure, axes = plt.subplots(2, 2, figsize=(11, 10))
    for affinity, row in zip(("cut", "laplacian"), axes, strict=True):
        with torch.no_grad():
            out = VIGMMPool(None, args.ratio, affinity)(x, data.edge_index, edge_weight)
        cut = normalised_cut(data.edge_index, out.select.cluster_index, out.select.num_clusters)
        print(f"affinity={affinity!r}: {data.num_nodes} -> {out.select.num_clusters} nodes, normalised cut {cut:.2f}")
        plot_clusters(data.edge_index, out.select.cluster_index, pos=pos, ax=row[0])
        row[0].set_title(f"affinity={affinity!r}: normalised cut {cut:.2f} (cut edges dashed)")
        plot_coarse_graph(data.edge_index, out.select.cluster_index, pos=pos, ax=row[1])
    figure.tight_layout()
    figure.savefig(args.picture, dpi=110)
    print(f"Drawn in {args.picture}")


if __name__ == "__main__":
    main()
