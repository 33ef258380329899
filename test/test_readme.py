"""The Python of the README runs as it stands there."""

import re
from pathlib import Path

import pytest

BLOCKS = re.findall(r"```python\n(.*?)```", Path(__file__).parents[1].joinpath("README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number):
    exec(compile(BLOCKS[number], f"README.md, block {number + 1}", "exec"), {})


def test_there_are_blocks():
    assert len(BLOCKS) == 4
