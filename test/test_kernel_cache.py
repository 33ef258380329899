"""Kernels compiled at first use: when they are compiled, and which libraries of the cache are loaded."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from copied_package import needs_compiler, run

from torch_gic.kernels import compile

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


def test_a_cache_that_cannot_be_written(pure):
    (pure / "file").write_text("in the way")
    cpu, reason, _, _, _, _ = run(pure, TORCH_GIC_CACHE=pure / "file" / "cache")
    assert cpu == "reference"
    assert "compiling at first use failed" in reason
