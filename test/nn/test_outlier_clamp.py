"""What the linear part of a convolution sees: ordinary features as they are, and nothing without a bound."""

import pytest
import torch

from torch_gic.encoding.clamp import recall, reference, reference_backward, statistics_reference
from torch_gic.nn import OutlierClamp

X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def clamp(x=X, **kwargs):
    """After one batch."""
    module = OutlierClamp(4, **kwargs).to(x.dtype)
    module(x)
    return module


def features(module, x):
    return module(x)[0]


def with_outlier(size, dtype=torch.float64):
    x = X.to(dtype).clone()
    x[3, 1] = size
    return x


@pytest.mark.parametrize("training", [True, False])
def test_ordinary_features_stay_as_they_are(training):
    x = 0.5 + 2 * X
    torch.testing.assert_close(features(clamp(x).train(training), x), x)
    assert str(OutlierClamp(4)) == "OutlierClamp(4, bound=20.0)"


def test_an_outlier_is_clamped_by_what_was_seen_before():
    module = clamp().eval()
    for size, sign in ((1e3, 1), (-1e15, -1)):
        out = features(module, with_outlier(size))
        torch.testing.assert_close(out[3, 1], X[:, 1].mean() + sign * 20 * X[:, 1].std(unbiased=False))
        torch.testing.assert_close(out[:, [0, 2, 3]], X[:, [0, 2, 3]])
    one = features(clamp(bound=1.0).eval(), with_outlier(9.0))[3, 1]
    torch.testing.assert_close(one, X[:, 1].mean() + X[:, 1].std(unbiased=False))


@pytest.mark.parametrize("size", [1e3, 1e8, 1e18])
def test_an_outlier_in_a_batch_of_training_is_bounded(size):
    """Although it counts in the statistics: no feature vector is longer than a few ordinary ones."""
    out = features(OutlierClamp(4), with_outlier(size, torch.float32))
    assert out.isfinite().all()
    assert out.abs().max() <= 8 * 21


def test_long_vectors_are_scaled_down_as_a_whole():
    x = 1e3 * X + torch.tensor([0.0, 1e3, 0.0, -2e3])
    length = (x.mean(0).square() + x.var(0, unbiased=False)).sum().sqrt()
    out = features(clamp(x), x)
    torch.testing.assert_close(out, 8 / length * x)
    torch.testing.assert_close(out.square().sum(1).mean().sqrt(), torch.tensor(8.0, dtype=torch.float64))
    torch.testing.assert_close(features(clamp(1e3 * x), 1e3 * x), out)


@pytest.mark.parametrize("unit", [1e-3, 1e-12])
def test_short_vectors_are_scaled_up_as_a_whole(unit):
    """Features in a small unit drowned beside the bias, and what learns them learnt too slowly."""
    short = unit * X
    out = features(clamp(short), short)
    torch.testing.assert_close(out.square().sum(1).mean().sqrt(), torch.tensor(1.0, dtype=torch.float64))
    torch.testing.assert_close(out / out.norm(), X / X.norm())


def test_features_of_no_length_stay():
    """Nothing is known of their unit."""
    tiny = 1e-17 * X
    torch.testing.assert_close(features(clamp(tiny), tiny), tiny, rtol=0, atol=0)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.3, 1e-8, 1e6])
@pytest.mark.parametrize("training", [True, False])
def test_constant_channels(training, value):
    """They stay what they are, but for their length, and are zero in units of their deviation."""
    x = torch.full((37, 4), value)
    length = 2 * abs(value) or 1
    out, reciprocal = clamp(x).train(training)(x)
    torch.testing.assert_close(out, x * (min(max(length, 1), 8) / length), rtol=1e-4, atol=0)
    assert torch.equal(reciprocal, torch.zeros(4))


def test_the_first_batch_decides_the_statistics_of_evaluation():
    module, x = OutlierClamp(4), (100 + 7 * X).float()
    out, reciprocal = module(x)
    assert torch.equal(features(module.eval(), x), out)
    mean, deviation = recall(module.running)
    torch.testing.assert_close(mean, x.mean(0))
    torch.testing.assert_close(deviation, x.std(0, unbiased=False))
    torch.testing.assert_close(reciprocal, 1 / out.std(0, unbiased=False))


def test_training_and_evaluation_do_the_same():
    """With what is remembered, also of batches before."""
    module = clamp()
    out = features(module, 5 + 3 * X)
    assert torch.equal(features(module.eval(), 5 + 3 * X), out)


def test_no_gradient_of_the_statistics():
    x = with_outlier(1e3).requires_grad_()
    module = clamp().eval()
    features(module, x).sum().backward()
    assert x.grad[3, 1] == 0
    assert x.grad.sum() == x.numel() - 1
    assert torch.autograd.gradcheck(lambda x: features(module, x), X.clone().requires_grad_())
    assert torch.autograd.gradgradcheck(lambda x: features(module, x), X.clone().requires_grad_())


def test_one_node_is_seen_by_nobody():
    module = OutlierClamp(4).double()
    assert torch.equal(features(module, X[:1]), X[:1])  # before any batch, mean 0 and deviation 1
    assert features(module, 1e9 * X[:1].abs()).max() == 20
    assert (module.running == 0).all()
    assert features(module, X[:0]).shape == (0, 4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    module, x = OutlierClamp(4).to(dtype), 30 * X.to(dtype)
    out = features(module, x)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), features(clamp(30 * X), 30 * X), rtol=0.05, atol=0.05)
    assert torch.equal(features(module.eval(), x), out)


def test_half_precision_of_features_whose_squares_overflow():
    x = (1e4 * X).half()
    out = features(OutlierClamp(4).half(), x)
    assert out.isfinite().all()
    torch.testing.assert_close(out.double(), features(clamp(X * 1e4), X * 1e4), rtol=0.05, atol=0.05)


def test_saved_and_loaded_also_without_a_size(tmp_path):
    module = clamp(300 + X)
    torch.save(module.state_dict(), tmp_path / "clamp.pt")
    for channels in (4, -1):
        other = OutlierClamp(channels).double()
        other.load_state_dict(torch.load(tmp_path / "clamp.pt", weights_only=True))
        assert other.channels == 4
        assert torch.equal(features(other.eval(), X), features(module.eval(), X))
        other.reset_parameters()
        assert torch.equal(features(other, X), X)


def test_takes_its_size_from_the_first_input():
    module = OutlierClamp(-1).double()
    torch.testing.assert_close(features(module, X), X)
    assert (module.channels, module.running.shape, module.running.dtype) == (4, (3, 4), torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_equal_their_references(dtype):
    ops, tolerance = torch.ops.torch_gic, 1e-12 if dtype == torch.float64 else 1e-5
    x, grad = with_outlier(1e3, dtype), X.to(dtype)
    running = ops.channel_statistics(x)
    torch.testing.assert_close(running, statistics_reference(x), rtol=tolerance, atol=tolerance)
    for bound in (0.5, 20.0):
        ours, theirs = ops.outlier_clamp(x, running, bound), reference(x, running, bound)
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
        back = ops.outlier_clamp_backward(grad, x, running, bound), reference_backward(grad, x, running, bound)
        torch.testing.assert_close(*back, rtol=tolerance, atol=tolerance)
    torch.library.opcheck(ops.outlier_clamp, (x.requires_grad_(), running, 2.0))


def test_limits_are_those_of_exact_division():
    """The kernel divided statistics in the type of the features, the reference in float64: limits differed by rounding."""
    generator = torch.Generator().manual_seed(0)
    x = 1e4 * torch.randn(64, 200, generator=generator)
    running = torch.rand(3, 200, generator=generator) + 0.1
    kernel, expected = torch.ops.torch_gic.outlier_clamp(x, running, 0.7), reference(x, running, 0.7)
    assert all(torch.equal(a, b) for a, b in zip(kernel, expected, strict=True))
