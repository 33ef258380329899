"""Compiles the CPU kernels at first use, once per machine and user, and keeps them where nobody else can write."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch

PACKAGE = Path(__file__).parents[1]
# What both builds (setup.py and the one at first use) pass to the compiler. The floor of the stable ABI is torch 2.10.
COMPILE_FLAGS = [
    "-O3",
    "-g0",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
    "-DTORCH_TARGET_VERSION=0x020a000000000000",
]


def compiled_library() -> Path:
    """Compiles ``csrc`` with the system's C++ compiler, or finds the result of an earlier time in the cache.

    Whoever comes while another process or thread compiles waits for it. A file that is not as it was written is not loaded.
    """
    if sys.platform == "win32":
        raise RuntimeError("not supported on Windows")
    sources = PACKAGE / "csrc"
    if not sources.is_dir():
        sources = PACKAGE.parent / "csrc"  # a checkout
    files = sorted(sources.rglob("*.cpp"))
    if not files:
        raise RuntimeError(f"no C++ sources under {sources}")
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        raise RuntimeError(f"no C++ compiler: {os.environ.get('CXX', 'c++')} not found")

    torch_path = Path(torch.__file__).parent
    options = [*COMPILE_FLAGS, "-std=c++20", "-fPIC", *shlex.split(os.environ.get("CXXFLAGS", ""))]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=60).stdout
    key = hashlib.sha256(f"{options} {version} {platform.machine()} {torch.__version__}".encode())
    for file in sorted((*files, *sources.rglob("*.h"))):
        key.update(file.read_bytes())
    # Folders are no part of the key: the same sources and the same torch elsewhere make the same library.
    command = [compiler, *options, f"-I{torch_path / 'include'}", f"-I{sources}"]
    library = cache_folder() / f"torch_gic-{key.hexdigest()[:16]}.so"
    with _locked(library.with_suffix(".lock")):
        if not _intact(library):
            _build(command, files, torch_path / "lib", library)
    return library


def forget(library: Path) -> None:
    """Removes a library that is of no use, so that it is compiled again."""
    for file in (library, _checksum_file(library)):
        file.unlink(missing_ok=True)


def cache_folder() -> Path:
    """Where compiled kernels are kept: what is in it is executed, so nobody else may write there."""
    base = os.environ.get("TORCH_GIC_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torch_gic"
    folder = Path(base)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise RuntimeError(f"the cache folder {folder} belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RuntimeError(f"others can write to the cache folder {folder}: chmod go-w it, or set TORCH_GIC_CACHE to another")
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl  # absent on Windows

    with path.open("w") as file:  # a lock of its own for every opening: threads wait for each other, too
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _checksum_file(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _intact(library: Path) -> bool:
    """A truncated library would crash the process that loads it."""
    if not library.exists() or not _checksum_file(library).exists() or library.stat().st_uid != os.getuid():
        return False
    return hashlib.sha256(library.read_bytes()).hexdigest() == _checksum_file(library).read_text()


def _build(command: list[str], files: list[Path], libraries: Path, library: Path) -> None:
    print("torch_gic: compiling its CPU kernels, once (up to a minute)", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder, ThreadPoolExecutor() as pool:
        objects = [Path(folder) / f"{number}.o" for number in range(len(files))]
        jobs = [[*command, "-c", str(file), "-o", str(out)] for file, out in zip(files, objects, strict=True)]
        list(pool.map(_run, jobs))
        output = Path(folder) / library.name
        _run([*command, "-shared", *map(str, objects), f"-L{libraries}", "-lc10", "-ltorch_cpu", "-o", str(output)])
        _checksum_file(library).write_text(hashlib.sha256(output.read_bytes()).hexdigest())
        output.replace(library)  # another process sees all of it or nothing


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with status {done.returncode}")
