"""What the compiled encoding refuses."""

import pytest
import torch
from test_gaussian_encode import backward, forward, needs_kernel, operands

from torch_gic.kernels.library import REFERENCES


@needs_kernel
@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, torch.ones(7, 5, dtype=torch.float16), "'x' to hold float32 or float64"),
        (0, torch.ones(7, 4, dtype=torch.float64), "'x' to have size 5 in dimension 1 .got 4"),
        (1, torch.ones(2, 3, 5), "'mu' to hold float64 values .got float32"),
        (2, torch.ones(2, 2, 5, dtype=torch.float64), "'sigma' to have size 3 in dimension 1 .got 2"),
        (3, torch.ones(2, 4, dtype=torch.float64), "'log_pi' to have size 3 in dimension 1 .got 4"),
        (4, torch.ones(30, dtype=torch.float64), "'weight' to have 2 dimensions .got 1"),
        (5, torch.zeros(29, dtype=torch.long), "'weight' to have size 29 in dimension 0 .got 30"),
        (6, torch.zeros(8, dtype=torch.long), "'rowptr' to begin with 0 and to end with 30"),
    ],
)
def test_bad_operands(position, value, message):
    inputs = list(operands())
    inputs[position] = value
    with pytest.raises(RuntimeError, match=message):
        forward(*inputs)


@needs_kernel
def test_bad_gradients():
    inputs = operands()
    encoding, mass = forward(*inputs)
    with pytest.raises(RuntimeError, match=r"'grad' to have size 5 in dimension 4 .got 4"):
        backward(encoding[..., :4], mass, encoding, mass, *inputs)
    with pytest.raises(RuntimeError, match=r"'grad_mass' to have size 2 in dimension 3 .got 1"):
        backward(encoding, mass[..., :1], encoding, mass, *inputs)
    with pytest.raises(RuntimeError, match=r"'grad_mass' to hold float64 values .got float32"):
        backward(encoding, mass.float(), encoding, mass, *inputs)
    x, mu, sigma, log_pi, *entries = inputs
    with pytest.raises(RuntimeError, match="'mu' to hold at least one component per scale"):
        forward(x, mu[:, :0], sigma[:, :0], log_pi[:, :0], *entries)
    with pytest.raises(RuntimeError, match=r"'mass' to have size 7 in dimension 0 .got 6"):
        backward(encoding, mass, encoding, mass[:6], *inputs)


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_deviations_that_are_not_positive(value):
    """In the backward pass, the kernel gave numbers and the reference NaN."""
    x, mu, sigma, log_pi, *entries = operands()
    encoding, mass = forward(x, mu, sigma, log_pi, *entries)
    wrong = sigma.clone()
    wrong[0, 1, 2] = value
    inputs = x, mu, wrong, log_pi, *entries
    for name, arguments in (
        ("gaussian_encode", inputs),
        ("gaussian_encode_backward", (encoding, mass, encoding, mass, *inputs)),
    ):
        for call in (getattr(torch.ops.torch_gic, name), REFERENCES[name]):
            with pytest.raises((RuntimeError, ValueError), match=f"'sigma' to be positive .got {value:.0f}"):
                call(*arguments)
