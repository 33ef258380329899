"""Gaussian-induced convolution: fields, encoding, filter."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.parameter import Parameter
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.typing import PairTensor, SparseTensor

from torch_gic._checks import check_at_least, check_features, check_fields
from torch_gic.nn.gaussian_mixture import GaussianMixture
from torch_gic.ops import bipartite_fields, receptive_fields

# Weights of undirected graphs are 1 at most. Those of directed ones may be anything, and overflow with attributes.
HEAVIEST = 1e12


class GICConv(MessagePassing):
    r"""The Gaussian-induced convolution operator from the
    `"Gaussian-Induced Convolution for Graphs" <https://arxiv.org/abs/1811.04393>`_ paper

    .. math::
        \mathbf{x}^{\prime}_i = \mathbf{W}_0 \, \mathbf{x}_i + \mathbf{b}
        + \frac{1}{K C} \sum_{k=1}^K \sum_{c=1}^C \mathbf{W}_{kc} \,
        \Bigl[ \frac{\partial \zeta_{ik}}{\partial \mu_{kc}} \, \Big\Vert \,
        \frac{\partial \zeta_{ik}}{\partial \sigma_{kc}} \Bigr],

        \zeta_{ik} = \sum_j \ln \sum_{c=1}^C \pi_{kc} \,
        \mathcal{N} \Bigl( \mathbf{x}_j; \mu_{kc}, \frac{\mathrm{diag}(\sigma_{kc}^2)}{s_k a_{ijk}} \Bigr),

    where :math:`a_{ijk} = (\tilde{A}_k)_{ij}` is the weight of vertex :math:`j` in the :math:`k`-th receptive field of
    vertex :math:`i` (:func:`~torch_gic.receptive_fields`) and :math:`s_k` a scale of these weights. Each field is
    described by how it would change the mixture's means and deviations: its first and second moments, split over the
    components. The ReLU of the paper's Eqn. (4) is left to the model, as in every PyG layer; :obj:`root_weight=False` is
    its sum as printed, without :math:`\mathbf{W}_0` and :math:`1 / K C`.

    .. note::
        The normalised weights of a field are mostly far below 1, so that as printed (:obj:`scale=1`) the exponents
        :math:`a/2 \cdot \sum_d z_d^2` are small and all components share each vertex equally: the mixture is idle.
        The scale sharpens it; :meth:`entropy` says how idle it is.

    .. note::
        Between two sets of vertices, as in :func:`~torch_geometric.nn.to_hetero`, a target has one scale and no loop: take
        :obj:`num_scales=1` and :obj:`add_self_loops=False` (:func:`~torch_gic.ops.bipartite_fields`). The attributes of the
        targets enter by :math:`\mathbf{W}_0` alone.

    .. note::
        The encoding is a sum over the field, and quadratic in the attributes: put a normalisation such as
        :class:`~torch_geometric.nn.BatchNorm` behind each layer, as :class:`~torch_gic.GIC` does, or stacked layers explode.

    Args:
        in_channels (int or tuple): Size of each input attribute vector, or :obj:`-1` to take it from the first input. A tuple
            has the sizes of sources and of targets.
        out_channels (int): Size of each output vector.
        num_scales (int, optional): The number of scales :math:`K`. (default: :obj:`7`)
        num_components (int, optional): The number of components :math:`C` a scale. (default: :obj:`7`)
        add_self_loops (bool, optional): Whether each vertex is in its own field: see
            :func:`~torch_gic.receptive_fields`. (default: :obj:`True`)
        max_neighbors (int, optional): The largest number of field members a vertex. (default: :obj:`None`)
        scale (float, optional): The initial scale :math:`s_k` of the field weights. (default: :obj:`8.0`)
        train_scale (bool, optional): Whether the scale is learnt. (default: :obj:`True`)
        root_weight (bool, optional): Whether to add the transformed vertex itself, :math:`\mathbf{W}_0 \, \mathbf{x}_i`, to
            weigh the many inputs of the filter down beside it, and to start from deviations of :math:`F_{in}^{1/4}` and not of
            1. (default: :obj:`True`)
        bias (bool, optional): Whether to add :math:`\mathbf{b}`. (default: :obj:`True`)

    Shapes:
        - **input:** attributes :math:`(|\mathcal{V}|, F_{in})` or, of a bipartite graph,
          :math:`((|\mathcal{V}_s|, F_{in}), (|\mathcal{V}_t|, F_t))`, edge indices :math:`(2, |\mathcal{E}|)`,
          edge weights :math:`(|\mathcal{E}|)` *(optional)*
        - **output:** attributes :math:`(|\mathcal{V}|, F_{out})` or :math:`(|\mathcal{V}_t|, F_{out})`

    Example:
        >>> import torch
        >>> from torch_gic import GICConv
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> conv = GICConv(in_channels=8, out_channels=16, num_scales=3, num_components=5)
        >>> conv(torch.randn(3, 8), path).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        num_scales: int = 7,
        num_components: int = 7,
        add_self_loops: bool = True,
        max_neighbors: int | None = None,
        scale: float = 8.0,
        train_scale: bool = True,
        root_weight: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(aggr=None)
        check_at_least(out_channels, "out_channels", 1)
        if max_neighbors is not None:
            check_at_least(max_neighbors, "max_neighbors", 1)
        if not (math.isfinite(scale) and scale > 0):
            raise ValueError(f"Expected 'scale' to be positive and finite (got {scale})")
        self.out_channels = out_channels
        self.num_scales = num_scales
        self.num_components = num_components
        self.add_self_loops = add_self_loops
        self.max_neighbors = max_neighbors
        self.initial_scale = scale

        source_channels, target_channels = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        self.mixture = GaussianMixture(
            source_channels, num_scales, num_components, sigma_exponent=0.25 if root_weight else 0.0
        )
        self.log_scale = Parameter(torch.empty(num_scales), requires_grad=train_scale)
        encoding_channels = -1 if source_channels == -1 else num_scales * num_components * 2 * source_channels
        self.lin = Linear(
            encoding_channels, out_channels, bias and not root_weight, weight_initializer="glorot", bias_initializer="zeros"
        )
        self.lin_root = Linear(target_channels, out_channels, bias) if root_weight else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.mixture.reset_parameters()
        torch.nn.init.constant_(self.log_scale, math.log(self.initial_scale))
        self.lin.reset_parameters()
        if self.lin_root is not None:
            self.lin_root.reset_parameters()

    @property
    def in_channels(self) -> int:
        """Size of each source's attribute vector; -1 until the first input tells it."""
        return self.mixture.in_channels

    @property
    def mu(self) -> Tensor:
        """Means of the components, ``[K, C, d]``."""
        return self.mixture.mu

    @property
    def sigma(self) -> Tensor:
        """Standard deviations of the components, positive by construction, ``[K, C, d]``."""
        return self.mixture.sigma

    @property
    def pi(self) -> Tensor:
        """Weights of the components, which sum to one in each scale, ``[K, C]``."""
        return self.mixture.pi

    def forward(
        self,
        x: Tensor | PairTensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        fields: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor or tuple): The vertex attributes, or those of the sources and of the targets. With
                :obj:`fields` of its own a pair may have any number of scales.
            edge_index (torch.Tensor or SparseTensor): The edges.
            edge_weight (torch.Tensor, optional): Their weights, finite and non-negative. (default: ones)
            batch (torch.Tensor, optional): The graph of each vertex. The result does not depend on it: it lets the
                layer refuse edges between graphs. (default: :obj:`None`)
            fields (tuple, optional): ``(field_index, field_weight)`` of :func:`~torch_gic.receptive_fields` or of the
                :class:`~torch_gic.ReceptiveFields` transform. Edges, their weights and :obj:`add_self_loops` are then not
                looked at. (default: :obj:`None`)
        """
        source, target = _pair(x)
        check_features(source, self.in_channels)  # before its size is taken for that of the graph
        fields = self.fields(x, edge_index, edge_weight, batch) if fields is None else fields
        if not isinstance(fields, tuple | list) or len(fields) != 2:
            raise TypeError(f"Expected 'fields' to be a pair (field_index, field_weight) (got {type(fields).__name__})")
        field_index, field_weight = fields
        check_fields(field_index, field_weight, self.num_scales, (source.size(0), target.size(0)))
        out = self.mixture.filter(source, field_index, self._scaled(field_weight), target.size(0), self.lin)
        if self.lin_root is None:
            return out
        check_features(target, self.lin_root.in_channels, self.log_scale.dtype, name="x" if source is target else "x_dst")
        # The filter has 2 K C times the inputs of the root, much alike. Steps of the same size in all weights, as Adam takes
        # them, would add up to a change of the output that many times as large, and too large.
        return torch.add(self.lin_root(target), out, alpha=1 / (self.num_scales * self.num_components))

    def fields(
        self,
        x: Tensor | PairTensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The receptive fields with the settings of this layer, which ``forward`` takes as ``fields``."""
        source, target = _pair(x)
        if source is not target:
            if self.num_scales != 1:
                raise ValueError(
                    "Expected 'num_scales' to be 1 for a pair (x_src, x_dst), since walks of several steps need edges among"
                    f" all vertices (got {self.num_scales}); or pass 'fields'"
                )
            if self.add_self_loops:
                raise ValueError(
                    "Expected 'add_self_loops' to be False for a pair (x_src, x_dst), whose targets are no sources (got True)"
                )
            return bipartite_fields(edge_index, edge_weight, size=(source.size(0), target.size(0)))
        return receptive_fields(
            edge_index,
            edge_weight,
            num_nodes=source.size(0),
            batch=batch,
            num_scales=self.num_scales,
            add_self_loops=self.add_self_loops,
            max_neighbors=self.max_neighbors,
        )

    def encode(self, x: Tensor, field_index: Tensor, field_weight: Tensor) -> Tensor:
        r"""The gradients :math:`[\partial \zeta_{ik} / \partial \mu_{kc}, \partial \zeta_{ik} / \partial \sigma_{kc}]`
        for exactly these weights (:math:`s_k = 1`): ``[N, K, C, 2, d]``."""
        return self.mixture(x, field_index, field_weight, x.size(0))

    @torch.no_grad()
    def init_from_data(
        self,
        x: Tensor,
        edge_index: Tensor | SparseTensor,
        edge_weight: Tensor | None = None,
        *,
        fields: tuple[Tensor, Tensor] | None = None,
        generator: torch.Generator | None = None,
        num_iterations: int = 0,
    ) -> None:
        r"""Starts the mixtures from data: means drawn from :obj:`x`, deviations from its spread, and a scale
        :math:`s_k` with which the mean weight of a field member is 1 in every scale. After that, :obj:`num_iterations` steps
        of EM fit the mixtures to :obj:`x`: where attributes are few and far from normally distributed, such as a degree,
        components that start at random overlap, and stay idle while training."""
        _, field_weight = self.fields(x, edge_index, edge_weight) if fields is None else fields
        self.mixture.init_from_data(x, generator, num_iterations)
        present = (field_weight > 0).sum(dim=0).clamp(min=1)
        mean_weight = field_weight.sum(dim=0) / present
        self.log_scale.copy_(torch.where(mean_weight > 0, -mean_weight.log(), self.log_scale))

    def entropy(self, x: Tensor, field_index: Tensor, field_weight: Tensor) -> Tensor:
        r"""How undecided the components are: the mean entropy of :math:`Q` over :math:`\log C` in each scale, ``[K]``.

        At 1 the components are interchangeable and do nothing; at 0 each field member belongs to one.
        """
        return self.mixture.entropy(x, field_index, self._scaled(field_weight))

    def _scaled(self, field_weight: Tensor) -> Tensor:
        heaviest = min(HEAVIEST, torch.finfo(self.log_scale.dtype).max)
        # Training may take a scale anywhere: an infinite one would make weights of zero, and all gradients, NaN. One less than
        # the logarithm, whose rounding in float16 is beyond the largest number otherwise.
        scale = self.log_scale.clamp(max=math.log(heaviest) - 1).exp()
        return (field_weight * scale).clamp(max=heaviest)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.in_channels}, {self.out_channels}, "
            f"num_scales={self.num_scales}, num_components={self.num_components})"
        )


def _pair(x: Tensor | PairTensor) -> PairTensor:
    """Attributes of sources and targets, which are the same object where the graph is not bipartite."""
    if not isinstance(x, tuple | list):
        return x, x
    if len(x) != 2 or not all(isinstance(part, Tensor) for part in x):
        kinds = ", ".join(type(part).__name__ for part in x)
        raise TypeError(f"Expected 'x' to be a tensor or a pair of tensors (x_src, x_dst) (got ({kinds}))")
    return x[0], x[1]
