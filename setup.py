"""Builds the C++ kernels if the torch of the user can be imported, that is, with ``pip install --no-build-isolation .``

In pip's isolated builds there is no torch. The wheel then holds the sources: they are compiled at first use, or the
reference operations run (see torch_gic/kernels/library.py).
"""

import ast
from pathlib import Path

from setuptools import setup


def compile_flags() -> list[str]:
    """The flags of torch_gic/kernels/compile.py, read without importing it: it needs torch, and torch may be absent."""
    tree = ast.parse(Path(__file__).with_name("torch_gic").joinpath("kernels", "compile.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "COMPILE_FLAGS":
            return ast.literal_eval(node.value)
    raise RuntimeError("torch_gic/kernels/compile.py has no COMPILE_FLAGS")


def extension() -> dict:
    try:
        from torch.utils.cpp_extension import BuildExtension, CppExtension
    except ImportError:
        print("torch_gic: no torch at build time, so no kernels are compiled now; they will be at first use")
        return {}
    module = CppExtension(
        "torch_gic._C",
        sorted(str(path) for path in Path("csrc").rglob("*.cpp")),
        include_dirs=[str(Path("csrc").resolve())],
        extra_compile_args=compile_flags(),
        py_limited_api=True,
        optional=True,  # without a compiler the package still installs
    )
    return {
        "ext_modules": [module],
        # Only the plain build (no ninja) reports a failure in a way that 'optional' can forgive.
        "cmdclass": {"build_ext": BuildExtension.with_options(use_ninja=False)},
        "options": {"bdist_wheel": {"py_limited_api": "cp310"}},
    }


setup(**extension())
