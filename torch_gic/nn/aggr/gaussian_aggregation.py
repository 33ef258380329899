"""The Gaussian encoding of any set: an aggregation for PyG layers and a readout for graphs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from torch_gic._checks import MAX_EMPTY_GRAPHS, check_weight
from torch_gic.fields import Fields
from torch_gic.fields.fields import pointers
from torch_gic.nn.conv.gaussian_filter import GaussianFilter


class GaussianAggregation(Aggregation):
    r"""Aggregates sets of vectors by the filter of :class:`~torch_gic.GICConv`

    .. math::
        \mathrm{aggr}(\mathcal{X}) = \mathbf{b} + \sum_{c=1}^C \mathbf{W}_c \, \mathrm{describe}_c
        \bigl( \{ (\mathbf{v}_j, a_j) : \mathbf{x}_j \in \mathcal{X} \} \bigr),

        \mathbf{v}_j = \mathrm{norm}(\mathbf{W}_v \, \hat{\mathbf{x}}_j / \mathbf{s}).

    :math:`\mathrm{describe}` tells how the members of a set are distributed over a learnt mixture of Gaussians: how many
    belong to each component, where they are, and how they spread (:func:`~torch_gic.encoding.describe`). :math:`a_j` is the
    weight of a member. :class:`~torch_gic.GICConv` explains the other symbols.

    Use it as the :obj:`aggr` of a PyG layer, as in :obj:`SAGEConv(16, 32, aggr=GaussianAggregation(16))`, or as a readout of
    graphs, as in :obj:`aggr(x, batch)`. An empty set gives :math:`\mathbf{b}`.

    Args:
        in_channels (int): Size of each vector, or :obj:`-1` to take it from the first input.
        out_channels (int, optional): Size of each output. (default: :obj:`in_channels`, which most PyG layers expect)
        num_components (int, optional): The number of components :math:`C`. (default: :obj:`5`)
        hidden_channels (int, optional): Size of :math:`\mathbf{v}`, as in :class:`~torch_gic.GICConv`.
            (default: :obj:`16`)

    Shapes:
        - **input:** vectors :math:`(M, F_{in})`, and the set of each as index :math:`(M)` or as boundaries
          :math:`(B + 1)`, weights :math:`(M)` *(optional)*
        - **output:** :math:`(B, F_{out})`

    Example:
        >>> import torch
        >>> from torch_gic import GaussianAggregation
        >>> aggr = GaussianAggregation(8, out_channels=4, num_components=3)
        >>> aggr(torch.randn(5, 8), torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        num_components: int = 5,
        hidden_channels: int | None = 16,
    ) -> None:
        super().__init__()
        if out_channels is None:
            if in_channels == -1:
                raise ValueError("Expected 'out_channels' to be given when 'in_channels' is -1 (got None)")
            out_channels = in_channels
        self.out_channels = out_channels
        self.num_components = num_components
        self.filter = GaussianFilter(in_channels, out_channels, 1, num_components, hidden_channels)

    def reset_parameters(self) -> None:
        self.filter.reset_parameters()

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        *,
        weight: Tensor | None = None,
    ) -> Tensor:
        r"""Forward pass.

        Args:
            x (torch.Tensor): The members of all sets.
            index (torch.Tensor, optional): The set of each member. (default: :obj:`None`)
            ptr (torch.Tensor, optional): The boundaries of the sets, in place of :obj:`index`. (default: :obj:`None`)
            dim_size (int, optional): The number of sets. (default: inferred)
            dim (int, optional): The dimension of the members. It must be the first of two. (default: :obj:`-2`)
            weight (torch.Tensor, optional): The weight :math:`a_j` of each member, non-negative. Zero leaves a member out.
                (default: ones)
        """
        self.assert_two_dimensional_input(x, dim)
        members = torch.arange(x.size(0), device=x.device)
        if index is None:
            ptr = torch.tensor([0, x.size(0)], device=x.device) if ptr is None else ptr
            sets = torch.arange(ptr.numel() - 1, device=x.device)
            index = torch.repeat_interleave(sets, ptr.diff(), output_size=x.size(0))
        else:
            if index.dim() != 1 or index.size(0) != x.size(0):
                raise ValueError(f"Expected 'index' to have shape [{x.size(0)}], one per member (got {list(index.shape)})")
            if index.dtype not in (torch.int64, torch.int32):
                raise TypeError(f"Expected 'index' to hold integers (got {index.dtype})")
            if dim_size is None:
                dim_size = int(index.max()) + 1 if index.numel() > 0 else 0
            if not isinstance(dim_size, int | torch.SymInt) or dim_size < 0:
                raise ValueError(f"Expected 'dim_size' to be a number of sets, at least 0 (got {dim_size})")
            if not torch.compiler.is_compiling() and dim_size > MAX_EMPTY_GRAPHS + index.numel():  # each set takes memory
                raise ValueError(f"Expected 'index' to number sets from 0 on (got {dim_size} sets of {index.numel()} members)")
            index, members = index.long().sort(stable=True)
            inside = (index[:1] >= 0).all() & (index[-1:] < dim_size).all()
            last = "dim_size - 1" if torch.compiler.is_compiling() else dim_size - 1  # a symbol then
            torch._assert_async(inside, f"Expected 'index' to lie in [0, {last}]")  # to look would wait for a GPU
            ptr = pointers(index, dim_size)
        if weight is None:
            weight = x.new_ones(x.size(0))
        else:
            check_weight(weight, "weight", x.size(0))
            weight = weight[members]
        fields = Fields(torch.stack([members, index]), weight.unsqueeze(1), ptr, x.size(0))  # sets are fields of one scale
        return self.filter(self.filter.prepare(x)[1], fields).to(x.dtype)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({self.filter.in_channels}, {self.out_channels}, num_components={self.num_components})"
        )
