"""The paper's notation for networks, such as ``C(64)-P(0.25)-C(128)-P-FC(256)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

PRINTED_ARCHITECTURE = "C(64)-P(0.25)-C(128)-P(0.25)-C(256)-P-FC(256)"
# What makes GIC the network of the paper.
PRINTED_SETTINGS: dict[str, Any] = {
    "architecture": PRINTED_ARCHITECTURE,
    "num_components": 7,
    "num_scales": 7,
    "add_self_loops": True,
    "readout": "last",
    "hidden_channels": None,
    "root_weight": False,
    "scale": 1.0,
    "train_scale": False,
    "pool_kwargs": {"affinity": "laplacian"},
}
DEFAULT_ARCHITECTURE = "C(64)-C(64)-C(64)-P-FC(64)"  # without coarsening, which cost accuracy on validation graphs


class Layer(NamedTuple):
    """``kind`` is "C" (convolution), "P" (coarsening) or "FC" (fully connected); a P without a size means the whole graph."""

    kind: str
    size: float | None


def parse_architecture(architecture: str) -> list[Layer]:
    """Reads the notation and checks that the layers can follow each other."""
    if not isinstance(architecture, str):
        raise TypeError(f"Expected 'architecture' to be a str (got {type(architecture).__name__})")
    layers: list[Layer] = []
    for position, token in enumerate(re.split(r"-(?![^(]*\))", architecture), start=1):  # not inside parentheses
        where = f"layer {position} of 'architecture' {architecture!r}"
        match = re.fullmatch(r"\s*(?:(C|FC)\((\d+)\)|P(?:\((\d*\.?\d+)\))?)\s*", token)
        if match is None:
            raise ValueError(f"Expected {where} to be C(channels), P(ratio), P or FC(channels) (got {token!r})")
        kind = match[1] or "P"
        size = float(match[2] or match[3]) if match[2] or match[3] else None
        if size is not None and (size <= 0 or (kind == "P" and size > 1)):
            raise ValueError(
                f"Expected {where} to have " + ("a ratio in (0, 1]" if kind == "P" else "channels") + f" (got {token!r})"
            )
        if kind != "FC" and any(layer.kind == "FC" for layer in layers):
            raise ValueError(f"Expected {where} to come before every FC (got {token!r})")
        if kind != "FC" and Layer("P", None) in layers:
            raise ValueError(f"Expected {where} to be FC, since the P before it leaves one node per graph (got {token!r})")
        layers.append(Layer(kind, size))
    if any(layer.kind == "P" for layer in layers) and Layer("P", None) not in layers:
        raise ValueError(
            f"Expected 'architecture' {architecture!r}, which coarsens, to end its coarsening with a P without a ratio"
        )
    return layers


def components_of(layers: list[Layer], num_components: int | Sequence[int]) -> list[int]:
    """The number of components of each convolution."""
    count = sum(layer.kind == "C" for layer in layers)
    values = list(num_components) if isinstance(num_components, Sequence) else [num_components] * count
    if len(values) != count:
        raise ValueError(
            f"Expected 'num_components' to be a number, or a list of {count}, one per convolution (got {num_components})"
        )
    return values
