"""Names and layouts of arrays in PyTorch, which layers return from `Layer.torch_layout`.

This module does not import layers. `default` is for layers whose arrays have the names and shapes of PyTorch's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from . import _paths
from ._paths import BATCH, Path


@dataclasses.dataclass(frozen=True)
class Layout:
    """Converts an array to PyTorch's layout and back: two functions, which use only methods of the array."""

    to_torch: Callable[[Any], Any]
    from_torch: Callable[[Any], Any]


SAME = Layout(lambda x: x, lambda x: x)
#: matrices (in, out), which PyTorch stores as (out, in); vectors are unchanged
TRANSPOSED = Layout(lambda x: x.T, lambda x: x.T)
#: kernels of convolutions (*space, in, out), which PyTorch stores as (out, in, *space)
KERNEL = Layout(
    lambda x: x.transpose((x.ndim - 1, x.ndim - 2, *range(x.ndim - 2))),
    lambda x: x.transpose((*range(2, x.ndim), 1, 0)),
)


def transposed_kernel(groups: int) -> Layout:
    """Kernels of transposed convolutions (*space, in / groups, out), which PyTorch stores as (in, out / groups, *space)
    with the spatial axes reversed.
    """

    def to_torch(x: Any) -> Any:
        *space, ins, outs = x.shape
        n = len(space)
        cut = x.reshape((*space, ins, groups, outs // groups)).transpose((n + 1, n, n + 2, *range(n)))
        return cut.reshape((groups * ins, outs // groups, *space))[(..., *[slice(None, None, -1)] * n)]

    def from_torch(x: Any) -> Any:
        ins, outs, *space = x.shape
        n = len(space)
        cut = x[(..., *[slice(None, None, -1)] * n)].reshape((groups, ins // groups, outs, *space))
        return cut.transpose((*range(3, 3 + n), 1, 0, 2)).reshape((*space, ins // groups, groups * outs))

    return Layout(to_torch, from_torch)


@dataclasses.dataclass(frozen=True)
class Source:
    """An array of a layer, by its path below the layer; `place` indexes leading axes, for blocks of a `Stack`."""

    path: Path
    place: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A PyTorch tensor and the arrays that it is the concatenation of, along its first axis.

    Attributes:
      name: its name in a state dict, below the layer's own.
      sources: the arrays. None: a tensor that is not used here; it is written as a zero and may be absent.
      layout: the layout of each of the arrays in it.
      instead: the tensors that replace it if there is none of this name.
    """

    name: str
    sources: tuple[Source, ...]
    layout: Layout = SAME
    instead: tuple[Tensor, ...] = ()


def tensor(name: str, *paths: str, layout: Layout = SAME, instead: Sequence[Tensor] = ()) -> Tensor:
    """A `Tensor` of arrays that are given by dotted paths below the layer."""
    return Tensor(name, tuple(Source(tuple(path.split("."))) for path in paths), layout, tuple(instead))


def inside(part: Tensor, path: Path, name: str | None = None, place: tuple[int, ...] = ()) -> Tensor:
    """The tensor of a part, for the layer that has the part at `path`; `name`: the part's dotted name in PyTorch."""
    prefix = _paths.text(path) if name is None else name
    return Tensor(
        f"{prefix}.{part.name}" if prefix else part.name,
        tuple(Source((*path, *source.path), (*place, *source.place)) for source in part.sources),
        part.layout,
        tuple(inside(other, path, name, place) for other in part.instead),
    )


def default(layer: Any) -> list[Tensor]:
    """All arrays under their own names and in the same layout, except caches, which have an axis for examples."""
    plan = layer._plan()
    variables = [name for name, (_, shape, *_dtype) in plan.variables.items() if BATCH not in shape]
    own = [tensor(name, name) for name in (*plan.parameters, *variables)]
    return own + [inside(part, path) for path, inner in plan.parts for part in inner.torch_layout()]
