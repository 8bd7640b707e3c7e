"""A compiled call with all that running it needs, and the keys that calls are filed under; see `calling`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

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
#: how many things a cache of calls keeps
LIMIT = 4096


class Lane:
    """What was compiled for some static arguments.

    Attributes:
      one: by the key of the array, for calls with that alone, in the settings of the last one.
      fast: by the mark of the settings, and what `gather` finds.
    """

    __slots__ = ("fast", "one")

    def __init__(self, *_statics: Any) -> None:
        self.one: dict[Any, Entry] = {}
        self.fast: dict[Any, Entry] = {}

    def clear(self) -> None:
        self.one.clear()
        self.fast.clear()


class Layout:
    """Which values of a call are static, and the lanes of these; for `count` positional arguments and then keyword
    arguments of these `names`.

    Attributes:
      arrange: puts the values where `static` and `dynamic` find them; None where they are there already.
      static, dynamic: where the static ones are, and the others.
      alone: where the only other one is; None if there are several, or none.
      lane: of the static ones; 1, 1.0 and True are different, though equal.
    """

    __slots__ = ("alone", "arrange", "dynamic", "lane", "static")

    def __init__(self, options: Options, count: int, names: Sequence[str]):
        everything = range(count + len(names))
        chosen = {n if n >= 0 else n + count for n in options.static_argnums}
        chosen |= {count + i for i, name in enumerate(names) if name in options.static_argnames}
        static, dynamic = [i for i in everything if i in chosen], [i for i in everything if i not in chosen]
        first, second = (dynamic, static) if dynamic[:1] == [0] else (static, dynamic)
        order = [*first, *second]
        self.arrange = itemgetter(*order) if order != sorted(order) else None
        front, back = slice(0, len(first)), slice(len(first), len(order))
        self.static, self.dynamic = (back, front) if first is dynamic else (front, back)
        self.alone = self.dynamic.start if len(dynamic) == 1 else None
        self.lane = functools.lru_cache(LIMIT, typed=True)(Lane)


def aval_of_leaf(key: Any) -> ShapedArray:
    """The type of leaves that are filed under this key."""
    return scalar_aval(key) if key in NUMBERS else aval_of(key)


def gather(key: list[Any], given: list[Any], values: Iterable[Any]) -> None:
    """Adds to `key` what each value is, and to `given` its leaves: the buffers of arrays, and numbers and NumPy arrays
    as they are. Dicts are read in their own order, see `call_order`.

    Raises `TypeError`, and leaves both incomplete, if something else is there.
    """
    for x in values:
        kind = type(x)
        if kind is Array:
            key.append(x._key)
            given.append(x._buf)
        elif kind is dict:
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
        elif x is None:
            key.append(None)
        else:
            leaves, tree = flatten(x)
            if len(leaves) == 1 and leaves[0] is x:
                raise TypeError("no tree")
            key.append(tree)
            gather(key, given, leaves)


def call_order(x: Any, numbered: Any) -> list[int]:
    """The numbers of the leaves of `x` in the order in which `gather` finds them; `numbered` is `x` with numbers."""
    kind = type(x)
    if kind is dict:
        return [i for name in x for i in call_order(x[name], numbered[name])]
    if kind is tuple or kind is list:
        return [i for inner, same in zip(x, numbered, strict=True) for i in call_order(inner, same)]
    return flatten(numbered)[0]


def _packing(tree: PyTreeDef) -> Callable[[list[Any]], Any]:
    """`tree.unflatten`, or what does the same sooner."""
    if tree == _LEAF:
        return itemgetter(0)
    return tuple if tree == pytree.tree_structure((0,) * tree.num_leaves) else tree.unflatten


def _reading(hidden: list[Any], kept: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """Takes the arguments of a program, which are those `hidden` and those of these numbers, from the leaves."""
    if hidden:
        return lambda given: [*hidden, *[given[i] for i in kept]]
    if len(kept) > 1:
        return itemgetter(*kept)
    return lambda given: [given[i] for i in kept]


class Entry:
    """A compiled call: the program, the arrays hidden in it, and which leaves it reads.

    Attributes:
      run: executes on what `gather` found, and returns what the user gets.
      keys: what its leaves are: types, places, classes of numbers.
      ways: which leaves are no buffers, and what makes buffers of them; see `filed`.
      outputs: executes on buffers of the leaves, and returns the list of arrays.
      pack: makes the result of the list of arrays.
      mark: of the settings that it is for, once it is filed by one array alone.
      arranges: whether arrays are moved before the program runs, or watched around it.
      calls: how often it ran.
      others: the same for leaves in other orders, or of other kinds.
    """

    __slots__ = (
        "arranges", "calls", "consts", "donates", "kept", "keys", "mark", "others", "out_tree", "outputs", "pack",
        "program", "run", "ways",
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
        self.ways: list[tuple[int, Callable[[Any], Any]]] = []
        self.others: dict[Any, Entry] = {}
        self.out_tree = out_tree
        self.pack = _packing(out_tree)
        self.donates = donates
        self.mark: Any = None
        self.arranges = bool(program.arrange) or program.watch is not None
        self.outputs = (_arranging if self.arranges else _executing)(program, consts, kept, keys, donates)
        whole = not consts and list(kept) == list(range(len(keys)))
        direct = whole and out_tree == _LEAF and not self.arranges
        self.run = _direct(program) if direct else _packed(self.outputs, self.pack)

    def filed(self, leaves: Sequence[Any], order: Sequence[int]) -> Entry:
        """The same for calls in these settings with leaves of these kinds that `gather` finds in this order."""
        kinds = [None if type(x) is Array else x.dtype if type(x) is np.ndarray else type(x) for x in leaves]
        if list(order) == list(range(len(leaves))) and not any(kinds):
            return self
        where = (*order, *kinds)
        found = self.others.get(where)
        if found is None:
            kept = [order.index(i) for i in self.kept]
            found = Entry(self.program, self.consts, kept, [self.keys[i] for i in order], self.out_tree, self.donates)
            if not self.arranges:
                read = [(place, kinds[order[place]]) for place in kept if kinds[order[place]] is not None]
                found.ways = [(place, found._way(place, kind)) for place, kind in read]
                found.run = _led_in(found.ways, found.run)
            if len(self.others) >= LIMIT:
                self.calls = self.runs()
                self.others.clear()
            self.others[where] = found
        return found

    def _way(self, place: int, kind: Any) -> Callable[[Any], Any]:
        """What makes a buffer of a leaf of this kind; numbers share theirs, unless it may be given away."""
        if kind in NUMBERS and not self.donates:
            return _buffer_of_number
        return way_in(aval_of_leaf(self.keys[place]).physical, default_sharding(), kind)

    def runs(self) -> int:
        """How often it was called, whatever the order and kinds of leaves."""
        return self.calls + sum(other.calls for other in list(self.others.values()))

    def run_leaves(self, leaves: Sequence[Any]) -> list[Array]:
        """Executes on leaves of any kind: arrays, numbers, NumPy arrays."""
        given = [x._buf if type(x) is Array else x for x in leaves]
        for i in () if self.arranges else self.kept:
            if type(given[i]) is not _Buffer:
                given[i] = self._way(i, type(given[i]))(given[i])
        self.calls += 1
        return self.outputs(given)


_Run = Callable[[list[Any]], Any]


def _direct(program: Program) -> _Run:
    """Runs a program that takes all leaves and has one result, which is what operations are: `wrap` is written out."""
    execute, handlers, (aval,), (key,) = program.execute, program.handlers, program.out_avals, program.out_keys
    new = Array.__new__

    def run(given: list[Any]) -> Array:
        array = new(Array)
        array._buf = execute(given).consume_with_handlers(handlers)[0]
        array.aval = aval
        array._key = key
        return array

    return run


def _executing(program: Program, consts: list[Array], kept: list[int], *_: Any) -> _Run:
    """Runs a program on the buffers hidden in it and those of the leaves that it reads."""
    reads = _reading([x._buf for x in consts], kept)
    execute, handlers, avals, keys = program.execute, program.handlers, program.out_avals, program.out_keys

    def run(given: list[Any]) -> list[Array]:
        try:
            outs = execute(reads(given)).consume_with_handlers(handlers)
        except (JaxRuntimeError, ValueError, RuntimeError):
            explain_failure(consts)
            raise
        return list(map(wrap, outs, avals, keys))

    return run


def _arranging(program: Program, consts: list[Array], kept: list[int], keys: Sequence[Any], donates: bool) -> _Run:
    """The same where arrays are moved before the program runs, or watched around it."""

    def run(given: list[Any]) -> list[Array]:
        found = zip(given, keys, strict=True)
        leaves = [wrap(x, aval_of(key), key) if type(x) is _Buffer else x for x, key in found]
        leaves = [*consts, *[leaves[i] for i in kept]]
        return program.run([x if type(x) is Array else program.adopt(x, i, donates) for i, x in enumerate(leaves)])

    return run


def _packed(outputs: _Run, pack: Callable[[list[Array]], Any]) -> _Run:
    return lambda given: pack(outputs(given))


def _led_in(ways: list[tuple[int, Callable[[Any], Any]]], run: _Run) -> _Run:
    """Leads in leaves that are no buffers, and then runs."""

    def leads(given: list[Any]) -> Any:
        for place, way in ways:
            given[place] = way(given[place])
        return run(given)

    return leads if ways else run


def _buffer_of_number(x: Any) -> Any:
    return scalar(x)._buf
