"""A compiled call with all that running it needs, and the keys by which calls are found; see `calling`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.native import native
from ..._base.pytree import PyTreeDef, flatten, reader
from ..._ir.avals import ShapedArray, scalar_aval
from ..._ir.dtypes import float0
from ..._ops.structure.shape import copy
from ..._xla.array import Array, ArrayImpl, wrap, wrap_all
from ..._xla.compile import JaxRuntimeError
from ..._xla.host_values import scalar
from ..._xla.placement import aval_of
from ..._xla.program import Program, explain_failure
from ..._xla.sharding import default_sharding
from ..._xla.transfer import way_in
from .parameters import MISSING

#: classes of numbers, which are their own keys
NUMBERS = frozenset((float, int, bool, complex))
_LEAF = pytree.tree_structure(0)
_Buffer = native.ArrayImpl
#: how many things a cache of calls keeps
LIMIT = 4096
_Prepare = Callable[[list[Any]], Sequence[Any]]
#: of an `Entry`: the settings that it is for, and what a call takes of it
FastPath = tuple[Any, Any, Any, Any, Any, Any, Any, "Entry"]


def aval_of_leaf(key: Any) -> ShapedArray:
    """The type of leaves with this key."""
    return scalar_aval(key) if key in NUMBERS else aval_of(key)


def gather(key: list[Any], given: list[Any], values: Iterable[Any]) -> None:
    """Adds to `key` what each value is, and to `given` its leaves: the buffers of arrays, and numbers and NumPy arrays
    as they are. Dicts are read in their own order, see `call_order`.

    Raises `TypeError`, and leaves both incomplete, if something else is there.
    """
    kind: Any
    for x in values:
        if type(x) is ArrayImpl:
            key.append(x._key)
            given.append(x._buf)
        elif (kind := type(x)) is dict:
            key.append(tuple(x))
            gather(key, given, x.values())
        elif kind is tuple or kind is list:
            key.append(kind)
            key.append(len(x))
            gather(key, given, x)
        elif kind in NUMBERS:
            key.append(kind)
            given.append(x)
        elif kind is np.ndarray:
            key.append(x.dtype)
            key.append(x.shape)
            given.append(x)
        elif x is None or x is MISSING:
            key.append(x)
        elif (read := reader(kind)) is not None:
            structure, children = read(x)
            key.append(structure)
            gather(key, given, children)
        else:
            leaves, tree = flatten(x)
            if len(leaves) == 1 and leaves[0] is x:
                raise TypeError("no tree")
            key.append(tree)
            gather(key, given, leaves)


def call_order(x: Any, numbers: Iterator[int]) -> list[int]:
    """The numbers of the leaves of `x` in the order in which `gather` finds them; `numbers` has them as they lie."""
    kind: Any = type(x)
    if kind is dict:
        found = {name: call_order(x[name], numbers) for name in sorted(x)}
        return [i for name in x for i in found[name]]
    if kind is tuple or kind is list:
        return [i for inner in x for i in call_order(inner, numbers)]
    if (read := reader(kind)) is not None:
        return call_order(list(read(x)[1]), numbers)
    return [next(numbers) for _ in flatten(x)[0]]


def _without_float0(program: Program, tree: PyTreeDef, made: bool) -> Callable[[list[Any]], Any]:
    """The same where some results are derivatives of integers, which are NumPy's arrays: devices hold none such."""

    def pack(results: list[Any]) -> Any:
        arrays = results if made else wrap_all(results, program.out_avals, program.out_keys)
        return tree.unflatten([np.asarray(x) if x.aval.dtype == float0 else x for x in arrays])

    return pack


def _packing(program: Program, tree: PyTreeDef) -> Callable[[list[Any]], Any]:
    """Makes arrays of the results, and packs them: by `tree.unflatten`, or by what does the same sooner."""
    avals, keys = program.out_avals, program.out_keys
    pack = tuple if tree == pytree.tree_structure((0,) * tree.num_leaves) else tree.unflatten
    return lambda results: pack(wrap_all(results, avals, keys))


class Hidden:
    """The arrays that a program closes over, which are arguments of it, and their buffers.

    A call may give one of them away: then that one is replaced by a copy first, so that later calls find it.
    """

    __slots__ = ("arrays", "buffers", "known")

    def __init__(self, arrays: Sequence[Array]):
        self.arrays = list(arrays)
        self.buffers = [x._buf for x in arrays]
        self.known = set(map(id, self.buffers))

    def explain_failure(self) -> None:
        """Raises the error that a user understands, if one of them is gone."""
        explain_failure(self.arrays, "an array that the function closes over")

    def keep(self, given: Sequence[Any], donated: Iterable[int]) -> None:
        """Before a call with these leaves, of which those numbers are given away."""
        if self.known.isdisjoint(map(id, given)):
            return
        gone = {id(given[i]) for i in donated}
        for i, x in enumerate(self.arrays):
            if id(x._buf) in gone:
                self.arrays[i] = copied = copy(x)
                self.buffers[i] = copied._buf
        self.known = set(map(id, self.buffers))


def _reading(hidden: Hidden, kept: Sequence[int], donated: frozenset[int]) -> _Prepare:
    """Takes the arguments of a program, which are those `hidden` and those of these numbers, from the leaves."""
    buffers = hidden.buffers
    if buffers and donated:

        def read(given: list[Any]) -> Sequence[Any]:
            hidden.keep(given, donated)
            return [*buffers, *[given[i] for i in kept]]

        return read
    if buffers:
        return lambda given: [*buffers, *[given[i] for i in kept]]
    if len(kept) > 1:
        return itemgetter(*kept)
    return lambda given: [given[i] for i in kept]


class Entry:
    """A compiled call: the program, the arrays hidden in it, which leaves it reads, and which of them it takes.

    It runs in steps that callers take themselves, as `run` does: jaxlib walks Python's stack whenever it executes, and
    each function between it and the user costs a tenth of a microsecond.

    Attributes:
      prepare: makes the program's arguments of what `gather` found; None if they are that already.
      execute, handlers: the program's own.
      finish: makes what the user gets of the results; None if that is one array.
      aval, key: of that array.
      keys: what its leaves are: types, places, classes of numbers.
      arranges: whether arrays are moved before the program runs, or watched around it.
      calls: how often it ran.
      others: the same for leaves in other orders, or of other kinds.
    """

    __slots__ = (
        "arranges", "aval", "calls", "donated", "execute", "finish", "handlers", "hidden", "kept", "key", "keys",
        "others", "out_tree", "prepare", "program",
    )  # fmt: skip
    finish: Callable[[list[Any]], Any] | None
    aval: Any
    key: Any

    def __init__(
        self,
        program: Program,
        hidden: Hidden,
        kept: list[int],
        keys: Sequence[Any],
        out_tree: PyTreeDef,
        donated: frozenset[int],
    ):
        self.program = program
        self.calls = 0
        self.hidden = hidden
        self.kept = kept
        self.keys = keys
        self.others: dict[Any, Entry] = {}
        self.out_tree = out_tree
        self.donated = donated
        self.arranges = bool(program.arrange) or program.watch is not None
        whole = not hidden.arrays and list(kept) == list(range(len(keys)))
        self.prepare = None if whole or self.arranges else _reading(hidden, kept, donated)
        self.execute = _arranging(program, hidden, kept, keys, donated) if self.arranges else program.execute
        self.handlers = program.handlers
        self.aval = self.key = self.finish = None
        if self.arranges:
            self.finish = out_tree.unflatten
        elif out_tree == _LEAF:
            (self.aval,), (self.key,) = program.out_avals, program.out_keys
        else:
            self.finish = _packing(program, out_tree)
        if any(aval.dtype == float0 for aval in program.out_avals):
            self.finish = _without_float0(program, out_tree, self.arranges)

    def for_leaves(self, leaves: Sequence[Any], order: Sequence[int]) -> Entry:
        """The same for calls in these settings with leaves of these kinds that `gather` finds in this order."""
        kinds = [None if type(x) is ArrayImpl else x.dtype if type(x) is np.ndarray else type(x) for x in leaves]
        if list(order) == list(range(len(leaves))) and not any(kinds):
            return self
        where = (*order, *kinds)
        found = self.others.get(where)
        if found is None:
            kept = [order.index(i) for i in self.kept]
            donated = frozenset(order.index(i) for i in self.donated)
            found = Entry(self.program, self.hidden, kept, [self.keys[i] for i in order], self.out_tree, donated)
            if not self.arranges:
                read = [(place, kinds[order[place]]) for place in kept if kinds[order[place]] is not None]
                converters = [(place, found._converter(place, kind)) for place, kind in read]
                found.prepare = _converting(converters, found.prepare)
            if len(self.others) >= LIMIT:
                self.calls = self.runs()
                self.others.clear()
            self.others[where] = found
        return found

    def fast_path(self, fingerprint: Any) -> FastPath:
        """What calls take, in settings with this mark."""
        return fingerprint, self.prepare, self.execute, self.handlers, self.finish, self.aval, self.key, self

    def _converter(self, place: int, kind: Any) -> Callable[[Any], Any]:
        """What makes a buffer of a leaf of this kind; numbers share theirs, unless it may be given away."""
        if kind in NUMBERS and not self.donated:
            return _buffer_of_number
        return way_in(aval_of_leaf(self.keys[place]).physical, default_sharding(), kind)

    def runs(self) -> int:
        """How often it was called, whatever the order and kinds of leaves."""
        return self.calls + sum(other.calls for other in list(self.others.values()))

    def run(self, leaves: Sequence[Any]) -> Any:
        """What the user gets for leaves of any kind: arrays, numbers, NumPy arrays."""
        given = [x._buf if type(x) is ArrayImpl else x for x in leaves]
        for i in () if self.arranges else self.kept:
            if type(given[i]) is not _Buffer:
                given[i] = self._converter(i, type(given[i]))(given[i])
        self.calls += 1
        try:
            arguments = given if self.prepare is None else self.prepare(given)
            results = self.execute(arguments).consume_with_handlers(self.handlers)
            return wrap(results[0], self.aval, self.key) if self.finish is None else self.finish(results)
        except (JaxRuntimeError, ValueError, RuntimeError):
            self.hidden.explain_failure()
            raise


class _Executed:
    """Stands where results of jaxlib's stand otherwise, for programs whose arrays are made by `Program.run`."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Array]):
        self.arrays = arrays

    def consume_with_handlers(self, _: Any) -> list[Array]:
        return self.arrays


def _arranging(
    program: Program, hidden: Hidden, kept: list[int], keys: Sequence[Any], donated: frozenset[int]
) -> Callable[[Sequence[Any]], _Executed]:
    """Executes a program whose arguments are moved before, or watched, on all leaves."""

    def execute(given: Sequence[Any]) -> _Executed:
        found = zip(given, keys, strict=True)
        leaves = [wrap(x, aval_of(key), key) if type(x) is _Buffer else x for x, key in found]
        hidden.keep(given, donated)
        leaves = [*hidden.arrays, *[leaves[i] for i in kept]]
        adopted = [x if type(x) is ArrayImpl else program.adopt(x, i, bool(donated)) for i, x in enumerate(leaves)]
        return _Executed(program.run(adopted))

    return execute


def _converting(converters: list[tuple[int, Callable[[Any], Any]]], prepare: _Prepare | None) -> _Prepare | None:
    """Makes buffers of leaves that are none, before anything else."""

    def convert(given: list[Any]) -> Sequence[Any]:
        for place, way in converters:
            given[place] = way(given[place])
        return given if prepare is None else prepare(given)

    return convert if converters else prepare


def _buffer_of_number(x: Any) -> Any:
    return scalar(x)._buf
