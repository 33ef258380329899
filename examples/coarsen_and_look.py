"""Draws a graph, its clusters and the coarsened graph, for the kernel that cuts and for the one the paper prints."""

import argparse
from pathlib import Path

import networkx
import torch
from torch_geometric.utils import from_networkx

from torch_gic import VIGMMPool

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


def draw(graph, layout, out, axes, title, colormap):
    fine, coarse = axes
    cluster = out.select.cluster_index
    colors = [colormap(int(c) % colormap.N) for c in cluster]
    inside = [(u, v) for u, v in graph.edges if cluster[u] == cluster[v]]
    between = [(u, v) for u, v in graph.edges if cluster[u] != cluster[v]]
    networkx.draw_networkx_edges(graph, layout, inside, width=2.5, edge_color="0.25", ax=fine)
    networkx.draw_networkx_edges(graph, layout, between, width=1, edge_color="0.75", style="dashed", ax=fine)
    networkx.draw_networkx_nodes(graph, layout, node_size=130, node_color=colors, edgecolors="0.2", ax=fine)
    # A small number on each node tells clusters apart where colours repeat or are printed in grey.
    networkx.draw_networkx_labels(graph, layout, {v: str(int(c)) for v, c in enumerate(cluster)}, font_size=6, ax=fine)
    fine.set_title(title)

    positions = torch.tensor([[float(value) for value in layout[v]] for v in graph.nodes])
    centre = {c: positions[cluster == c].mean(0).tolist() for c in range(out.select.num_clusters)}
    pairs = [(int(u), int(v), float(w)) for (u, v), w in zip(out.edge_index.t(), out.edge_weight, strict=True) if u < v]
    coarse_graph = networkx.Graph()
    coarse_graph.add_nodes_from(centre)
    coarse_graph.add_weighted_edges_from(pairs)
    widths = [1 + 0.5 * weight for _, _, weight in coarse_graph.edges.data("weight")]
    sizes = (60 * torch.bincount(cluster)).clamp(min=150, max=600).tolist()
    networkx.draw_networkx_edges(coarse_graph, centre, width=widths, edge_color="0.55", ax=coarse)
    networkx.draw_networkx_nodes(
        coarse_graph,
        centre,
        node_size=sizes,
        node_color=[colormap(c % colormap.N) for c in centre],
        edgecolors="0.2",
        ax=coarse,
    )
    networkx.draw_networkx_labels(coarse_graph, centre, font_size=7, ax=coarse)
    coarse.set_title(f"{out.select.num_clusters} nodes remain (size: members, width: weight)")
    for ax in axes:
        ax.set_axis_off()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--graph", choices=GRAPHS, default="grid")
    parser.add_argument("--ratio", type=float, default=0.25, help="share of the nodes that remain")
    parser.add_argument("--seed", type=int, default=0, help="of the layout")
    parser.add_argument("--picture", type=Path, default=Path("coarsening.png"))
    args = parser.parse_args()
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("This example draws: pip install matplotlib") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    graph = GRAPHS[args.graph]()
    if args.graph == "grid":
        layout = dict(enumerate(graph.nodes))  # a node of a grid is its coordinates
    else:
        layout = dict(enumerate(networkx.spring_layout(graph, iterations=500, seed=args.seed).values()))
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
        title = f"affinity={affinity!r}: normalised cut {cut:.2f} (cut edges dashed)"
        draw(graph, layout, out, row, title, plt.get_cmap("tab20"))
    figure.tight_layout()
    figure.savefig(args.picture, dpi=110)
    print(f"Drawn in {args.picture}")


if __name__ == "__main__":
    main()
