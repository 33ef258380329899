"""The Python of the README, of the pages under docs and of the docstrings runs as it stands there."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import torch_gic

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {
    f"{page.name}-{number}": block
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), start=1)
}
MODULES = [name for _, name, _ in pkgutil.walk_packages(torch_gic.__path__, "torch_gic.")]
OPTIONAL = ("torch_gic.contrib", "torch_gic.kernels.triton", "torch_gic.csrc")  # what they import may be absent


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the imports of Torch Geometric Pool
@pytest.mark.parametrize("name", BLOCKS)
def test_block(name):
    block = BLOCKS[name]
    needed = re.match(r"# needs (\S+)\n", block)
    if needed:
        pytest.importorskip(needed[1], exc_type=ImportError)
    exec(compile(block, name, "exec"), {"__name__": name})


def test_there_are_blocks():
    pages = {name.rpartition("-")[0] for name in BLOCKS}
    assert pages >= {"README.md", "get_started.md", "in_your_model.md"}


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith(OPTIONAL)])
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", torch_gic.__all__)
def test_public_names_have_an_example(name):
    if name != "__version__":
        assert ">>>" in getattr(torch_gic, name).__doc__


def test_the_version_stands_in_one_place():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == torch_gic.__version__
    for name in ("pyproject.toml", "setup.py", "CITATION.cff", "docs/conf.py"):
        assert torch_gic.__version__ not in (ROOT / name).read_text(), name


def test_accuracies_of_the_readme_are_those_of_the_results():
    found, results = (
        re.findall(r"\d+\.\d\d ± \d+\.\d\d", (ROOT / name).read_text()) for name in ("README.md", "benchmark/RESULTS.md")
    )
    assert not set(found) - set(results)
