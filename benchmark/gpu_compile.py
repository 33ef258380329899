"""Do the GPU kernels compile, and what do they take of a processor? Needs Triton and no GPU.

The launches themselves are recorded, with tensors that have a device, shapes and types but no memory, and what would be
launched is compiled ahead of time for each target.
"""

import argparse
import re
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from torch_gic.triton import KERNELS, gpu

from .conv_layers import COMPONENTS, SCALES
from .measure import print_table

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),  # A100
    "sm_90": GPUTarget("cuda", 90, 32),  # H100
    "sm_100": GPUTarget("cuda", 100, 32),  # B200
    "gfx942": GPUTarget("hip", "gfx942", 64),  # MI300
}
TYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.bool: "i1",
}
CHANNELS = (64, 128)


@contextmanager
def recorded_launches():
    """What would be launched in this context: kernel, arguments, constants. No operation in it may wait for a device."""
    launches, launch = [], gpu.launch
    gpu.launch = lambda kernel, grid, *arguments, **constants: launches.append((kernel, arguments, constants))
    try:
        with FakeTensorMode():
            yield launches
    finally:
        gpu.launch = launch


def encode(dtype, channels, nodes=1000, entries=20_000):
    """Both directions of the encoding."""
    with recorded_launches() as launches:
        x = torch.empty(nodes, channels, dtype=dtype, device="cuda")
        mixture = SCALES, COMPONENTS
        operands = x, x.new_empty(nodes, *mixture), x.new_empty(mixture), x.new_empty(entries, SCALES)
        member, vertex = torch.empty(2, entries, dtype=torch.long, device="cuda")
        outputs = KERNELS["encode_moments"](*operands, member, vertex, nodes)
        KERNELS["encode_moments_backward"](*outputs, *operands, member, vertex)
    return launches


def compile_launch(launch, target):
    """Compiles what a launch would, and returns the result."""
    kernel, arguments, constants = launch
    if "PRECISION" in constants:
        constants = {**constants, "PRECISION": "ieee" if target.backend == "hip" else "tf32x3"}
    signature, values, attributes = {}, {}, {}
    for position, name in enumerate(kernel.arg_names):
        value = constants[name] if name in constants else arguments[position]
        if name in constants:
            signature[name], values[(position,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[name] = f"*{TYPES[value.dtype]}"
            attributes[(position,)] = [["tt.divisibility", 16]]  # as PyTorch allocates
        else:
            signature[name] = "i32"
    return triton.compile(ASTSource(kernel, signature, values, attributes), target=target, options={"num_warps": gpu.WARPS})


def resources(compiled):
    """Registers, bytes that do not fit into them (both of a thread), and bytes of shared memory (of a program)."""
    if "cubin" in compiled.asm:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            Path(file.name).write_bytes(compiled.asm["cubin"])
            command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        registers, spilled = (int(re.search(rf"{name}:(\d+)", text)[1]) for name in ("REG", "STACK"))
    else:
        text = compiled.asm["amdgcn"]
        registers, spilled = (
            int(re.search(rf"\.{name}:\s+(\d+)", text)[1]) for name in ("vgpr_count", "private_segment_fixed_size")
        )
    return registers, spilled, compiled.metadata.shared


def named_launches():
    """Every kernel in every type it has, by a name for the table."""
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for channels in CHANNELS:
            for launch in encode(dtype, channels):
                yield f"{launch[0].__name__.strip('_')}, {TYPES[dtype]}, d = {channels}", launch


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmark.gpu_compile", description=__doc__)
    parser.add_argument("--output", type=Path, help="folder for the PTX, cubin, assembly and hsaco files (default: none)")
    args = parser.parse_args()
    rows, seen = [], set()
    for name, launch in named_launches():
        cells = []
        for target_name, target in TARGETS.items():
            compiled = compile_launch(launch, target)
            registers, spilled, shared = resources(compiled)
            cells.append(f"{registers} / {spilled} / {shared / 1024:.1f}")
            for kind in ("ptx", "cubin", "amdgcn", "hsaco") if args.output else ():
                if kind in compiled.asm:
                    content = compiled.asm[kind]
                    args.output.mkdir(parents=True, exist_ok=True)
                    file = args.output / f"{name.replace(', ', '-').replace(' ', '')}.{target_name}.{kind}"
                    file.write_bytes(content if isinstance(content, bytes) else content.encode())
        if (name, *cells) not in seen:  # the sums over members are launched twice
            seen.add((name, *cells))
            rows.append([name, *cells])
    title = "Registers a thread / bytes spilled a thread / kB of shared memory a program of 4 warps"
    print_table(f"Triton {triton.__version__}. {title}, K = {SCALES}, C = {COMPONENTS}", ["kernel", *TARGETS], rows)


if __name__ == "__main__":
    main()
