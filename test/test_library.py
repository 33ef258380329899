"""The chain of kernels: compiled at installation, else at first use, else the reference. Each link in its own process."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import torch_gic
from torch_gic.kernels import compile
from torch_gic.kernels.library import load_kernels, once

ROOT = Path(__file__).parents[1]
PROGRAM = """
import json, torch, torch_gic
info = torch_gic.backend_info()
x = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
edges = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
torch.manual_seed(0)
cluster = torch_gic.VIGMMPool(3, 0.5)(x, edges).select.cluster_index.tolist()
print(json.dumps([info.cpu, info.reason, info.ops["coarsen"], cluster, str(info), torch_gic.__file__]))
"""
has_compiler = shutil.which(os.environ.get("CXX", "c++")) is not None
needs_compiler = pytest.mark.skipif(not has_compiler, reason="no C++ compiler here")


def run(folder, **environment):
    """What backend_info() and a small pooling say in a new process that imports torch_gic from `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(folder)} | {name: str(value) for name, value in environment.items()},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert Path(result[-1]).is_relative_to(folder)
    return result


def copy_package(folder):
    """The Python of the package, set to compile without optimisation: faster, and what is optimised is tested elsewhere."""
    shutil.copytree(ROOT / "torch_gic", folder / "torch_gic", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    library = folder / "torch_gic" / "kernels" / "compile.py"
    library.write_text(library.read_text().replace('"-O3"', '"-O0"'))


@pytest.fixture
def pure(tmp_path):
    """The package as a wheel without a compiled extension has it."""
    copy_package(tmp_path)
    shutil.copytree(ROOT / "csrc", tmp_path / "torch_gic" / "csrc")
    return tmp_path


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What the references say, which are asked for."""
    folder = tmp_path_factory.mktemp("reference")
    copy_package(folder)
    return run(folder, TORCH_GIC_KERNELS="reference")


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


PLANTED = """
#include <cstdio>
__attribute__((constructor)) void run() { std::fclose(std::fopen("MARKER", "w")); }
"""


@needs_compiler
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_planted_library_is_not_executed(pure, reference, tmp_path, mode):
    """Of the right name and checksum, in a folder that others can write to; in one that is ours alone it is our own."""
    cache, marker, source = pure / "cache", tmp_path / "executed", tmp_path / "planted.cpp"
    source.write_text(PLANTED.replace("MARKER", str(marker)))
    program = "from torch_gic.kernels import compile as c; c._build = lambda *a: None; print(c.compiled_library())"
    environment = os.environ | {"PYTHONPATH": str(pure), "TORCH_GIC_CACHE": str(cache)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, cwd=pure, check=True, capture_output=True, text=True)
    library = Path(done.stdout.strip())
    subprocess.run([os.environ.get("CXX", "c++"), "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    library.with_suffix(".sha256").write_text(hashlib.sha256(library.read_bytes()).hexdigest())
    cache.chmod(mode)
    cpu, reason, _, cluster, _, _ = run(pure, TORCH_GIC_CACHE=cache)
    assert cpu == "reference"
    assert cluster == reference[3]
    assert marker.exists() == (mode == 0o700)
    assert ("others can write to the cache folder" in reason) == (mode != 0o700)


@pytest.mark.slow
@needs_compiler
def test_eight_processes_compile_once(pure, tmp_path):
    log, compiler = tmp_path / "log", tmp_path / "counting"
    compiler.write_text(f'#!/bin/sh\ncase " $* " in *" -shared "*) echo once >> {log};; esac\nexec c++ "$@"\n')
    compiler.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(pure), "TORCH_GIC_CACHE": str(pure / "cache"), "CXX": str(compiler)}
    command = [sys.executable, "-c", "import torch_gic; print(torch_gic.backend_info().cpu)"]
    processes = [subprocess.Popen(command, env=environment, cwd=pure, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert {process.communicate()[0].strip() for process in processes} == {"compiled at first use"}
    assert log.read_text().splitlines() == ["once"]
    (library,) = (pure / "cache").glob("*.so")
    library.write_bytes(library.read_bytes()[:10_000])  # would crash whoever loads it
    assert subprocess.run(command, env=environment, cwd=pure, capture_output=True, text=True).returncode == 0
    assert library.stat().st_size > 10_000
    assert len(log.read_text().splitlines()) == 2


@pytest.fixture
def built(monkeypatch, tmp_path):
    """The names of the libraries that would be compiled; each is a text, which is not loaded."""
    names = []

    def build(command, files, libraries, library):
        names.append(library.name)
        library.write_text("a library")
        library.with_suffix(".sha256").write_text(hashlib.sha256(library.read_bytes()).hexdigest())

    monkeypatch.setattr(compile, "_build", build)
    monkeypatch.setenv("TORCH_GIC_CACHE", str(tmp_path / "cache"))
    return names


@needs_compiler
def test_what_a_compiled_library_depends_on(built, monkeypatch, tmp_path):
    """The processor, torch, the compiler and its flags; and each is compiled once."""
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho another compiler\n")
    other.chmod(0o755)
    for change in (
        lambda patch: None,
        lambda patch: patch.setattr(compile.platform, "machine", lambda: "riscv64"),
        lambda patch: patch.setattr(torch, "__version__", "2.99"),
        lambda patch: patch.setenv("CXX", str(other)),
        lambda patch: patch.setenv("CXXFLAGS", "-g"),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            assert compile.compiled_library() == compile.compiled_library()
    assert len(built) == len(set(built)) == 5


@needs_compiler
def test_a_damaged_library_is_compiled_once_more(built):
    library = compile.compiled_library()
    for damage in (lambda: library.write_text("a librarx"), lambda: library.write_text(""), library.unlink):
        damage()
        assert compile.compiled_library() == library
        assert library.read_text() == "a library"
    compile.compiled_library()
    assert len(built) == 4


@needs_compiler
def test_a_library_of_another_user_is_not_loaded(built, monkeypatch):
    compile.compiled_library()
    owner = os.getuid()
    monkeypatch.setattr(compile.os, "getuid", lambda: owner + 1)
    with pytest.raises(RuntimeError, match=r"the cache folder .* belongs to another user"):
        compile.compiled_library()
    monkeypatch.setattr(compile, "cache_folder", lambda: Path(os.environ["TORCH_GIC_CACHE"]))  # ours, but the file is not
    compile.compiled_library()
    assert len(built) == 2


@needs_compiler
def test_a_library_that_lacks_operations_is_removed(pure):
    """It loads, as its checksum is right, but is not ours."""
    program = "import sys; from torch_gic.kernels.compile import compiled_library as c; print(c())"
    environment = os.environ | {"PYTHONPATH": str(pure), "TORCH_GIC_CACHE": str(pure / "cache")}
    shutil.rmtree(pure / "torch_gic" / "csrc")
    (pure / "torch_gic" / "csrc").mkdir()
    (pure / "torch_gic" / "csrc" / "library.cpp").write_text("int nothing() { return 0; }\n")
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=pure, check=True, capture_output=True)
    (library,) = (pure / "cache").glob("*.so")
    cpu, reason, _, cluster, _, _ = run(pure, TORCH_GIC_CACHE=pure / "cache")
    assert cpu == "reference"
    assert "lacks adjacency_powers, bounded_norm" in reason
    assert len(cluster) == 6
    assert not library.exists()


@pytest.mark.slow
@needs_compiler
def test_another_environment_with_the_same_torch_does_not_compile(pure, tmp_path):
    """The package is in another folder there; `python -m torch_gic` has compiled ahead."""
    environment = os.environ | {"PYTHONPATH": str(pure), "TORCH_GIC_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "torch_gic"]
    done = subprocess.run(command, env=environment, cwd=pure, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CPU kernels: compiled at first use")
    assert "compiling its CPU kernels, once" in done.stderr
    other = tmp_path / "other environment"
    shutil.copytree(pure / "torch_gic", other / "torch_gic")
    environment["PYTHONPATH"] = str(other)
    done = subprocess.run(command, env=environment, cwd=other, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("CPU kernels: compiled at first use")
    assert "compiling" not in done.stderr


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


def test_a_cache_that_cannot_be_written(pure):
    (pure / "file").write_text("in the way")
    cpu, reason, _, _, _, _ = run(pure, TORCH_GIC_CACHE=pure / "file" / "cache")
    assert cpu == "reference"
    assert "compiling at first use failed" in reason


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
