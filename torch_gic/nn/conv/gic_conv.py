"""Gaussian-induced convolution: fields, encoding, filter."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.parameter import Parameter
from torch_geometric.typing import PairTensor, SparseTensor

from torch_gic._checks import check_features
from torch_gic.fields import AnyFields, Fields
from torch_gic.nn.conv.field_conv import FieldConv, as_pair
from torch_gic.nn.conv.gaussian_filter import GaussianFilter
from torch_gic.nn.conv.linear_part import LinearPart
from torch_gic.nn.conv.outlier_clamp import OutlierClamp
from torch_gic.nn.conv.projection import Edges, Prepared

# Learnt scales and the weights of directed graphs have no bound. An infinite weight would make zeros NaN.
MAX_FIELD_WEIGHT = 1e12
FILTER_FACTOR = 0.1


class GICConv(FieldConv):
    r"""The Gaussian-induced convolution operator from the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \mathbf{x}^{\prime}_i = \mathbf{W}_0 \, \hat{\mathbf{x}}_i + \mathbf{W}_1 \, \bar{\mathbf{x}}_i + \mathbf{b}
        + \tfrac{1}{10} \sum_{k=1}^K \sum_{c=1}^C \mathbf{W}_{kc} \, \mathrm{describe}_{kc}
        \bigl( \{ (\mathbf{v}_j, s_k a_{ijk}) \} \bigr),

        \mathbf{v}_j = \mathrm{norm}(\mathbf{W}_v \, \hat{\mathbf{x}}_j / \mathbf{s}).

    :math:`\mathrm{describe}` tells how the members of a field are distributed over a learnt mixture of Gaussians: how many
    belong to each component, where they are, and how they spread (:func:`~torch_gic.encoding.describe`). These are the
    gradients of the paper's log-likelihood

    .. math::
        \zeta_{ik} = \sum_j \ln \sum_{c=1}^C \pi_{kc} \,
        \mathcal{N} \Bigl( \mathbf{v}_j; \mu_{kc}, \frac{\mathrm{diag}(\sigma_{kc}^2)}{s_k a_{ijk}} \Bigr)

    with respect to :math:`\mu_{kc}` and :math:`\sigma_{kc}`, per unit of weight and in units of :math:`\sigma_{kc}`.

    - :math:`a_{ijk}` is the weight of node :math:`j` in the :math:`k`-th receptive field of node :math:`i`
      (:func:`~torch_gic.receptive_fields`). :math:`s_k` is a learnt scale of these weights.
    - :math:`\hat{\mathbf{x}}` are the features with outliers clamped, scaled to an ordinary length
      (:class:`~torch_gic.nn.OutlierClamp`). :math:`\mathbf{s}` are their standard deviations.
    - :math:`\mathbf{v}` is what the mixture sees: a projection, normalised by :class:`~torch_gic.nn.BoundedNorm`.
    - :math:`\bar{\mathbf{x}}_i` is the mean of the neighbours in all channels (:func:`~torch_gic.encoding.field_mean`).

    With :obj:`edge_dim`, the members of a field are the edges that lead to the node. The mixture then sees the features
    :math:`\mathbf{e}` of an edge together with those of the node that it comes from. :math:`\mathbf{W}_2` times the mean of
    the edge features is added to the output:

    .. math::
        \mathbf{v}_e = \mathrm{norm}(\mathbf{W}_v \, \hat{\mathbf{x}}_{j(e)} / \mathbf{s}
        + \mathbf{W}_e \, \hat{\mathbf{e}} / \mathbf{s}_e).

    The ReLU of the paper's Eqn. (4) is not applied: as in every PyG layer, the activation is left to the model.

    .. note::
        The paper has no :math:`\mathbf{W}_v`, :math:`\mathbf{W}_0`, :math:`\mathbf{W}_1` and :math:`s_k`. Its layer is
        :obj:`GICConv(..., hidden_channels=None, add_self_loops=True, scale=1.0, train_scale=False, root_weight=False)`. The
        filter then takes the gradients of :math:`\zeta` as they are, and features are neither clamped nor normalised. Field
        weights are small as printed, so all components share each node nearly equally: :meth:`entropy` measures it.

    .. note::
        Between two sets of nodes, as in :func:`~torch_geometric.nn.to_hetero`, there is one scale and no self-loop
        (:func:`~torch_gic.fields.bipartite_fields`). The features of a target enter by :math:`\mathbf{W}_0` alone.

    Args:
        in_channels (int or tuple): Size of each input feature vector, or :obj:`-1` to take it from the first input. A tuple
            has the sizes of sources and of targets, for nodes of two types.
        out_channels (int): Size of each output vector.
        num_components (int, optional): The number of components :math:`C` per scale. (default: :obj:`5`)
        num_scales (int, optional): The number of scales :math:`K`: a node sees nodes up to :math:`K` steps away. Set
            :obj:`max_neighbors` for more than one on large graphs. (default: :obj:`1`)
        hidden_channels (int, optional): Size of :math:`\mathbf{v}`. With :obj:`None`, the mixture sees :math:`\mathbf{x}`
            itself, as in the paper: nothing is clamped or normalised. (default: :obj:`16`)
        add_self_loops (bool, optional): Whether each node is in its own field, as in the paper. (default: :obj:`False`)
        max_neighbors (int, optional): The largest number of field members per node. (default: :obj:`None`)
        scale (float, optional): The initial scale :math:`s_k` of the field weights. (default: :obj:`8.0`)
        train_scale (bool, optional): Whether the scale is learnt. (default: :obj:`True`)
        root_weight (bool, optional): Whether to add the terms with :math:`\mathbf{W}_0`, :math:`\mathbf{W}_1` and
            :math:`\mathbf{W}_2`, and to multiply the filter by 1/10. (default: :obj:`True`)
        bias (bool, optional): Whether to add :math:`\mathbf{b}`. (default: :obj:`True`)
        edge_dim (int, optional): Size of each edge feature vector. It excludes :obj:`num_scales` above 1,
            :obj:`add_self_loops` and :obj:`max_neighbors`. (default: :obj:`None`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F_{in})` or, of a bipartite graph,
          :math:`((|\mathcal{V}_s|, F_{in}), (|\mathcal{V}_t|, F_t))`, edge indices :math:`(2, |\mathcal{E}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*, edge features :math:`(|\mathcal{E}|, D)` *(optional)*
        - **output:** features :math:`(|\mathcal{V}|, F_{out})` or :math:`(|\mathcal{V}_t|, F_{out})`

    Example:
        >>> import torch
        >>> from torch_gic import GICConv
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> conv = GICConv(in_channels=8, out_channels=16)
        >>> conv(torch.randn(3, 8), path).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        num_components: int = 5,
        num_scales: int = 1,
        hidden_channels: int | None = 16,
        add_self_loops: bool = False,
        max_neighbors: int | None = None,
        scale: float = 8.0,
        train_scale: bool = True,
        root_weight: bool = True,
        bias: bool = True,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__(num_scales, add_self_loops, max_neighbors, edge_dim)
        if edge_dim is not None and hidden_channels is None:
            raise ValueError("Expected 'hidden_channels' with 'edge_dim', since a projection joins both (got None)")
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"Expected 'scale' to be positive and finite (got {scale})")
        source_channels, target_channels = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        self.filter = GaussianFilter(
            source_channels, out_channels, num_scales, num_components, hidden_channels, edge_dim, bias and not root_weight
        )
        # Targets of another node type have their own statistics.
        own = root_weight and hidden_channels is not None and isinstance(in_channels, tuple)
        self.clamp_target = OutlierClamp(target_channels) if own else None
        self.linear = LinearPart(source_channels, target_channels, out_channels, edge_dim, bias) if root_weight else None
        self.log_scale = Parameter(torch.empty(num_scales), requires_grad=train_scale)
        self.out_channels = out_channels
        self.num_components = num_components
        self.hidden_channels = hidden_channels
        self.initial_scale = scale
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.filter.reset_parameters()
        torch.nn.init.constant_(self.log_scale, math.log(self.initial_scale))
        for module in (self.clamp_target, self.linear):
            if module is not None:
                module.reset_parameters()

    @property
    def in_channels(self) -> int:
        """Size of each source's feature vector, or -1 before the first input."""
        return self.filter.in_channels

    def forward(
        self,
        x: Tensor | PairTensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        fields: AnyFields | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor or tuple): The node features, or a pair: those of the sources and of the targets. A pair may have
                more than one scale only if :obj:`fields` are given.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each node. The layer uses it only to refuse edges between graphs.
                (default: :obj:`None`)
            edge_attr (torch.Tensor, optional): The edge features, needed with :obj:`edge_dim`. (default: :obj:`None`)
            fields (Fields, optional): Fields computed before: by :func:`~torch_gic.receptive_fields`, by the transform
                :class:`~torch_gic.ReceptiveFields` as :obj:`data.fields`, or a plain pair ``(index, weight)``. The layer then
                ignores the edge weights. (default: computed)
        """
        source, target = as_pair(x)
        check_features(source, self.in_channels)  # before its size is taken as the number of nodes
        fields = self.fields(x, edge_index, edge_weight, batch) if fields is None else self.checked(fields, x, edge_index)
        edges = self.edges(edge_index, edge_attr)
        prepared, root = self._prepare(source, target, edges)
        out = self.filter(prepared.v, fields, self._scaled(fields.weight))
        if self.linear is not None:
            # The filter has many similar inputs, and Adam's equal steps in their weights add up: so it counts less. Inductor
            # ignores alpha= of torch.add.
            out = self.linear(root, prepared, fields, edges) + FILTER_FACTOR * out
        return out if torch.is_autocast_enabled(source.device.type) else out.to(source.dtype)

    def _prepare(self, source: Tensor, target: Tensor, edges: Edges | None) -> tuple[Prepared, Tensor]:
        """Prepares the sources for the filter, and clamps the targets for the root weight."""
        prepared = self.filter.prepare(source, edges)
        if self.linear is None:
            return prepared, prepared.x
        check_features(target, self.linear.root.in_channels, self.log_scale.dtype, "x" if source is target else "x_dst")
        if source is target:
            return prepared, prepared.x
        if self.clamp_target is not None:
            return prepared, self.clamp_target(target)[0]
        if source.size(1) != target.size(1):
            sizes = f"{source.size(1)} and {target.size(1)}"
            raise ValueError(f"Expected 'in_channels' to be a tuple, as (-1, -1), for nodes of two sizes (got x of {sizes})")
        return prepared, self.filter.clamp(target)

    @torch.no_grad()
    def init_from_data(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        fields: AnyFields | None = None,
        generator: torch.Generator | None = None,
        num_iterations: int = 0,
    ) -> None:
        r"""Sets the initial values of the layer from data.

        The running statistics become those of the data. The means of the mixtures are drawn from :math:`\mathbf{v}`, and
        their deviations are those of :math:`\mathbf{v}`. The scale :math:`s_k` makes the mean weight of a field member 1 in
        every scale. After that, :obj:`num_iterations` steps of EM fit the mixtures to :math:`\mathbf{v}`.
        """
        fields = self.fields(x, edge_index, edge_weight) if fields is None else self.checked(fields, x, edge_index)
        self.filter.init_from_data(x, self.edges(edge_index, edge_attr), generator, num_iterations)
        present = (fields.weight > 0).sum(dim=0).clamp(min=1)
        mean_weight = fields.weight.sum(dim=0) / present
        self.log_scale.copy_(torch.where(mean_weight > 0, -mean_weight.log(), self.log_scale))

    @torch.no_grad()
    def entropy(self, x: Tensor, fields: Fields, edge_index: Tensor | None = None, edge_attr: Tensor | None = None) -> Tensor:
        r"""How equally the components share the members of fields: the mean entropy of the responsibilities :math:`Q`, divided
        by :math:`\log C`, per scale: ``[K]``. A layer with :obj:`edge_dim` also needs the edges and their features.

        At 1, all components do the same, and one would be enough. At 0, each field member belongs to one component.
        """
        prepared = self.filter.prepare(x, self.edges(edge_index, edge_attr))
        return self.filter.mixture.entropy(prepared.v, fields, self._scaled(fields.weight))

    def _scaled(self, weight: Tensor) -> Tensor:
        heaviest = min(MAX_FIELD_WEIGHT, torch.finfo(self.log_scale.dtype).max)
        scale = self.log_scale.clamp(max=math.log(heaviest) - 1).exp()  # one less: float16 rounds the logarithm upwards
        return (weight * scale).clamp(max=heaviest)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, "
            f"num_components={self.num_components}, num_scales={self.num_scales})"
        )
