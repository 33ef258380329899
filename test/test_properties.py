"""What holds for every graph: hypothesis looks for one for which it does not. `make soak` looks for longer."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from properties import PROPERTIES, batches


@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name):
    @settings(max_examples=40, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(batches())
    def check(graphs):
        torch.set_num_threads(1)
        PROPERTIES[name](graphs)

    check()
