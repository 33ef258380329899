"""What CONTRIBUTING.md promises: tests that it names exist, and nothing private of PyG is imported."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_named_tests_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tests = "\n".join(path.read_text() for path in (ROOT / "test").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > 20
    assert not [name for name in named if f"def {name}(" not in tests]


def test_only_documented_names_of_pyg():
    """Modules and names without an underscore, from modules that its documentation lists."""
    documented = {"data", "nn", "nn.aggr", "nn.pool.connect", "nn.pool.select", "nn.resolver", "transforms", "typing", "utils"}
    for path in (ROOT / "torch_gic").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch_geometric."):
                module = node.module.removeprefix("torch_geometric.")
                assert module in documented, path
                assert not any(name.name.startswith("_") for name in node.names), path
