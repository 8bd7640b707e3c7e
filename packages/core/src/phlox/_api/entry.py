"""A compiled call with all that running it needs, and the keys that calls are filed under: the hot path of `jit`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .._base import pytree
from .._base.native import native
from .._base.pytree import PyTreeDef, flatten
from .._ir.avals import ShapedArray, scalar_aval
from .._xla.array import Array, wrap
from .._xla.compile import JaxRuntimeError
from .._xla.hosts import scalar
from .._xla.placement import aval_of
from .._xla.program import Program, explain_failure
from .._xla.sharding import default_sharding
from .._xla.transfer import way_in
from .options import Options

#: classes of numbers, which are their own keys
NUMBERS = frozenset((float, int, bool, complex))
_LEAF = pytree.tree_structure(0)
_Buffer = native.ArrayImpl


class Layout(NamedTuple):
    """Takes from the values of a call, positional ones first, the dynamic ones (in the order of its leaves) and the
    static ones; and finds what was compiled for the static ones (1, 1.0 and True are different, though equal).
    """

    dynamic: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    static: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    lane: Callable[..., dict[Any, Any]]


def layout(options: Options, count: int, names: Sequence[str]) -> Layout:
    """The layout of calls with `count` positional arguments and keyword arguments of these names, in this order."""
    chosen = {n if n >= 0 else n + count for n in options.static_argnums}
    static = [i for i in range(count) if i in chosen]
    dynamic = [i for i in range(count) if i not in chosen]
    for name in sorted(names):
        (static if name in options.static_argnames else dynamic).append(count + names.index(name))
    return Layout(_getter(dynamic), _getter(static), functools.lru_cache(4096, typed=True)(_no_entries))


def _no_entries(*statics: Any) -> dict[Any, Any]:
    return {}


def _getter(places: Sequence[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Takes these places out of a tuple, as a tuple."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


def aval_of_leaf(key: Any) -> ShapedArray:
    """The type of leaves that are filed under this key."""
    return scalar_aval(key) if key in NUMBERS else aval_of(key)


def gather(key: list[Any], values: Iterable[Any], given: list[Any]) -> bool | None:
    """Adds to `key` what each value is, and to `given` its leaves: the buffers of arrays, and numbers and NumPy arrays
    as they are.

    True if all of `given` are buffers; None (and both lists incomplete) if something else is among the values.
    """
    ready = True
    for x in values:
        kind = type(x)
        if kind is Array:
            key.append(x._key)
            given.append(x._buf)
        elif kind in NUMBERS:
            key.append(kind)
            given.append(x)
            ready = False
        elif kind is np.ndarray:
            key.append(x.dtype)
            key.append(x.shape)
            given.append(x)
            ready = False
        elif x is None:
            key.append(None)
        else:
            leaves, tree = flatten(x)
            if len(leaves) == 1 and leaves[0] is x:  # no tree
                return None
            key.append(tree)
            inner = gather(key, leaves, given)
            if inner is None:
                return None
            ready = ready and inner
    return ready


def _packing(tree: PyTreeDef) -> Callable[[list[Any]], Any]:
    """`tree.unflatten`, or what does the same sooner."""
    if tree == _LEAF:
        return itemgetter(0)
    return tuple if tree == pytree.tree_structure((0,) * tree.num_leaves) else tree.unflatten


class Entry:
    """A compiled call: the program, the arrays hidden in it, and which leaves it reads.

    Attributes:
      keys: what its leaves are: types, places, classes of numbers.
      whole: whether the leaves are the arguments of the program as they stand.
      pack: makes the result of the list of arrays.
      arranges: whether arrays are moved before the program runs, or watched around it.
      direct: whether `execute`, `handlers`, `aval` and `key` are all it takes.
      calls: how often it ran.
    """

    __slots__ = (
        "arranges", "aval", "calls", "consts", "direct", "donates", "execute", "handlers", "kept", "key", "keys",
        "pack", "program", "ways", "whole",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        consts: list[Array],
        kept: list[int],
        keys: Sequence[Any],
        out_tree: PyTreeDef,
        donates: bool,
    ):
        self.program = program
        self.calls = 0
        self.consts = consts
        self.kept = kept
        self.keys = keys
        self.ways: list[Callable[[Any], Any] | None] | None = None  # made when a leaf needs one
        self.pack = _packing(out_tree)
        self.donates = donates
        self.arranges = bool(program.arrange) or program.watch is not None
        self.whole = not consts and len(kept) == len(keys)
        single = out_tree == _LEAF
        self.direct = self.whole and single and not self.arranges
        self.execute, self.handlers = program.execute, program.handlers
        self.aval: Any = program.out_avals[0] if single else None
        self.key: Any = program.out_keys[0] if single else None

    def placed(self, given: Sequence[Any]) -> list[Any]:
        """What `gather` found, with buffers for those numbers and NumPy arrays that the program reads as they are;
        numbers share theirs, unless it may be given away.
        """
        if self.ways is None:
            self.ways = self._ways()
        bufs = []
        for x, way in zip(given, self.ways, strict=True):
            if way is None or type(x) is _Buffer:
                bufs.append(x)
            elif type(x) in NUMBERS and not self.donates:
                bufs.append(scalar(x)._buf)
            else:
                bufs.append(way(x))
        return bufs

    def _ways(self) -> list[Callable[[Any], Any] | None]:
        """For each leaf what makes a buffer of it; None for those that are not read, or moved elsewhere."""
        read = () if self.arranges else self.kept
        ways: list[Callable[[Any], Any] | None] = [None] * len(self.keys)
        for i in read:
            ways[i] = way_in(aval_of_leaf(self.keys[i]).physical, default_sharding())
        return ways

    def run(self, given: Sequence[Any]) -> list[Array]:
        """Executes on what `gather` found, `placed`."""
        self.calls += 1
        program = self.program
        if self.arranges:
            found = zip(given, self.keys, strict=True)
            leaves = [wrap(x, aval_of(key), key) if type(x) is _Buffer else x for x, key in found]
            leaves = [*self.consts, *[leaves[i] for i in self.kept]]
            adopt, donates = program.adopt, self.donates
            return program.run([x if type(x) is Array else adopt(x, i, donates) for i, x in enumerate(leaves)])
        if not self.whole:
            given = [*[x._buf for x in self.consts], *[given[i] for i in self.kept]]
        try:
            outs = self.execute(given).consume_with_handlers(self.handlers)
        except (JaxRuntimeError, ValueError, RuntimeError):
            explain_failure(self.consts)
            raise
        return list(map(wrap, outs, program.out_avals, program.out_keys))

    def run_leaves(self, leaves: Sequence[Any]) -> list[Array]:
        """Executes on leaves of any kind: arrays, numbers, NumPy arrays."""
        return self.run(self.placed([x._buf if type(x) is Array else x for x in leaves]))
