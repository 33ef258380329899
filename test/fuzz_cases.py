"""Calls of the public functions and of the raw operations with arguments of which some are not what they should be."""

import random

import torch
from fuzz_public import public
from fuzz_raw import raw

NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 1000, 2**31, 2**62, 2**63 - 1, 0.5, -1.0, float("nan"), float("inf"), True, None, "x")
VALUES = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 1e-45, 1e30, 3e38)
INDICES = (-1, -(2**62), 2**31, 2**62, 10**9, 7)
# What stays right: so many iterations are done as are asked for, and a gradient is that of the encoding it is given.
KEPT = {
    "soft_em": {10},
    "coarsen": {7},
    "gaussian_encode_backward": {2, 3},
    "field_mean_backward": {1, 2},
    "cluster_max_backward": {2},
}
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.bool, torch.complex64)


def corrupt(draw, value):
    """Something else in the place of an argument."""
    if not isinstance(value, torch.Tensor):
        return draw.choice(NUMBERS) if not isinstance(value, tuple) else tuple(corrupt(draw, part) for part in value)
    kind = draw.randrange(12)
    if kind == 0:
        return value.to(draw.choice(DTYPES))
    if kind == 1:
        return value[: value.size(0) // 2] if value.dim() > 0 else value
    if kind == 2:
        return torch.cat([value, value])
    if kind == 3:
        return value.unsqueeze(draw.randrange(2)) if value.dim() > 0 else value
    if kind == 4:
        return value.flatten()
    if kind == 5:
        return value.new_empty((0,) * value.dim())
    if kind == 6:
        return draw.choice((None, 3, "x", [1, 2], value.tolist()))
    if kind == 7:  # the same numbers, elsewhere in memory
        return torch.stack([value, value], dim=-1)[..., 0]
    if kind == 8:
        return value.to_sparse() if value.dim() > 0 else value
    if kind == 9:
        return value.flip(0) if value.dim() > 0 else value
    value = value.clone()
    if value.numel() > 0:
        flat = value.view(-1)
        for _ in range(draw.choice((1, 1, 3))):
            place = draw.randrange(flat.numel())
            flat[place] = draw.choice(VALUES) if value.is_floating_point() else draw.choice(INDICES)
    return value


def case(number):
    """The function, its arguments and whether all of them are right, of a case by its number alone."""
    draw = random.Random(number)
    torch.manual_seed(number)
    is_raw = draw.random() < 0.5
    function, arguments = (raw if is_raw else public)(draw)
    named = dict(enumerate(arguments)) if is_raw else dict(arguments)
    kept = KEPT.get(function._qualified_op_name.rpartition("::")[2], set()) if is_raw else {"size", "count"}
    wrong = draw.sample(sorted(set(named) - kept), min(len(named), draw.choice((0, 1, 1, 1, 2))))
    for name in wrong:
        value = corrupt(draw, named[name])
        named[name] = int(value) if is_raw and value is True else value  # as the dispatcher takes it
    return function, named, is_raw, wrong
