"""``python -m torch_gic`` compiles the kernels, if they are not there yet, and says what computes each operation."""

from torch_gic import backend_info

if __name__ == "__main__":
    print(backend_info())
