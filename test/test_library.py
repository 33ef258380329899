"""The three ways to kernels, each in its own process: compiled at installation, at first use, or the reference."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from copied_package import ROOT, copy_package, needs_compiler, run

import torch_gic
from torch_gic.kernels.library import load_kernels, once


def test_reference_on_request(reference):
    cpu, reason, op, _, text, _ = reference
    assert cpu == "reference"
    assert reason == "TORCH_GIC_KERNELS=reference is set"
    assert op == "PyTorch reference"
    assert "CPU kernels: reference" in text
    assert "because: TORCH_GIC_KERNELS=reference is set" in text


def test_a_slip_of_the_pen(monkeypatch):
    monkeypatch.setenv("TORCH_GIC_KERNELS", "refrence")
    with pytest.raises(ValueError, match=r"TORCH_GIC_KERNELS to be one of .*'no-triton'.* .got 'refrence'"):
        load_kernels.__wrapped__()  # without what it remembers


def test_no_compiler(pure, reference):
    cpu, reason, _, cluster, _, _ = run(pure, CXX="no-such-compiler", TORCH_GIC_CACHE=pure / "cache")
    assert cpu == "reference"
    assert "no-such-compiler not found" in reason
    assert cluster == reference[3]


@needs_compiler
def test_compiled_at_first_use_and_found_again(pure, reference):
    cpu, reason, op, cluster, _, _ = run(pure, TORCH_GIC_CACHE=pure / "cache")
    assert cpu == "compiled at first use", reason
    assert op.startswith("C++")
    (library,) = (pure / "cache").glob("*.so")
    before = library.stat().st_mtime_ns
    assert run(pure, TORCH_GIC_CACHE=pure / "cache")[0] == "compiled at first use"
    assert library.stat().st_mtime_ns == before
    assert cluster == reference[3]
    assert (pure / "cache").stat().st_mode & 0o777 == 0o700


def test_loading_waits_for_whoever_loads():
    calls = []

    def load():
        calls.append(threading.get_ident())
        time.sleep(0.1)
        return calls

    together = once(load)
    with ThreadPoolExecutor(4) as pool:
        assert all(found is calls for found in pool.map(lambda _: together(), range(4)))
    assert len(calls) == 1


@needs_compiler
def test_an_operation_called_by_itself_gets_its_kernel():
    """As from an exported program, which calls operations and nothing else of the package."""
    program = """
import torch, torch_gic
from torch_gic.kernels.library import has_kernel
node = torch.arange(3)
assert not has_kernel("adjacency_powers", "CPU")
result = torch.ops.torch_gic.adjacency_powers(node, node, torch.ones(3), 3, 2, None)
assert has_kernel("adjacency_powers", "CPU")
assert result[1].tolist() == [[1.0, 1.0]] * 3
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


@needs_compiler
def test_sources_that_do_not_compile(pure):
    shutil.rmtree(pure / "torch_gic" / "csrc")
    (pure / "torch_gic" / "csrc").mkdir()
    (pure / "torch_gic" / "csrc" / "library.cpp").write_text("#error this is broken\n")
    cpu, reason, _, cluster, _, _ = run(pure, TORCH_GIC_CACHE=pure / "cache")
    assert cpu == "reference"
    assert "this is broken" in reason
    assert len(cluster) == 6


def test_an_extension_that_does_not_load(pure):
    (pure / "torch_gic" / "_C.abi3.so").write_bytes(b"not a library")
    cpu, reason, _, _, _, _ = run(pure, CXX="no-such-compiler", TORCH_GIC_CACHE=pure / "cache")
    assert cpu == "reference"
    assert "_C.abi3.so did not load" in reason


@pytest.fixture
def install(tmp_path):
    """Installs a copy of the sources (building leaves files behind) and returns the folder it is installed in."""
    source, target = tmp_path / "source", tmp_path / "target"
    copy_package(source)
    shutil.copytree(ROOT / "csrc", source / "csrc")
    for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)

    def run_pip(**environment):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
        done = subprocess.run(
            [*command, "--target", str(target), str(source)], env=os.environ | environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return target

    return run_pip


@needs_compiler
def test_compiled_at_installation(install, reference):
    target = install()
    cpu, reason, op, cluster, _, _ = run(target, CXX="no-such-compiler")
    assert cpu == "compiled extension"
    assert reason is None
    assert op.startswith("C++")
    assert cluster == reference[3]


def test_installs_without_a_compiler(install):
    target = install(CC="no-such-compiler", CXX="no-such-compiler")
    assert run(target, CXX="no-such-compiler")[0] == "reference"


def test_info_here():
    info = torch_gic.backend_info()
    assert info.versions["torch"] == torch.__version__
    coarsening = {"coarsen", "responsibility", "responsibility_backward", "soft_em", "cluster_edges"}
    coarsening |= {"cluster_max", "cluster_max_backward"}
    names = ("bounded_norm", "describe", "field_mean", "gaussian_encode", "outlier_clamp")
    layers = {f"{name}{way}" for name in names for way in ("", "_backward")}
    assert set(info.ops) == {"receptive_fields", "channel_statistics", *layers, *coarsening}
    assert info.cpu in str(info)
