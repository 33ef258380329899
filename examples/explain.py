"""Which edges and features decided? A network of GICConv layers, explained by integrated gradients.

In every graph two nodes are marked by their first feature. In half of the graphs an edge joins them, and that is what the
network learns to see. The explainer then gives every edge of a graph a weight, without having been told of marks. The picture
shows a graph; edges are as dark and thick as the explainer thinks they matter. Needs captum, networkx and matplotlib.
"""

import argparse
import importlib.util

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.explain import CaptumExplainer, Explainer
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_max_pool
from torch_geometric.utils import to_networkx, to_undirected
from tqdm import tqdm

from torch_gic import GICConv

NODES, EDGES = 16, 24


def make_graph(joined):
    """A random graph. Marked are the ends of an edge, or two nodes without an edge between them."""
    pairs = torch.combinations(torch.arange(NODES))
    order = torch.randperm(len(pairs))
    edges, others = pairs[order[:EDGES]], pairs[order[EDGES:]]
    marked = (edges if joined else others)[0]
    x = 0.1 * torch.randn(NODES, 4)
    x[marked, 0] += 1
    return Data(x=x, edge_index=to_undirected(edges.t()), y=torch.tensor([int(joined)]), marked=marked)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([GICConv(4, 32), GICConv(32, 32)])
        self.lin = torch.nn.Linear(32, 2)

    def forward(self, x, edge_index, batch=None):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.lin(global_max_pool(x, batch))


def train(model, graphs, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    loader = DataLoader(graphs, batch_size=32, shuffle=True)
    for _ in tqdm(range(epochs), unit="epoch"):
        for batch in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(batch.x, batch.edge_index, batch.batch), batch.y).backward()
            optimizer.step()


def draw(graph, mask, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import networkx as nx

    weight = {}
    for (a, b), value in zip(graph.edge_index.t().tolist(), mask.tolist(), strict=True):
        edge = (min(a, b), max(a, b))
        weight[edge] = max(weight.get(edge, 0), value)
    drawn = nx.Graph(to_networkx(graph, to_undirected=True))
    place = nx.kamada_kawai_layout(drawn)
    figure, axes = plt.subplots(figsize=(6, 5))
    shade = [weight[(min(a, b), max(a, b))] / mask.max().item() for a, b in drawn.edges]
    nx.draw_networkx_edges(
        drawn, place, ax=axes, edge_color=shade, edge_cmap=plt.cm.Reds, edge_vmin=-0.2, width=[1 + 5 * s for s in shade]
    )
    colours = ["tab:orange" if node in graph.marked.tolist() else "lightgrey" for node in drawn.nodes]
    nx.draw_networkx_nodes(drawn, place, ax=axes, node_size=120, node_color=colours, edgecolors="black", linewidths=0.5)
    axes.set_title("Edges that integrated gradients find to matter\n(marked nodes in orange)")
    axes.axis("off")
    figure.tight_layout()
    figure.savefig(file, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40, help="of training (default: %(default)s)")
    parser.add_argument("--graphs", type=int, default=400, help="(default: %(default)s)")
    parser.add_argument("--output", default="explain.png", help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a short training, to see that it works")
    args = parser.parse_args()
    for package in ("captum", "matplotlib", "networkx"):
        if importlib.util.find_spec(package) is None:
            raise SystemExit(f"This example needs {package}: pip install captum matplotlib networkx")
    if args.quick:
        args.epochs, args.graphs = 2, 40
    torch.manual_seed(0)
    graphs = [make_graph(joined=i % 2 == 0) for i in range(args.graphs + 100)]
    test = graphs[args.graphs :]
    model = Net()
    train(model, graphs[: args.graphs], args.epochs)
    model.eval()
    with torch.no_grad():
        right = [int(model(graph.x, graph.edge_index).argmax()) == int(graph.y) for graph in test]
    print(f"test accuracy {100 * sum(right) / len(right):.0f} %")

    task = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    explainer = Explainer(model, CaptumExplainer("IntegratedGradients"), "model", task, edge_mask_type="object")
    found = []
    for graph in tqdm([graph for graph in test if int(graph.y) == 1][:20], unit="graph"):
        mask = explainer(graph.x, graph.edge_index).edge_mask
        strongest = graph.edge_index[:, int(mask.argmax())]
        found.append(torch.equal(strongest.sort().values, graph.marked.sort().values))
        if len(found) == 1:
            draw(graph, mask, args.output)
    print(f"the strongest edge joins the marked nodes in {sum(found)} of {len(found)} graphs; by chance in 1 of {EDGES}")
    print(f"picture: {args.output}")


if __name__ == "__main__":
    main()
