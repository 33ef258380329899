"""Explainers see the edges of a layer by their weights; what cannot be explained, or hooked, says so."""

import pytest
import torch
from conftest import random_graph
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer, PGExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.explain.metric import fidelity, unfaithfulness
from torch_geometric.nn import GCNConv, TopKPooling

from torch_gic import GIC, GICConv, ReceptiveFields, VIGMMPool

NODES = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}


class Net(torch.nn.Module):
    def __init__(self, first=GICConv):
        super().__init__()
        torch.manual_seed(0)
        self.conv1, self.conv2 = first(5, 8), GICConv(8, 3)

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def graph():
    """Two graphs side by side, of 40 nodes each: what is in one cannot matter to the other."""
    data = random_graph(40, 60, dtype=torch.float32)
    return torch.cat([data.x, data.x.flip(0)]), torch.cat([data.edge_index, data.edge_index + 40], dim=1)


@pytest.mark.parametrize(
    "module", [lambda: GICConv(5, 3), lambda: GIC(5, 3, "C(4)-C(4)"), lambda: GIC(5, 3, "C(4)-P(0.5)-C(4)-P(0.5)-C(4)-P")]
)
@pytest.mark.parametrize("apply_sigmoid", [False, True])
def test_a_mask_is_a_factor_of_the_weights(module, apply_sigmoid):
    torch.manual_seed(0)
    model, (x, edge_index) = module().eval(), graph()
    whole = model(x, edge_index)
    mask = torch.rand(edge_index.size(1), requires_grad=True)
    set_masks(model, mask, edge_index, apply_sigmoid)
    masked = model(x, edge_index)
    masked.sum().backward()
    clear_masks(model)
    weight = torch.where(edge_index[0] != edge_index[1], mask.sigmoid() if apply_sigmoid else mask, 1)
    torch.testing.assert_close(masked, model(x, edge_index, weight))
    assert not torch.allclose(masked, whole, atol=1e-3)
    assert (mask.grad != 0).float().mean() > 0.8
    assert torch.equal(model(x, edge_index), whole)


def without_edges(edge_index):
    """But for loops, which are no edges between nodes and have no mask."""
    return edge_index[:, edge_index[0] == edge_index[1]]


def test_no_edge_and_all_edges():
    model, (x, edge_index) = Net().eval(), graph()
    alone = model(x, without_edges(edge_index))
    for value, expected in ((0.0, alone), (1.0, model(x, edge_index))):
        set_masks(model, torch.full((edge_index.size(1),), value), edge_index, apply_sigmoid=False)
        torch.testing.assert_close(model(x, edge_index), expected)
        clear_masks(model)


@pytest.mark.parametrize("first", [GICConv, GCNConv])
def test_gnn_explainer_finds_the_edges_that_count(first):
    x, edge_index = graph()
    model = Net(first).eval()
    explainer = Explainer(model, GNNExplainer(epochs=20), "model", NODES, node_mask_type="attributes", edge_mask_type="object")
    explanation = explainer(x, edge_index, index=0)
    assert explanation.edge_mask[edge_index[0] >= 40].abs().max() == 0
    assert explanation.edge_mask[edge_index[0] < 40].max() > 0
    assert unfaithfulness(explainer, explanation) > 0


def test_fidelity_tells_the_truth():
    """Without the edges that an explanation names, the prediction changes; with nothing named, it cannot."""
    x, edge_index = graph()
    model = Net().eval()
    explainer = Explainer(model, GNNExplainer(epochs=1), "model", NODES, edge_mask_type="object", node_mask_type=None)
    explanation = explainer(x, edge_index)
    explanation.edge_mask = torch.ones(edge_index.size(1))
    prediction, alone = model(x, edge_index).argmax(dim=1), model(x, without_edges(edge_index)).argmax(dim=1)
    positive, negative = fidelity(explainer, explanation)
    assert positive == pytest.approx(float((prediction != alone).float().mean()))
    assert positive > 0
    assert negative == 0


GRAPHS = NODES | {"task_level": "graph"}


@pytest.mark.filterwarnings("ignore:Input Tensor")  # in Captum
@pytest.mark.parametrize("algorithm", [lambda: GNNExplainer(epochs=5), lambda: CaptumExplainer("Saliency")])
def test_edges_before_a_pooling(algorithm):
    """Two graphs in one: what is in the second cannot matter to a readout of the first, also behind coarsening."""
    if isinstance(algorithm(), CaptumExplainer):
        pytest.importorskip("captum")

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.gic = GIC(5, 3, "C(4)-P(0.5)-C(4)-P")

        def forward(self, x, edge_index):
            return self.gic(x, edge_index, batch=torch.arange(80) // 40)[:1]

    (x, edge_index), masks = graph(), {"node_mask_type": "attributes", "edge_mask_type": "object"}
    explainer = Explainer(First().eval(), algorithm(), "model", GRAPHS, **masks)
    mask = explainer(x, edge_index).edge_mask
    first, loop = edge_index[0] < 40, edge_index[0] == edge_index[1]
    assert mask[~first].abs().max() == 0
    assert (mask[first & ~loop] != 0).float().mean() > 0.8


def test_unfaithfulness_tells_the_truth():
    """All edges: nothing is lost. No edge: as much as the prediction changes."""
    x, edge_index = graph()
    model = Net().eval()
    explainer = Explainer(model, GNNExplainer(epochs=1), "model", NODES, edge_mask_type="object", node_mask_type=None)
    explanation = explainer(x, edge_index)
    explanation.edge_mask = torch.ones(edge_index.size(1))
    assert unfaithfulness(explainer, explanation) == pytest.approx(0, abs=1e-6)
    explanation.edge_mask = torch.zeros(edge_index.size(1))
    whole, alone = (model(x, edges).detach().softmax(dim=-1) for edges in (edge_index, without_edges(edge_index)))
    lost = 1 - torch.exp(-torch.nn.functional.kl_div(whole.log(), alone, reduction="batchmean"))
    assert lost > 0.01
    assert unfaithfulness(explainer, explanation) == pytest.approx(float(lost), rel=1e-3)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # in PyG
def test_pg_explainer():
    x, edge_index = graph()
    model = Net().eval()
    explainer = Explainer(model, PGExplainer(epochs=2), "phenomenon", NODES, edge_mask_type="object")
    target = model(x, edge_index).argmax(dim=1)
    for epoch in range(2):
        explainer.algorithm.train(epoch, model, x, edge_index, target=target, index=torch.tensor([0]))
    mask = explainer(x, edge_index, target=target, index=0).edge_mask
    assert mask.max() > 0
    assert mask.unique().numel() > 2


@pytest.mark.filterwarnings("ignore:Input Tensor")  # in Captum
@pytest.mark.parametrize("method", ["IntegratedGradients", "Saliency"])
def test_captum(method):
    pytest.importorskip("captum")
    x, edge_index = graph()
    explainer = Explainer(
        Net().eval(), CaptumExplainer(method), "model", NODES, node_mask_type="attributes", edge_mask_type="object"
    )
    explanation = explainer(x, edge_index, index=0)
    assert (explanation.edge_mask != 0).any()
    assert (explanation.node_mask != 0).any()


def test_what_cannot_be_explained_says_so():
    data = ReceptiveFields()(random_graph(dtype=torch.float32))
    conv, pool, top = GICConv(5, 3), VIGMMPool(None, 0.5), TopKPooling(5)
    for module in (conv, pool, top):
        set_masks(module, torch.ones(data.num_edges), data.edge_index)
    with pytest.raises(ValueError, match="no 'fields' for a layer that is explained: they were made without the edge mask"):
        conv(data.x, data.edge_index, fields=data.fields)
    with pytest.raises(ValueError, match="got a sparse one"):
        conv(data.x, data.edge_index.new_zeros(12, 12).float().to_sparse_csr())
    out = pool(data.x, data.edge_index)
    with pytest.raises(ValueError, match="the 'edge_weight' of the pooling, which holds the edge mask"):
        conv(out.x, out.edge_index)
    x, edge_index, *_ = top(data.x, data.edge_index)
    loops = torch.stack([data.edge_index[0]] * 2)  # as many edges, but others
    for other in (edge_index, loops):
        with pytest.raises(ValueError, match=r"the \d+ edges that are explained .got \d+, others.; edges behind a pooling"):
            conv(x, other)
    conv._edge_mask = None
    with pytest.raises(NotImplementedError, match="no messages that GraphMaskExplainer could replace"):
        conv(data.x, data.edge_index)


@pytest.mark.parametrize("kind", ["propagate", "message", "aggregate", "message_and_aggregate", "edge_update"])
@pytest.mark.parametrize("when", ["pre_", ""])
def test_hooks_that_nobody_would_call_are_refused(kind, when):
    with pytest.raises(NotImplementedError, match="GICConv sends no messages, and would never call this hook"):
        getattr(GICConv(5, 3), f"register_{kind}_forward_{when}hook")(print)
