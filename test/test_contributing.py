"""What maintainers are promised: every source file is in a stage, names lead somewhere, nothing private of PyG is imported."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path.relative_to(ROOT).as_posix()
    for folder, pattern in (("torch_gic", "*.py"), ("csrc", "*.cpp"), ("csrc", "*.h"))
    for path in sorted((ROOT / folder).rglob(pattern))
    if path.name != "__init__.py"
]


def stages():
    """The name of each stage, the files and folders it consists of, and the file to start at."""
    section = (ROOT / "docs" / "architecture.md").read_text().split("\n## The stages\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return {name.strip(): (re.findall(r"`([\w/.]+)`", paths), first.strip(" `")) for name, _, paths, first in rows}


@pytest.mark.parametrize("source", SOURCES)
def test_is_in_a_stage(source):
    named = {path for paths, _ in stages().values() for path in paths}
    assert {source, str(Path(source).parent)} & named, f"docs/architecture.md has no stage for {source}"


@pytest.mark.parametrize("stage", stages())
def test_stage_exists(stage):
    paths, first = stages()[stage]
    assert all((ROOT / path).exists() for path in paths)
    assert any(path.endswith(f"/{first}") or (ROOT / path / first).is_file() for path in paths), first


def test_every_folder_is_packaged():
    settings = (ROOT / "pyproject.toml").read_text()
    folders = {Path(source).parent for source in SOURCES} | {
        path.parent.relative_to(ROOT) for path in ROOT.glob("torch_gic/**/__init__.py")
    }
    names = {".".join(folder.parts if folder.parts[0] == "torch_gic" else ("torch_gic", *folder.parts)) for folder in folders}
    assert not [name for name in names if f'"{name}"' not in settings]


def test_the_picture_of_the_stages_names_files():
    stages = runpy.run_path(str(ROOT / "docs" / "draw_dataflow.py"))["STAGES"]
    named = [file for *_, files in stages for file in files if file.endswith(".py")]
    assert len(named) > 6
    assert not [file for file in named if not (ROOT / "torch_gic" / file).exists()]


def test_complaints_have_their_tests():
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    tests = "\n".join(path.read_text() for path in (ROOT / "test").rglob("test_*.py"))
    assert not [name for name in named if f"def {name}(" not in tests]


def test_only_documented_names_of_pyg():
    """Modules and names without an underscore, from modules that its documentation lists."""
    documented = {"data", "loader", "nn", "nn.aggr", "nn.models.basic_gnn", "nn.pool.connect", "nn.pool.select", "nn.resolver"}
    documented |= {"transforms", "typing", "utils"}
    documented |= {f"graphgym.{name}" for name in ("config", "loader", "models.layer", "register")}
    for path in (ROOT / "torch_gic").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch_geometric."):
                module = node.module.removeprefix("torch_geometric.")
                assert module in documented, path
                assert not any(name.name.startswith("_") for name in node.names), path
