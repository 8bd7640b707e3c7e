"""How arrays of layers lie in PyTorch: the names and layouts that layers state in `Layer.torch_layout`.

Knows no layer. A layer whose arrays are called and shaped as PyTorch's states nothing: `default` serves it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from . import _paths
from ._paths import BATCH, Path


@dataclasses.dataclass(frozen=True)
class Layout:
    """How an array is written for PyTorch, and read back: two functions of an array, by its methods alone."""

    to_torch: Callable[[Any], Any]
    from_torch: Callable[[Any], Any]


SAME = Layout(lambda x: x, lambda x: x)
#: matrices (in, out), which PyTorch keeps as (out, in); vectors stay
TRANSPOSED = Layout(lambda x: x.T, lambda x: x.T)
#: kernels of convolutions (*space, in, out), which PyTorch keeps as (out, in, *space)
KERNEL = Layout(
    lambda x: x.transpose((x.ndim - 1, x.ndim - 2, *range(x.ndim - 2))),
    lambda x: x.transpose((*range(2, x.ndim), 1, 0)),
)


def transposed_kernel(groups: int) -> Layout:
    """Kernels of transposed convolutions (*space, in / groups, out), which PyTorch keeps reversed as (in, out / groups,
    *space).
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
    """An array of a layer by its path below it; `place` is where in its first axes, for blocks of a `Stack`."""

    path: Path
    place: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of PyTorch and the arrays that it consists of, one after the other along its first axis.

    Attributes:
      name: its name in a state dict, below the layer's own.
      sources: the arrays. None: a tensor that means nothing here; it is written as a zero and may be absent.
      layout: how each of the arrays lies in it.
      instead: the tensors that stand for it where there is none of this name.
    """

    name: str
    sources: tuple[Source, ...]
    layout: Layout = SAME
    instead: tuple[Tensor, ...] = ()


def tensor(name: str, *paths: str, layout: Layout = SAME, instead: Sequence[Tensor] = ()) -> Tensor:
    """A `Tensor` of arrays that are given by dotted paths below the layer."""
    return Tensor(name, tuple(Source(tuple(path.split("."))) for path in paths), layout, tuple(instead))


def inside(part: Tensor, path: Path, name: str | None = None, place: tuple[int, ...] = ()) -> Tensor:
    """The tensor of a part, as one of the layer that has the part at `path`, called by `name` (dotted) in PyTorch."""
    prefix = _paths.text(path) if name is None else name
    return Tensor(
        f"{prefix}.{part.name}" if prefix else part.name,
        tuple(Source((*path, *source.path), (*place, *source.place)) for source in part.sources),
        part.layout,
        tuple(inside(other, path, name, place) for other in part.instead),
    )


def default(layer: Any) -> list[Tensor]:
    """All arrays under their own names and as they are, but caches, which are kept for each example."""
    plan = layer._plan()
    kept = [name for name, (_, shape, *_dtype) in plan.variables.items() if BATCH not in shape]
    own = [tensor(name, name) for name in (*plan.parameters, *kept)]
    return own + [inside(part, path) for path, inner in plan.parts for part in inner.torch_layout()]
