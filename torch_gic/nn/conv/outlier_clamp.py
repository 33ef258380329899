"""The features that all of a convolution sees: outliers clamped, and scaled to an ordinary length."""

from __future__ import annotations

from torch import Tensor

from torch_gic._checks import check_features
from torch_gic.encoding.clamp import channel_statistics, outlier_clamp
from torch_gic.nn.conv.running_statistics import RunningStatistics, single

MAX_DEVIATIONS = 20.0  # so a word that one document in four hundred has is not clamped


class OutlierClamp(RunningStatistics):
    r"""Clamps each channel to :math:`B` deviations around its mean, and scales all features by one factor

    .. math::
        \mathbf{x}^{\prime} = \frac{\mathrm{clamp}(r; 1, 8)}{r} \cdot
        \mathrm{clamp}(\mathbf{x}; \mathbf{m} - B \mathbf{s}, \mathbf{m} + B \mathbf{s}), \qquad
        r^2 = \sum_d \left( m_d^2 + s_d^2 \right),

    where :math:`\mathbf{m}` and :math:`\mathbf{s}` are the running mean and deviation of the channels, and :math:`r` is the
    length of an ordinary feature vector. The factor brings this length into the range from 1 to 8, so the unit of the features
    does not matter. Unlike a normalisation, it leaves one-hot classes and hidden features as they are, and keeps the
    proportions between channels. The statistics are those of all batches so far, in training too. So training and evaluation
    do the same. They get no gradient.

    Args:
        channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        bound (float, optional): The largest deviation :math:`B`. (default: :obj:`20.0`)

    Shapes:
        - **input:** features :math:`(|\mathcal{V}|, F)`
        - **output:** features :math:`(|\mathcal{V}|, F)`, in float32 for half precision, and one over their deviations
          :math:`(F)`, zero for a channel that is constant
    """

    def __init__(self, channels: int, bound: float = MAX_DEVIATIONS) -> None:
        super().__init__(channels)
        self.bound = bound

    def reset_parameters(self) -> None:
        self.reset_statistics()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        check_features(x, self.channels)
        x = single(x)
        if (learns := self.learns(x)) is not False:
            self.remember(channel_statistics(x), learns)
        return outlier_clamp(x, self.running, self.bound)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.channels}, bound={self.bound})"
