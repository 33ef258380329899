import pytest
import torch

from torch_gic.coarsening.segments import doubled_sums, running_sum


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (64,), (3, 100), (0, 5)])
def test_sums_in_steps_of_doubled_length(shape):
    """What deterministic mode takes on GPUs, where PyTorch refuses ``cumsum``."""
    value = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(doubled_sums(value), value.cumsum(-1))
    assert torch.equal(running_sum(value), value.cumsum(-1))
