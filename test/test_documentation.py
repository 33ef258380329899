"""The Python of the README, of the pages and tutorials under docs and of the docstrings runs as it stands there."""

import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import torch_gic

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("how_to/*.md"))]
BLOCKS = {
    f"{page.name}-{number}": block
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE), start=1)
}
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
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


def cells(tutorial, kind):
    return [cell for cell in json.loads(tutorial.read_text())["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial(tutorial, tmp_path):
    """In an interpreter of its own, as a reader who runs all cells."""
    for package in ("matplotlib", "networkx", "sklearn"):
        pytest.importorskip(package)
    script = tmp_path / "tutorial.py"
    script.write_text("\n\n".join("".join(cell["source"]) for cell in cells(tutorial, "code")))
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_is_kept_without_outputs(tutorial):
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(tutorial, "code"))


@pytest.mark.parametrize("name", [name for name in MODULES if not name.startswith(OPTIONAL)])
def test_docstrings(name):
    if name.startswith("torch_gic.visualize"):
        pytest.importorskip("matplotlib").use("Agg")
        pytest.importorskip("networkx")
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", torch_gic.__all__)
def test_public_names_have_an_example(name):
    if name != "__version__":
        assert ">>>" in getattr(torch_gic, name).__doc__
