"""Do the GPU kernels compile, and what do they take of a processor? Needs Triton, and no GPU.

The launches themselves are recorded, and what would be launched is compiled ahead of time for each target. It is an error if
a kernel needs more registers than there are (spills), or adds by atomics, whose order nobody knows.
"""

import itertools
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from torch_gic.coarsening import structural_rank, undirected_graph
from torch_gic.coarsening.soft import cut_affinity
from torch_gic.kernels.triton import KERNELS, gpu
from torch_gic.kernels.triton.merge_clusters import merge_clusters
from torch_gic.kernels.triton.move_nodes import move_nodes

from ..common.command import make_parser, print_table
from ..common.layers import COMPONENTS, SCALES

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),  # A100
    "sm_90": GPUTarget("cuda", 90, 32),  # H100
    "sm_100": GPUTarget("cuda", 100, 32),  # B200
    "gfx942": GPUTarget("hip", "gfx942", 64),  # MI300
}
TYPES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.int64: "i64",
}
CHANNELS = (64, 128)
NODES = (64, 512)  # of a graph that is coarsened: a common one, and the largest that gets a program
QUICK_LAUNCHES = 4
FILES = ("ptx", "cubin", "amdgcn", "hsaco")


@contextmanager
def recorded_launches(fake=True):
    """What would be launched in this context: kernel, arguments, constants. With tensors that have a device, a shape and a
    type but no values (``fake``), no operation in it can wait for the device."""
    launches, launch = [], gpu.launch
    gpu.launch = lambda kernel, grid, *arguments, **constants: launches.append((kernel, arguments, constants))
    try:
        with FakeTensorMode() if fake else nullcontext():
            yield launches
    finally:
        gpu.launch = launch


def encode(dtype, channels, components=COMPONENTS, nodes=1000, entries=20_000):
    """Both directions of the encoding."""
    with recorded_launches() as launches:
        x = torch.empty(nodes, channels, dtype=dtype, device="cuda")
        mu = x.new_empty(SCALES, components, channels)
        mixture = mu, torch.empty_like(mu), x.new_empty(SCALES, components)
        member, rowptr = (torch.empty(size, dtype=torch.long, device="cuda") for size in (entries, nodes + 1))
        operands = x, *mixture, x.new_empty(entries, SCALES), member, rowptr
        encoding, mass = KERNELS["gaussian_encode"](*operands)
        KERNELS["gaussian_encode_backward"](encoding, mass, encoding, mass, *operands)
    return launches


def fields_and_coarsening(nodes, clusters=16):
    """The fields of a ring, and its coarsening. Sizes depend on values there, so these tensors have some."""
    node = torch.arange(nodes)
    edge_index = torch.stack([node, node.roll(1)])
    batch, ptr, offset = torch.zeros_like(node), torch.tensor([0, nodes]), torch.tensor([0, clusters])
    graph = undirected_graph(edge_index, torch.ones(nodes), batch, 1)
    weight, beta = torch.ones(nodes, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    affinity, rank = cut_affinity(graph, weight, batch, 1), structural_rank(graph, weight, batch)
    settings = weight, rank, ptr, offset
    with recorded_launches(fake=False) as launches:
        KERNELS["adjacency_powers"](*edge_index, torch.ones(nodes), nodes, 2, None)
        KERNELS["soft_em"](*affinity, *settings, beta, node % clusters, 1)
        merge_clusters(graph, *settings)
        move_nodes(graph, *settings, node % clusters, 2)
    return launches


def named_launches():
    """Every kernel in every type it has, by a name for the table."""
    for dtype, channels, components in product((torch.float32, torch.float64), CHANNELS, (COMPONENTS, 1)):
        for kernel, arguments, constants in encode(dtype, channels, components):
            name = f"{kernel.__name__.strip('_')}, {TYPES[dtype]}, d = {channels}, C = {components}"
            if "width" in constants:
                name = f"segment_sum, {TYPES[dtype]}, width {constants['width']}"
            yield name, (kernel, arguments, constants)
    for nodes in NODES:
        for kernel, arguments, constants in fields_and_coarsening(nodes):
            name = f"{kernel.__name__.strip('_')}, fp64"
            if "BLOCK" in constants:
                name += f", {nodes} nodes"
            yield name, (kernel, arguments, constants)


def compile_launch(launch, target):
    """Compiles what a launch would, and returns the result."""
    kernel, arguments, constants = launch
    if "PRECISION" in constants:
        constants = {**constants, "PRECISION": "ieee" if target.backend == "hip" else "tf32x3"}
    signature, values, attributes = {}, {}, {}
    for position, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name], values[(position,)] = "constexpr", constants[name]
        elif isinstance(arguments[position], torch.Tensor):
            signature[name] = f"*{TYPES[arguments[position].dtype]}"
            attributes[(position,)] = [["tt.divisibility", 16]]  # as PyTorch allocates
        else:
            signature[name] = "i32"
    options = {name: constants.get(name, value) for name, value in gpu.OPTIONS.items()}
    return triton.compile(ASTSource(kernel, signature, values, attributes), target=target, options=options)


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


def has_atomics(compiled):
    code = compiled.asm.get("ptx") or compiled.asm["amdgcn"]
    return re.search(r"^\s*(@!?%p\d+\s+)?(atom|red)\.|_atomic_", code, flags=re.MULTILINE) is not None


def main():
    parser = make_parser("gpu.compile", __doc__)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS), help="(default: all)")
    parser.add_argument("--output", type=Path, help=f"folder for the {', '.join(FILES)} files (default: none are kept)")
    parser.add_argument("--quick", action="store_true", help="one target and the first kernels only")
    args = parser.parse_args()
    if args.quick:
        args.targets = args.targets[:1]
    rows, errors = {}, []
    for name, launch in itertools.islice(named_launches(), QUICK_LAUNCHES if args.quick else None):
        if name in rows:
            continue
        rows[name] = [name]
        for target in args.targets:
            compiled = compile_launch(launch, TARGETS[target])
            registers, spilled, shared = resources(compiled)
            rows[name].append(f"{registers} / {spilled} / {shared / 1024:.1f}")
            if spilled > 0:
                errors.append(f"{name} spills {spilled} bytes on {target}")
            if has_atomics(compiled):
                errors.append(f"{name} adds by atomics on {target}")
            if args.output:
                args.output.mkdir(parents=True, exist_ok=True)
                for kind in set(FILES) & set(compiled.asm):
                    content = compiled.asm[kind]
                    file = args.output / f"{re.sub('[ ,=]+', '-', name)}.{target}.{kind}"
                    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    title = "Registers / bytes spilled, both of a thread / kB of shared memory of a program"
    title += f"; K = {SCALES}, Triton {triton.__version__}"
    print_table(title, ["kernel", *args.targets], rows.values())
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
