"""The parameters of the edge-induced Gaussian mixtures."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parameter import Parameter, UninitializedParameter, is_lazy

from torch_gic._checks import check_at_least, check_features
from torch_gic.encoding import component_posterior, describe, gaussian_encode
from torch_gic.fields import Fields

MIN_SIGMA = 1e-3  # the encoding divides by sigma, which must not become zero for a component at a single point
MAX_EM_NODES = 4096  # of a larger graph, EM sees a random sample
MIN_PI = 1e-4  # so a component without nodes after EM can still be learnt


class GaussianMixture(torch.nn.Module):
    r"""The mixtures :math:`\Theta_1 = \{ \pi_c, \mu_c, \sigma_c \}` of all scales, and the encoding of fields by them.

    The parameters are free of constraints: :math:`\mu` as it is, :math:`\rho` with
    :math:`\sigma = \mathrm{softplus}(\rho) + 10^{-3}`, and :math:`\alpha` with :math:`\pi = \mathrm{softmax}(\alpha)`.

    Args:
        in_channels (int): Size of each feature vector, or :obj:`-1` to take it from the first input.
        num_scales (int): The number of scales :math:`K`, with one mixture per scale.
        num_components (int): The number of components :math:`C` of each mixture.
        describes (bool, optional): Whether the output describes the members of each component
            (:func:`~torch_gic.encoding.describe`). If not, it holds the gradients of Eqn. (3), as in the paper.
            (default: :obj:`True`)

    Shapes:
        - **input:** features :math:`(M, d)`, fields with weights :math:`(E, K)`
        - **output:** :math:`(N, K, C, 2 d + 1)`, or gradients :math:`(N, K, C, 2 d)`
    """

    mu: Tensor
    rho: Tensor

    def __init__(self, in_channels: int, num_scales: int, num_components: int, describes: bool = True) -> None:
        super().__init__()
        if in_channels != -1:
            check_at_least(in_channels, "in_channels", 1)
        check_at_least(num_scales, "num_scales", 1)
        check_at_least(num_components, "num_components", 1)
        self.in_channels = in_channels
        self.num_scales = num_scales
        self.num_components = num_components
        self.describes = describes
        self.alpha = Parameter(torch.empty(num_scales, num_components))
        if in_channels == -1:
            self.mu, self.rho = UninitializedParameter(), UninitializedParameter()
        else:
            shape = (num_scales, num_components, in_channels)
            self.mu, self.rho = Parameter(torch.empty(shape)), Parameter(torch.empty(shape))
        self._register_load_state_dict_pre_hook(self._materialize_before_loading)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Random means, equal deviations and equal weights, for features of zero mean and unit variance.

        The distances to two components differ by about :math:`\sqrt{d} / \sigma^2`. With :math:`\sigma = d^{1/4}`, how equally
        components share the nodes does not depend on the number of channels :math:`d`.
        """
        torch.nn.init.zeros_(self.alpha)
        if not is_lazy(self.mu):
            torch.nn.init.normal_(self.mu)
            self._set_sigma(torch.full_like(self.rho, self.in_channels**0.25))

    @torch.no_grad()
    def init_from_data(self, x: Tensor, generator: torch.Generator | None = None, num_iterations: int = 0) -> None:
        """Draws the means from ``x``, and sets the deviations to its spread per channel. Then runs EM.

        Deviations are at least a tenth of the overall spread: a channel that is constant here may vary in the next batch.
        """
        if self.in_channels == -1:
            self.materialize(x)
        check_at_least(num_iterations, "num_iterations", 0)
        if x.size(0) == 0:
            raise ValueError("Expected 'x' to hold at least one node (got none)")
        count = self.num_scales * self.num_components
        row = torch.randint(x.size(0), (count,), generator=generator, device=x.device)
        spread = x.std(dim=0, unbiased=False)
        smallest = max(0.1 * float(spread.square().mean().sqrt()), 2 * MIN_SIGMA)
        sigma = spread.clamp(min=smallest)
        # With discrete features, several components may get equal means: a little noise separates them.
        noise = torch.randn(count, x.size(1), generator=generator, device=x.device, dtype=x.dtype)
        self.mu.copy_((x[row] + 0.1 * sigma * noise).view_as(self.mu))
        self._set_sigma(sigma.expand_as(self.rho))
        torch.nn.init.zeros_(self.alpha)
        if num_iterations > 0 and x.size(0) > MAX_EM_NODES:
            x = x[torch.randint(x.size(0), (MAX_EM_NODES,), generator=generator, device=x.device)]
        for _ in range(num_iterations):
            self._em_step(x, smallest)

    def _em_step(self, x: Tensor, smallest: float) -> None:
        """One step of expectation and maximisation over nodes, each of weight 1."""
        nodes, ones = torch.arange(x.size(0), device=x.device), x.new_ones(x.size(0))
        log_pi, sigma = self.alpha.log_softmax(dim=-1), self.sigma
        for k in range(self.num_scales):
            posterior = component_posterior(x, self.mu[k], sigma[k], log_pi[k], nodes, ones)
            share = posterior.mean(dim=0).clamp(min=MIN_PI)
            weight = (posterior / (share * x.size(0))).t()
            mean = weight @ x
            variance = torch.stack([w @ (x - m).square() for w, m in zip(weight, mean, strict=True)])
            used = (weight.sum(dim=1, keepdim=True) > 0.5).expand_as(mean)
            self.mu[k] = torch.where(used, mean, self.mu[k])
            sigma[k] = torch.where(used, variance.sqrt().clamp(min=smallest), sigma[k])
            self.alpha[k] = share.log()
        self._set_sigma(sigma)

    def _set_sigma(self, sigma: Tensor) -> None:
        with torch.no_grad():
            excess = (sigma - MIN_SIGMA).double()
            self.rho.copy_(excess + torch.log(-torch.expm1(-excess)))  # the inverse of softplus

    @property
    def sigma(self) -> Tensor:
        """Standard deviations, positive by construction: ``[K, C, d]``."""
        return F.softplus(self.rho) + MIN_SIGMA

    @property
    def pi(self) -> Tensor:
        """Component weights, which sum to one in each scale: ``[K, C]``."""
        return self.alpha.softmax(dim=-1)

    @property
    def out_channels(self) -> int:
        """The number of outputs per component."""
        return 2 * self.in_channels + self.describes

    def forward(self, x: Tensor, fields: Fields, weight: Tensor | None = None) -> Tensor:
        check_features(x, self.in_channels)
        if self.in_channels == -1:
            self.materialize(x)
        sigma = self.sigma
        gradients, masses = gaussian_encode(x, self.mu, sigma, self.alpha.log_softmax(dim=-1), fields, weight)
        return describe(gradients, masses, sigma) if self.describes else gradients.flatten(start_dim=3)

    @torch.no_grad()
    def entropy(self, x: Tensor, fields: Fields, weight: Tensor | None = None) -> Tensor:
        r"""How equally the components share the nodes: the mean entropy of the responsibilities :math:`Q`, divided by
        :math:`\log C`, per scale: ``[K]``.

        At 1, all components do the same, and one would be enough. At 0, each field member belongs to one component.
        """
        log_pi, sigma = self.alpha.log_softmax(dim=-1), self.sigma
        weight = (fields.weight if weight is None else weight).to(x.dtype)
        means = []
        for k in range(self.num_scales):
            used = weight[:, k] > 0
            member, a = fields.index[0, used], weight[used, k]
            posterior = component_posterior(x, self.mu[k], sigma[k], log_pi[k], member, a)
            means.append(torch.special.entr(posterior).sum(-1).mean())
        return torch.stack(means) / torch.tensor(float(max(self.num_components, 2))).log()

    def materialize(self, x: Tensor) -> None:
        """Sets the size of parameters made with ``in_channels=-1`` from the first input."""
        self._materialize(x.size(1), x.device, self.alpha.dtype)
        self.reset_parameters()

    def _materialize(self, in_channels: int, device: torch.device, dtype: torch.dtype) -> None:
        self.in_channels = in_channels
        for parameter in (self.mu, self.rho):
            assert isinstance(parameter, UninitializedParameter)
            parameter.materialize((self.num_scales, self.num_components, in_channels), device=device, dtype=dtype)

    def _materialize_before_loading(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        mu = state_dict.get(prefix + "mu")
        if is_lazy(self.mu) and mu is not None and not is_lazy(mu):
            self._materialize(mu.size(-1), self.alpha.device, self.alpha.dtype)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        if not is_lazy(self.mu):
            return super()._save_to_state_dict(destination, prefix, keep_vars)
        for name, parameter in self.named_parameters():  # without a size yet, as PyG's Linear keeps them
            destination[prefix + name] = parameter if keep_vars or is_lazy(parameter) else parameter.detach()

    def extra_repr(self) -> str:
        return f"{self.in_channels}, num_scales={self.num_scales}, num_components={self.num_components}"
