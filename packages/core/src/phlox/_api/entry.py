"""A compiled call with all that running it needs, and the keys that calls are filed under: the hot path of `jit`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .._base import pytree
from .._base.pytree import PyTreeDef
from .._ir.avals import typeof_value
from .._xla.array import Array, wrap
from .._xla.hosts import scalar
from .._xla.program import Program
from .._xla.sharding import default_sharding
from .._xla.transfer import put_buffer
from .options import Options

_NUMBERS = frozenset((float, int, bool, complex))
_LEAF = pytree.tree_structure(0)


class Layout(NamedTuple):
    """Takes from the values of a call, positional ones first, the dynamic ones (in the order of its leaves) and the
    static ones; None where there are no static ones.
    """

    dynamic: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    static: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None


def layout(options: Options, count: int, names: Sequence[str]) -> Layout:
    """The layout of calls with `count` positional arguments and keyword arguments of these names, in this order."""
    chosen = {n if n >= 0 else n + count for n in options.static_argnums}
    static = [i for i in range(count) if i in chosen]
    dynamic = [i for i in range(count) if i not in chosen]
    for name in sorted(names):
        (static if name in options.static_argnames else dynamic).append(count + names.index(name))
    return Layout(_getter(dynamic), _getter(static) if static else None)


def _getter(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Takes these places out of a tuple, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


def gather(key: list[Any], values: Sequence[Any], bufs: list[Any]) -> bool | None:
    """Adds to `key` what each value is, and to `bufs` the buffers of arrays. None has no leaf, so no buffer either.

    True if there are buffers for all, False if numbers or NumPy arrays have none yet, None (and both lists incomplete)
    if a value is no array at all.
    """
    ready = True
    for x in values:
        kind = type(x)
        if kind is Array:
            key.append(x._key)
            bufs.append(x._buf)
        elif x is None:
            key.append(None)
        elif kind in _NUMBERS:
            key.append(kind)
            ready = False
        elif kind is np.ndarray and (aval := typeof_value(x)) is not None:
            key.append(aval)
            ready = False
        else:
            return None
    return ready


class Entry:
    """A compiled call: the program, the arrays hidden in it, and which leaves it reads.

    Attributes:
      whole: whether the leaves are the arguments of the program as they stand.
      single: whether the result is one array.
      calls: how often it ran.
      direct: both, so that `execute`, `handlers`, `aval` and `key` are all it takes.
    """

    __slots__ = (
        "aval", "calls", "consts", "direct", "donates", "execute", "handlers", "kept", "key", "out_tree", "program",
        "single", "whole",
    )  # fmt: skip

    def __init__(
        self, program: Program, consts: list[Array], kept: list[int], count: int, out_tree: PyTreeDef, donates: bool
    ):
        self.program = program
        self.calls = 0
        self.consts = consts
        self.kept = kept
        self.out_tree = out_tree
        self.donates = donates
        self.whole = not consts and len(kept) == count and not program.arrange and program.watch is None
        self.single = len(program.out_avals) == 1 and out_tree == _LEAF
        self.direct = self.whole and self.single
        self.execute, self.handlers = program.execute, program.handlers
        self.aval: Any = program.out_avals[0] if self.single else None
        self.key: Any = program.out_keys[0] if self.single else None

    def run(self, leaves: Sequence[Any], bufs: Sequence[Any] | None = None) -> list[Array]:
        """Executes on flat arguments, some of which may be numbers or NumPy arrays; `bufs` are theirs if at hand."""
        self.calls += 1
        program = self.program
        if not self.whole:
            leaves = [*self.consts, *[leaves[i] for i in self.kept]]
            arrays = [x if type(x) is Array else program.adopt(x, i, self.donates) for i, x in enumerate(leaves)]
            return program.run(arrays)
        if bufs is None:
            bufs = [x._buf if type(x) is Array else self._buffer(x) for x in leaves]
        outs = self.execute(bufs).consume_with_handlers(self.handlers)
        return list(map(wrap, outs, program.out_avals, program.out_keys))

    def _buffer(self, x: Any) -> Any:
        """A buffer for a number or a NumPy array; numbers share theirs, unless it may be given away."""
        if type(x) in _NUMBERS and not self.donates:
            return scalar(x)._buf
        return put_buffer(x, typeof_value(x).physical, default_sharding())  # type: ignore[union-attr]
