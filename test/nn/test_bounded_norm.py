"""What the normalisation before the mixture promises, for features of any unit, mean and number."""

import pytest
import torch

from torch_gic.encoding.normalize import soft_bound
from torch_gic.nn import BoundedNorm

X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def norm(dtype=torch.float64, **kwargs):
    return BoundedNorm(4, **kwargs).to(dtype)


def test_formula():
    z = (X - X.mean(0)) / X.std(0, unbiased=False)
    torch.testing.assert_close(norm()(X), z / (1 + z.square() / 25).sqrt(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(norm(bound=1.0)(X), z / (1 + z.square()).sqrt(), rtol=1e-6, atol=1e-6)
    assert str(norm()) == "BoundedNorm(4, bound=5.0)"
    x = X.clone().requires_grad_()
    assert torch.autograd.gradcheck(norm(), x)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neither_unit_nor_mean_matters(dtype, training):
    x = X.to(dtype)

    def normalised(x):
        module = norm(dtype)
        module(x)
        return module.train(training)(x)

    expected = normalised(x)
    for factor in (1e-12, 1e-3, 1e3, 1e12):
        torch.testing.assert_close(normalised(factor * x), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(normalised(x + 10), expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(normalised(x + 1e3), expected, rtol=0.01, atol=0.002)


@pytest.mark.parametrize("value", [0.0, 1.0, -7.3, 1e-8, 1e6, 1e15])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_features_give_zeros(value, dtype):
    x = torch.full((37, 4), value, dtype=dtype)
    for module in (norm(dtype), norm(dtype)):
        assert module(x).abs().max() < 1e-2
        assert module.eval()(x).abs().max() < 1e-2
    x = x.requires_grad_()
    module.train()(x).sum().backward()
    assert x.grad.isfinite().all()


def test_the_first_batch_decides_the_statistics_of_evaluation():
    module, x = norm(), 100 + 7 * X
    expected = module(x)
    torch.testing.assert_close(module.eval()(x), expected)
    # A second batch moves them, by no more than its share.
    module.train()(x + 700)
    mean = module.running[0] / module.running[2]
    torch.testing.assert_close(mean, x.mean(0) + 700 / 1.9)
    assert module.eval()(x).abs().max() < 5


def test_before_any_batch_features_are_taken_as_normalised():
    torch.testing.assert_close(norm().eval()(X), soft_bound(X, 5.0), rtol=1e-6, atol=1e-6)


def test_one_node():
    """Its own mean would make it zero: it is normalised by what was seen before, and seen by nobody."""
    module = norm()
    torch.testing.assert_close(module(X[:1]), soft_bound(X[:1], 5.0), rtol=1e-6, atol=1e-6)
    assert (module.running == 0).all()
    module(X)
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    torch.testing.assert_close(module(X[:1]), module.eval()(X)[:1])
    assert all(torch.equal(buffer, before[name]) for name, buffer in module.named_buffers())
    assert module.train()(X[:0]).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_precision(dtype):
    module = norm(dtype)
    out = module(X.to(dtype))
    assert out.dtype == (dtype if dtype in (torch.float32, torch.float64) else torch.float32)
    torch.testing.assert_close(out.double(), norm()(X), rtol=0, atol=0.05 if dtype == torch.bfloat16 else 0.01)
    assert module.running.dtype == dtype
    later = module.eval()(X.to(dtype))
    torch.testing.assert_close(later.double(), norm()(X), rtol=0, atol=0.1 if dtype == torch.bfloat16 else 0.02)


@pytest.mark.parametrize("size", [1.0, 1e4, 1e12, 1e18])
@pytest.mark.parametrize("training", [True, False])
def test_nothing_leaves_the_bound(training, size):
    module = norm(torch.float32, bound=5.0)
    module(X.float())
    x = X.float().clone()
    x[3, 1] = size
    out = module.train(training)(x)
    assert out.isfinite().all()
    assert out.abs().max() <= 5 * (1 + 1e-6)
    if not training and size > 1e3:
        assert out[3, 1] > 4.99


def test_saved_and_loaded(tmp_path):
    module = norm()
    module(3 + X)
    torch.save(module.state_dict(), tmp_path / "norm.pt")
    other = norm()
    assert not torch.allclose(other.eval()(X), module.eval()(X))
    other.load_state_dict(torch.load(tmp_path / "norm.pt", weights_only=True))
    assert torch.equal(other(X), module(X))
    other.reset_parameters()
    assert torch.equal(other(X), norm().eval()(X))
