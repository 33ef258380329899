"""All graphs of a data set in a few long tensors: batches are cut out of them, many times as fast as by a DataLoader.

Data sets are of the TU collection, or molecules of MoleculeNet, which need rdkit.
"""

import random
from collections import defaultdict
from importlib.util import find_spec
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import cumsum, degree

from torch_gic import Fields, receptive_fields
from torch_gic.fields.fields import pointers

from ..common.data import load_tu, loading
from ..common.layers import About, pseudo_coordinates

MOLECULES = {"ESOL": "RMSE", "FreeSolv": "RMSE", "Lipo": "RMSE", "BACE": "ROC AUC", "HIV": "ROC AUC"}
TRAINING, VALIDATION = 0.8, 0.1  # shares of the molecules
DEGREE_CLASSES = 32
POSITIONS = {  # how many of the first measured features of a node are its position
    **dict.fromkeys(("Letter-high", "Letter-med", "Letter-low", "COIL-DEL", "Fingerprint"), 2),
    **dict.fromkeys(("Cuneiform", "BZR", "DHFR"), 3),
}
FEATURES = {
    "all": "the one-hot label, the degree and all measured features, or classes of the degree where there are none",
    "labels": "the one-hot label and the degree, as in the paper, or the degree alone where there are no labels",
}


class GraphBatch(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor
    pseudo: Tensor
    fields: Fields | None

    @property
    def size(self):
        return self.y.numel()


class Graphs:
    """The graphs of a data set. `labels` are one-hot, `measured` any numbers; a `metric` says what is predicted."""

    def __init__(self, graphs, labels, measured, y, num_outputs, metric="accuracy", positions=0, features="all", split=None):
        data = Batch.from_data_list(graphs)
        self.num_outputs, self.metric = num_outputs, metric
        self.split = split  # the one that the data set has, or None: ten folds are made
        self.y, self.target_mean, self.target_scale = y, 0.0, 1.0
        self.node_start, self.graph = data.ptr, data.batch
        self.edges = _Pairs(data.edge_index, data.batch, len(graphs))
        self.position = measured[:, :positions] if positions else None
        self.labels = labels
        count = degree(data.edge_index[1], data.num_nodes).unsqueeze(1)
        self.numbers = torch.cat([count, measured], dim=1) if features == "all" else count
        self.classes = features == "all" and labels.size(1) + measured.size(1) == 0
        self.x, self.pseudo, self.fields, self.made = None, None, None, {}

    @property
    def num_features(self):
        return self.labels.size(1) + self.numbers.size(1) + self.classes * DEGREE_CLASSES

    def scale(self, training):
        """Makes the features: numbers get zero mean and unit variance on these graphs, the ones to train on. So does what a
        regression predicts."""
        inside = torch.isin(self.graph, training)
        known = self.numbers[inside]
        scaled = (self.numbers - known.mean(dim=0)) / known.std(dim=0).clamp(min=1e-6)
        classes = [degree_classes(self.numbers[:, 0], known[:, 0])] if self.classes else []
        self.x = torch.cat([self.labels, scaled, *classes], dim=1)
        position = self.position
        if position is not None:
            position = position / position[inside].std().clamp(min=1e-6)
        self.pseudo = pseudo_coordinates(self.edges.index, self.graph.numel(), position)
        if self.metric == "RMSE":
            self.target_mean, self.target_scale = float(self.y[training].mean()), float(self.y[training].std())

    def use_fields(self, settings):
        """Batches have receptive fields from now on, computed once: of so many scales, with or without loops, with a bound.
        None: they have none."""
        if settings is not None and settings not in self.made:
            names = ("num_scales", "add_self_loops", "max_neighbors")
            options = dict(zip(names, settings, strict=True))
            fields = receptive_fields(self.edges.index, num_nodes=self.graph.numel(), **options)
            self.made[settings] = fields, _Pairs(fields.index, self.graph, self.y.size(0))
        self.fields = None if settings is None else self.made[settings]

    def about(self, training):
        inside = torch.isin(self.graph, training)
        return About(torch.bincount(self.numbers[inside, 0].long()), self.pseudo.size(1))

    def sizes(self):
        return self.node_start.diff()

    def mean_size(self, graphs):
        return float(self.sizes()[graphs].double().mean())

    def batch(self, graphs):
        size = self.sizes()[graphs]
        shift = cumsum(size)[:-1] - self.node_start[graphs]
        edge_index, edges = self.edges.take(graphs, shift)
        fields, total = None, int(size.sum())
        if self.fields:
            made, pairs = self.fields
            field_index, positions = pairs.take(graphs, shift)
            # Sorted by node inside each graph, and so in a row of graphs.
            rowptr = pointers(field_index[1], total)
            fields = Fields(field_index, made.weight[positions], rowptr, total, edge_index, made.settings)
        batch = torch.arange(graphs.numel()).repeat_interleave(size)
        y = (self.y[graphs] - self.target_mean) / self.target_scale if self.metric == "RMSE" else self.y[graphs]
        return GraphBatch(self.x[_ranges(self.node_start[graphs], size)], edge_index, batch, y, self.pseudo[edges], fields)

    def batches(self, graphs, batch_size):
        return [self.batch(part) for part in graphs.split(batch_size)]


def degree_classes(degree, known):
    """The class of each degree, one-hot. Each has about as many of the known degrees; none where one degree fills several."""
    bounds = torch.quantile(known[:1_000_000], torch.arange(1, DEGREE_CLASSES) / DEGREE_CLASSES)
    return F.one_hot(torch.bucketize(degree, bounds), DEGREE_CLASSES).to(degree.dtype)


class _Pairs:
    """Pairs of nodes, graph by graph: edges, or members of fields."""

    def __init__(self, index, batch, num_graphs):
        self.index = index
        self.start = cumsum(torch.bincount(batch[index[0]], minlength=num_graphs))

    def take(self, graphs, shift):
        """The pairs of some graphs, whose nodes are renumbered by the shift, and where these pairs stand."""
        count = self.start.diff()[graphs]
        positions = _ranges(self.start[graphs], count)
        return self.index[:, positions] + shift.repeat_interleave(count), positions


def _ranges(start, length):
    """The numbers from each start on, as many as its length says, one range after the other."""
    return torch.arange(int(length.sum())) + (start - cumsum(length)[:-1]).repeat_interleave(length)


def load_graphs(args, name, features="all"):
    """A data set of the TU collection or of MoleculeNet. Graphs without nodes, as Fingerprint has, are left out."""
    if name in MOLECULES:
        graphs, labels, y, split = load_molecules(args, name)
        metric, nothing = MOLECULES[name], labels.new_empty(labels.size(0), 0)
        return Graphs(graphs, labels, nothing, y, 1 if metric == "RMSE" else 2, metric, split=split)
    dataset = load_tu(args, name, use_node_attr=True)
    graphs = [graph for graph in dataset if graph.num_nodes > 0]
    y = torch.cat([graph.y for graph in graphs]).unique(return_inverse=True)[1]  # some classes have only such graphs
    num_nodes = sum(graph.num_nodes for graph in graphs)
    x = torch.cat([graph.x for graph in graphs]) if graphs[0].x is not None else torch.empty(num_nodes, 0)
    measured, labels = x.tensor_split([x.size(1) - dataset.num_node_labels], dim=1)  # as PyG has them
    positions = POSITIONS.get(name, 0)
    return Graphs(graphs, labels, measured, y, int(y.max()) + 1, positions=positions, features=features)


def load_molecules(args, name):
    """Graphs, the kinds of their atoms, targets and the split. What PyG tells of an atom are nine codes, each of which becomes
    one-hot over the codes in use."""
    if find_spec("rdkit") is None:
        raise SystemExit("Molecules need rdkit: pip install rdkit")
    with loading(args, "MoleculeNet", name) as dataset:
        graphs = [graph for graph in dataset(args.root / "MoleculeNet", name) if graph.num_nodes > 0]
    codes = torch.cat([graph.x for graph in graphs])
    labels = torch.cat([F.one_hot(code.unique(return_inverse=True)[1]) for code in codes.t()], dim=1).float()
    y = torch.cat([graph.y for graph in graphs]).squeeze(1)
    split = [torch.tensor(part) for part in scaffold_split([graph.smiles for graph in graphs])]
    return graphs, labels, y if MOLECULES[name] == "RMSE" else y.long(), split


def scaffold_split(smiles):
    """Numbers of the molecules to train on, to choose by and to test with. Molecules of one Bemis-Murcko scaffold stay
    together; the largest groups come first and the rarest scaffolds are tested, so that the test is of new chemistry. Groups
    of one size come in an order by seed 0: files may be sorted by what is predicted, as that of BACE is."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    groups = defaultdict(list)
    for number, text in enumerate(smiles):
        groups[MurckoScaffold.MurckoScaffoldSmiles(smiles=text, includeChirality=False)].append(number)
    parts = [], [], []
    bounds = TRAINING * len(smiles), (TRAINING + VALIDATION) * len(smiles)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    for group in sorted(order, key=len, reverse=True):
        if len(parts[0]) + len(group) <= bounds[0]:
            parts[0].extend(group)
        elif len(parts[0]) + len(parts[1]) + len(group) <= bounds[1]:
            parts[1].extend(group)
        else:
            parts[2].extend(group)
    return parts
