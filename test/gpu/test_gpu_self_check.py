"""A GPU kernel is used only while it is right: broken ones are caught before their first use, and only Triton's errors are."""

import importlib
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

import torch_gic
from torch_gic.kernels import guard
from torch_gic.kernels.library import REFERENCES, load_gpu_kernels
from torch_gic.kernels.self_check import INPUTS, mismatch

pytest.importorskip("triton")
import triton

from torch_gic.kernels.triton import KERNELS

FOLDER = Path(torch_gic.__file__).parent / "kernels" / "triton"
CPU = torch.device("cpu")
# One fault for each kernel that is launched, and for what kernels share: the file, an operation
# that must notice, what is right, and what is wrong.
FAULTS = {
    "_segment_sum": ("gpu", "gaussian_encode_backward", "tl.load(ptr + segment + 1)", "tl.load(ptr + segment + 1) - 1"),
    "_encode": ("gaussian_encode", "gaussian_encode", "mean * (2 * one - mean * s1)", "mean * (one - mean * s1)"),
    "responsibilities": ("encode_tiles", "gaussian_encode", "- a / 2 * m", "- a * m"),
    "load_mixture": (
        "encode_tiles",
        "gaussian_encode",
        "at = ((k * components + c) * channels)",
        "at = ((k * components) * channels)",
    ),
    "moment_gradients": (
        "encode_tiles",
        "gaussian_encode_backward",
        "g2 * inverse * inverse * inverse",
        "g2 * inverse * inverse",
    ),
    "_mixture": ("gaussian_encode_backward", "gaussian_encode_backward", "3 * y2", "2 * y2"),
    "_logit_gradients": (
        "gaussian_encode_backward",
        "gaussian_encode_backward",
        "grad_mass + 2 * place + 1",
        "grad_mass + 2 * place",
    ),
    "_feature_gradients": ("gaussian_encode_backward", "gaussian_encode_backward", "to_value + 2 * value", "to_value + value"),
    "_exponents": ("soft_em", "soft_em", "k[:, None] - 2 * b", "k[:, None] - b"),
    "_extend": ("adjacency_powers", "adjacency_powers", "tl.minimum(edge + 1, last_edge)", "tl.minimum(edge + 2, last_edge)"),
    "sum_before": ("graph_blocks", "coarsen", "one < first_key[None, :]", "one > first_key[None, :]"),
    "_merge": ("merge_clusters", "coarsen", "node_weight + first + i", "node_weight + i"),
    "_move": ("move_nodes", "coarsen", "degree - own, w", "degree + own, w"),
    "_preferences": ("merge_clusters", "coarsen", "on_grid(together - apart)", "on_grid(apart - together)"),
    "_pair_up": ("merge_clusters", "coarsen", "place % 2 == 1", "place % 2 == 0"),
    "_link": ("move_nodes", "coarsen", "degree += link", "degree = link"),
    "_measure": ("move_nodes", "coarsen", "inside, tl.load(reals + r,", "inside, 2 * tl.load(reals + r,"),
    "_served": ("move_nodes", "coarsen", "wishes & same & ", "wishes & "),
    "_wishes": ("move_nodes", "coarsen", "degree[None, :] - 2 * link", "degree[None, :] - link"),
    "_together": ("move_nodes", "coarsen", "position <= ", "position < "),
    "_multiply": ("soft_em", "soft_em", "total += factor", "total -= factor"),
    "_sum": ("soft_em", "soft_em", "wpb / s / s", "wpb / s"),
    "_assign": ("soft_em", "soft_em", "tl.load(beta + g) / 2", "tl.load(beta + g) / 20"),
    "_choose": ("soft_em", "soft_em", "tl.where(here > best, where, at)", "tl.where(here < best, where, at)"),
}


@pytest.fixture(autouse=True)
def _fresh():
    with mock.patch.dict(guard.FAILED, clear=True), mock.patch.object(guard, "_checked", set()):
        yield


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_are_right(name, dtype):
    assert mismatch(name, KERNELS[name], REFERENCES[name], CPU, dtype) is None


@pytest.mark.parametrize("broken", sorted(FAULTS))
def test_a_fault_in_a_kernel_is_found(broken, tmp_path, monkeypatch):
    """In a copy of all kernels."""
    file, name, right, wrong = FAULTS[broken]
    package = f"broken{broken}"
    shutil.copytree(FOLDER, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (tmp_path / package).glob("*.py"):
        source = path.read_text().replace("torch_gic.kernels.triton", package)
        if path.stem == file:
            before, start, after = source.partition(f"def {broken}(")
            assert right in after, f"no {right!r} in {broken} of {path.name}: give its fault anew"
            source = before + start + after.replace(right, wrong, 1)
        path.write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    kernel = importlib.import_module(package).KERNELS[name]
    assert mismatch(name, kernel, REFERENCES[name], CPU, torch.float32) is not None
    inputs = INPUTS[name][0](torch.float32)
    run = guard.guarded(name, kernel, REFERENCES[name])
    with pytest.warns(UserWarning, match=f"'{name}' runs as reference on cpu, which is slower: Triton failed"):
        outputs = run(*inputs)
    for value, wanted in zip(*map(_tensors, (outputs, REFERENCES[name](*inputs))), strict=True):
        assert torch.equal(value, wanted)


def _tensors(output):
    return [output] if isinstance(output, torch.Tensor) else output


def test_every_kernel_has_a_fault():
    launched = set()
    for path in FOLDER.glob("*.py"):
        launched |= set(re.findall(r"launch\(\s*(_\w+)", path.read_text()))
    assert launched
    assert launched <= set(FAULTS)
    assert set(INPUTS) == set(KERNELS)


def encode(kernel):
    return guard.guarded("gaussian_encode", kernel, REFERENCES["gaussian_encode"]), INPUTS["gaussian_encode"][0]


def raising(error, after=1):
    """A kernel that fails after so many calls; the first one is the check."""
    calls = []

    def kernel(*arguments):
        calls.append(arguments)
        if len(calls) > after:
            raise error
        return REFERENCES["gaussian_encode"](*arguments)

    return kernel, calls


def test_it_is_checked_once_per_device_and_type():
    kernel, calls = raising(None, after=100)
    run, inputs = encode(kernel)
    for _ in range(3):
        run(*inputs(torch.float32))
    assert len(calls) == 4
    run(*inputs(torch.float64))
    assert len(calls) == 6


@pytest.mark.parametrize("after", [0, 1])  # in the check, and later
@pytest.mark.parametrize(
    "error",
    [
        triton.runtime.errors.PTXASError("unknown GPU"),
        triton.runtime.errors.OutOfResources(10, 5, "shared memory"),
        RuntimeError("Triton Error [CUDA]: no kernel image is available for execution on the device"),
    ],
)
def test_errors_of_triton_give_way_to_the_reference(error, after):
    kernel, calls = raising(error, after)
    run, inputs = encode(kernel)
    arguments = inputs(torch.float32)
    with pytest.warns(UserWarning, match=r"'gaussian_encode' runs as reference on cpu, which is slower: Triton failed"):
        outputs = run(*arguments)
    again = run(*arguments)  # without a warning, and without another attempt
    assert len(calls) == after + 1
    for a, b, c in zip(outputs, again, REFERENCES["gaussian_encode"](*arguments), strict=True):
        assert torch.equal(a, c)
        assert torch.equal(b, c)
    info = torch_gic.backend_info()
    assert "gaussian_encode failed on cpu (" in str(info)
    assert info.ops["gaussian_encode"].endswith("PyTorch reference on GPUs")
    assert info.ops["gaussian_encode_backward"].endswith("Triton on GPUs")


def test_errors_raised_inside_triton():
    """Such as of the C compiler that it calls, which may be absent."""
    run, inputs = encode(lambda *arguments: triton.next_power_of_2(None))
    with pytest.warns(UserWarning, match="Triton failed"):
        run(*inputs(torch.float32))


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"),
        torch.AcceleratorError("CUDA error: an illegal memory access was encountered"),
        torch.OutOfMemoryError("full"),
        RuntimeError("not of Triton"),
        ValueError("bad 'x'"),
    ],
)
def test_other_errors_are_errors(error, after):
    run, inputs = encode(raising(error, after)[0])
    with pytest.raises(type(error), match=re.escape(str(error))):
        run(*inputs(torch.float32))
    assert guard.FAILED == {}


def test_a_kernel_that_gives_nan_or_another_shape():
    reference = REFERENCES["gaussian_encode"]
    run, inputs = encode(lambda *arguments: [value * torch.nan for value in reference(*arguments)])
    with pytest.warns(UserWarning, match="output 0 differs by nan of its largest number"):
        assert run(*inputs(torch.float32))[0].isfinite().all()
    found = mismatch("gaussian_encode", lambda *inputs: [v[:1] for v in reference(*inputs)], reference, CPU, torch.float32)
    assert "output 0 is torch.float32 [1, 2, 3, 2, 20], not torch.float32 [4, 2, 3, 2, 20]" in found


def test_the_check_draws_no_random_numbers():
    state = torch.get_rng_state()
    for make_inputs in itertools.chain(*INPUTS.values()):
        make_inputs(torch.float32)
    assert torch.equal(torch.get_rng_state(), state)


def test_triton_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("TORCH_GIC_KERNELS", "no-triton")
    kernels = load_gpu_kernels.__wrapped__()  # without what it remembers
    assert (kernels.active, kernels.reason) == ("reference", "TORCH_GIC_KERNELS=no-triton is set")
    program = (
        "import torch_gic; info = torch_gic.backend_info(); print(info.gpu, info.cpu == 'reference', info.ops['soft_em'])"
    )
    root = Path(torch_gic.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.split()[0] == "reference"
    assert "Triton" not in done.stdout
