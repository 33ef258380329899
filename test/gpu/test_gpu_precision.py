"""The precision of products that the kernels ask for."""

import torch


def as_tf32(value):
    """Rounded to the ten bits of TF32."""
    bits = value.view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_three_products_of_ten_bits_are_as_good_as_float32():
    """What ``tf32x3`` computes on NVIDIA's matrix units, which the interpreter does not imitate."""
    generator = torch.Generator().manual_seed(0)
    p, x = torch.rand(49, 500, generator=generator), 10 * torch.randn(500, 64, generator=generator)
    exact = p.double() @ x.double()
    high, low = zip(*((as_tf32(v), as_tf32(v - as_tf32(v))) for v in (p, x)), strict=True)
    products = low[0] @ high[1] + high[0] @ low[1] + high[0] @ high[1]
    error = [float((product - exact).abs().max() / exact.abs().max()) for product in (high[0] @ high[1], products, p @ x)]
    assert error[0] > 1e-5  # one product would not do
    assert error[1] < 1e-6
    assert error[1] < 4 * error[2]
