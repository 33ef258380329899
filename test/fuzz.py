"""Calls everything with arguments that are not what they should be, for as long as you like: `make fuzz MINUTES=30`.

Cases run in a process that is watched. If it dies, or says nothing for a while, the number of the case is reported. What the
kernels return is compared with the references. An argument that is wrong may be refused, by an error that says what was
expected. It may not crash, hang, or give other results than the reference. Ends with 1 if one did.
"""

import argparse
import collections
import os
import resource
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch

CASES = 2000  # of one process
SILENCE = 60  # seconds, after which a process hangs
MEMORY = 16 << 30  # bytes of a process
CLEAR = (ValueError, TypeError, NotImplementedError, IndexError)
MEMORY_ERRORS = ("can't allocate memory", "Storage size calculation overflowed", "without overflow")  # of PyTorch
DIVISORS = {"gaussian_encode": (2,), "gaussian_encode_backward": (6,)}  # kernels multiply by 1 / sigma, which may overflow
KINDS = ("crash", "hang", "difference", "unclear")


def run(number):
    """What a case is: "right", "refused" or one of the kinds of failure, and more about it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from fuzz_cases import case

    function, arguments, is_raw, wrong = case(number)
    what = f"{getattr(function, '__name__', None) or type(function).__name__}, wrong: {wrong}"
    try:
        out = call_raw(function, arguments) if is_raw else call_public(function, arguments)
    except AssertionError as error:
        return "difference", f"{what}: {''.join(traceback.format_exception(error)[-2:])}"
    except (MemoryError, torch.OutOfMemoryError):
        return "refused", what
    except Exception as error:
        said = str(error)
        no_tensor = isinstance(error, AttributeError) and "Tensor" not in said  # a word in the place of a tensor, for instance
        clear = (
            is_raw
            or no_tensor
            or "Expected '" in said
            or isinstance(error, CLEAR)
            or any(words in said for words in MEMORY_ERRORS)
        )
        if wrong and clear:
            return "refused", what
        return "unclear", f"{what}: {type(error).__name__}: {said.strip()} ({_where(error)})"
    return out, what


def _where(error):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "torch_gic" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside of the package"


def call_raw(function, arguments):
    """By the kernel, then by the reference: both refuse, the kernel alone does, or both return the same."""
    from torch_gic.kernels.library import REFERENCES

    values = [arguments[place] for place in range(len(arguments))]
    kept = [value.clone() if isinstance(value, torch.Tensor) else value for value in values]
    out = function(*values)
    for value, before in zip(values, kept, strict=True):
        same = not isinstance(value, torch.Tensor) or torch.equal(torch.nan_to_num(value), torch.nan_to_num(before))
        assert same, "an argument was changed"
    name = function._qualified_op_name.rpartition("::")[2]
    try:
        expected = REFERENCES[name](*values)
    except Exception as error:
        raise AssertionError(f"the reference refuses what the kernel takes: {type(error).__name__}: {error}") from None
    compare(name, out, expected, values)
    return "right"


def call_public(function, arguments):
    from properties import BesideReferences

    with BesideReferences(compare):
        out = function(**arguments)
    first = out[0] if isinstance(out, tuple) else out
    if isinstance(first, torch.Tensor) and first.requires_grad:
        first.sum().backward()
    return "right"


def compare(name, ours, theirs, arguments):
    from properties import as_tuple, close, largest_term

    divisors = [arguments[place].reciprocal() for place in DIVISORS.get(name, ())]
    scale = largest_term([*arguments, *divisors])
    for value, wanted in zip(as_tuple(ours), as_tuple(theirs), strict=True):
        assert value.dtype == wanted.dtype, f"{name}: {value.dtype} instead of {wanted.dtype}"
        assert value.shape == wanted.shape, f"{name}: {list(value.shape)} instead of {list(wanted.shape)}"
        if not value.is_floating_point():
            assert torch.equal(value, wanted), f"{name}: other numbers"
        elif scale < 1e12:  # else sums of numbers that cancel
            assert torch.equal(value.isfinite(), wanted.isfinite()), f"{name}: other numbers are finite"
            finite = value.isfinite()
            close(value[finite], wanted[finite], 1e-3, floor=1e-6 * scale)


def work(first, count):
    """The process that is watched: says each case before it begins."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)
    import fuzz_cases  # noqa: F401  # before time is taken, as are the kernels

    import torch_gic

    torch_gic.backend_info()
    for number in range(first, first + count):
        print("begin", number, flush=True)
        kind, what = run(number)
        print("end", kind, repr(what), flush=True)


def watch(first, count, seconds):
    """Yields the kind of each case, its number and more about it; ends with a case that ended the process."""
    command = [sys.executable, "-W", "ignore", __file__, "--worker", str(first), str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.set_blocking(process.stdout.fileno(), False)
    number, rest, heard, begun = None, b"", time.monotonic(), time.monotonic()
    try:
        while True:
            ended = process.poll()
            rest += process.stdout.read() or b""
            *lines, rest = rest.split(b"\n")
            for line in lines:
                heard = time.monotonic()
                word, _, more = line.decode().partition(" ")
                if word == "begin":
                    number = int(more)
                elif word == "end":
                    kind, _, what = more.partition(" ")
                    yield kind, number, what
                    number = None
            if ended is not None:
                if ended != 0 or number is not None:
                    yield "crash", number, f"status {ended}: {process.stderr.read().decode()[-300:]}"
                return
            if time.monotonic() - heard > SILENCE and number is not None:
                yield "hang", number, ""
                return
            if time.monotonic() - begun > seconds:
                return
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def main():
    parser = argparse.ArgumentParser(prog=f"python {Path(__file__).name}", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default: %(default)s)")
    parser.add_argument("--case", type=int, help="run this one alone, in this process")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker is not None:
        return work(*args.worker)
    if args.case is not None:
        return print(*run(args.case), sep="\n")
    end, next_case, counts, shown = time.monotonic() + 60 * args.minutes, args.first, collections.Counter(), set()
    while time.monotonic() < end:
        for kind, number, what in watch(next_case, CASES, end - time.monotonic()):
            counts[kind] += 1
            next_case = (next_case if number is None else number) + 1
            place = what.partition(" object at ")[0].rpartition(":")[2] if kind == "unclear" else what
            if kind in KINDS and (kind in ("crash", "hang") or (kind, place) not in shown):
                shown.add((kind, place))
                print(f"{kind}, --case {number}: {what}", flush=True)
    print(f"{sum(counts.values())} cases: {counts['right']} right, {counts['refused']} refused, "
          + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))  # fmt: skip
    return 1 if any(counts[kind] for kind in KINDS) else 0


if __name__ == "__main__":
    sys.exit(main())
