"""All graphs of a data set in a few long tensors: batches are cut out of them, many times as fast as by a DataLoader."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.utils import cumsum, degree

from torch_gic import Fields, ReceptiveFields
from torch_gic.fields.fields import pointers

from .data import load_dataset

DEGREE_CLASSES = 32
ATTRIBUTES = {
    "labels": "the one-hot label and the degree, as in the paper, or the degree alone where there are no labels",
    "classes": f"also the class of the degree, one-hot, of {DEGREE_CLASSES} about equally frequent in the training graphs",
    "all": "also the measured attributes that a data set has, such as ENZYMES (18) and PROTEINS (1)",
}


class GraphBatch(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor
    fields: Fields | None


class Graphs:
    """The graphs, their receptive fields if the data set has them, and their features.

    Features are the one-hot label, the numbers of a node (its degree, and what else was loaded with the data set) and, if
    asked for, the class of its degree.
    """

    def __init__(self, dataset, with_classes=False):
        data = Batch.from_data_list(list(dataset))
        self.num_classes = dataset.num_classes
        self.y = data.y
        self.node_start = data.ptr
        self.edges = _Pairs(data.edge_index, data.batch, len(dataset))
        self.made = Fields.from_dict(data.fields) if "fields" in data else None
        self.fields = _Pairs(self.made.index, data.batch, len(dataset)) if self.made else None
        self.graph = data.batch
        x = torch.empty(data.num_nodes, 0) if data.x is None else data.x
        measured, self.labels = x.tensor_split([x.size(1) - dataset.num_node_labels], dim=1)  # as PyG has them
        self.numbers = torch.cat([degree(data.edge_index[1], data.num_nodes).unsqueeze(1), measured], dim=1)
        self.with_classes = with_classes
        self.x = None

    @property
    def num_features(self):
        return self.labels.size(1) + self.numbers.size(1) + self.with_classes * DEGREE_CLASSES

    def scale(self, training):
        """Makes the features: numbers get zero mean and unit variance on these graphs, the ones to train on."""
        known = self.numbers[torch.isin(self.graph, training)]
        scaled = (self.numbers - known.mean(dim=0)) / known.std(dim=0).clamp(min=1e-6)
        classes = [degree_classes(self.numbers[:, 0], known[:, 0])] if self.with_classes else []
        self.x = torch.cat([self.labels, scaled, *classes], dim=1)

    def sizes(self):
        return self.node_start.diff()

    def mean_size(self, graphs):
        return float(self.sizes()[graphs].double().mean())

    def batch(self, graphs):
        size = self.sizes()[graphs]
        shift = cumsum(size)[:-1] - self.node_start[graphs]
        edge_index, _ = self.edges.take(graphs, shift)
        fields = None
        if self.fields:
            field_index, positions = self.fields.take(graphs, shift)
            # Sorted by node inside each graph, and so in a row of graphs.
            rowptr = pointers(field_index[1], int(size.sum()))
            settings = int(size.sum()), edge_index, self.made.settings
            fields = Fields(field_index, self.made.weight[positions], rowptr, *settings)
        batch = torch.arange(graphs.numel()).repeat_interleave(size)
        return GraphBatch(self.x[_ranges(self.node_start[graphs], size)], edge_index, batch, self.y[graphs], fields)

    def batches(self, graphs, batch_size):
        return [self.batch(part) for part in graphs.split(batch_size)]


def degree_classes(degree, known):
    """The class of each degree, one-hot. Each has about as many of the known degrees; none where one degree fills several."""
    bounds = torch.quantile(known, torch.arange(1, DEGREE_CLASSES) / DEGREE_CLASSES)
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


def load_graphs(args, name, num_scales=None, max_neighbors=None, attributes="labels"):
    """The graphs of a data set, with fields if scales are asked for: these are computed once and kept on disk."""
    options, with_classes = {"use_node_attr": attributes == "all"}, attributes == "classes"
    if num_scales is None:
        return Graphs(load_dataset(args, name, **options), with_classes)
    folder = f"receptive-fields{num_scales}" + (f"-of-{max_neighbors}" if max_neighbors else "")
    fields = ReceptiveFields(num_scales, max_neighbors=max_neighbors)
    return Graphs(load_dataset(args, name, folder, pre_transform=fields, **options), with_classes)
