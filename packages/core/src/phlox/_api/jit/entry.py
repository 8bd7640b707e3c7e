"""`Entry`, a compiled call with everything that running it needs, and the cache keys of calls; see `calling`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.interning import clear_if_full
from ..._base.native import native
from ..._base.pytree import PyTreeDef, flatten, reader
from ..._ir.avals import ShapedArray, scalar_aval
from ..._ir.dtypes import Dtype, float0
from ..._ops.structure.shape import copy
from ..._trace.refs import Ref
from ..._xla.array import Array, ArrayImpl, wrap, wrap_all
from ..._xla.compile import JaxRuntimeError
from ..._xla.host_values import scalar
from ..._xla.placement import aval_of
from ..._xla.program import Program, explain_failure
from ..._xla.sharding import default_sharding
from ..._xla.transfer import buffer_maker
from .counting import CallCounter
from .narrowing import check_all, checking
from .parameters import MISSING

# bool is a class of its own here: True and 1 would otherwise share a key, as they are equal and have one hash.
#: classes of Python numbers; a number's class is its key
NUMBERS = frozenset((float, int, bool, complex))
_LEAF = pytree.tree_structure(0)
_Buffer = native.ArrayImpl
# A full cache is emptied: a cache that knows what was used last would have to write at each hit.
#: most entries in a cache of calls
LIMIT = 4096
_Prepare = Callable[[list[Any]], Sequence[Any]]
#: a fingerprint of settings, then the fields of an `Entry` that `calling.CALL` uses, and the entry
FastPath = tuple[Any, Any, Any, Any, Any, Any, Any, Any, "Entry"]


def aval_of_leaf(key: Any) -> ShapedArray:
    """The abstract value of leaves with this key."""
    return scalar_aval(key) if key in NUMBERS else aval_of(key)


def gather(key: list[Any], leaves: list[Any], values: Iterable[Any]) -> None:
    """Appends the key of each value to `key`, and its leaves to `leaves`: buffers of arrays; numbers and NumPy arrays
    as they are. Dicts are read in insertion order, which saves sorting; see `call_order`.

    Raises `TypeError`, with both lists incomplete, if a leaf is something else.
    """
    # The key is flat. It is unambiguous because a container writes its class and its length, or its names, before its
    # items.
    kind: Any
    for x in values:
        # `is` by class and not `isinstance`: it is faster, and a subclass of a container need not flatten like the
        # container.
        if type(x) is ArrayImpl:
            key.append(x._placement)
            leaves.append(x._buf)
        elif (kind := type(x)) is dict:
            # The names in their order: two dicts with other orders of insertion get two fast paths to one program.
            key.append(tuple(x))
            gather(key, leaves, x.values())
        elif kind is tuple or kind is list:
            key.append(kind)
            key.append(len(x))
            gather(key, leaves, x)
        elif kind in NUMBERS:
            key.append(kind)
            leaves.append(x)
        elif kind is np.ndarray:
            key.append(x.dtype)
            key.append(x.shape)
            leaves.append(x)
        # `MISSING` is in the key, so a call that leaves out an argument with a default has a fast path of its own.
        elif x is None or x is MISSING:
            key.append(x)
        elif (read := reader(kind)) is not None:
            structure, children = read(x)
            key.append(structure)
            gather(key, leaves, children)
        else:
            children, tree = flatten(x)
            # A leaf of unknown class flattens to itself. Without this test the recursion would not end.
            if len(children) == 1 and children[0] is x:
                raise TypeError("no tree")
            key.append(tree)
            gather(key, leaves, children)


def call_order(x: Any, numbers: Iterator[int]) -> list[int]:
    """The leaf indices of `x` in the order in which `gather` visits them; `numbers` yields them in pytree order."""
    kind: Any = type(x)
    if kind is dict:
        order = {name: call_order(x[name], numbers) for name in sorted(x)}
        return [i for name in x for i in order[name]]
    if kind is tuple or kind is list:
        return [i for inner in x for i in call_order(inner, numbers)]
    if (read := reader(kind)) is not None:
        return call_order(list(read(x)[1]), numbers)
    return [next(numbers) for _ in flatten(x)[0]]


def _without_float0(program: Program, tree: PyTreeDef, are_arrays: bool) -> Callable[[list[Any]], Any]:
    """Like `_packing`, for results of which some have dtype float0: those become NumPy arrays, as no device has it.

    `are_arrays`: the results are arrays already, not buffers.
    """

    def pack(results: list[Any]) -> Any:
        arrays = results if are_arrays else wrap_all(results, program.out_avals, program.out_placements)
        return tree.unflatten([np.asarray(x) if x.aval.dtype == float0 else x for x in arrays])

    return pack


def _packing(program: Program, tree: PyTreeDef) -> Callable[[list[Any]], Any]:
    """A function that wraps result buffers as arrays and unflattens them; a flat tuple needs no `tree.unflatten`."""
    avals, placements = program.out_avals, program.out_placements
    # Compared once here: in each call, `tuple` is cheaper than `unflatten`.
    pack = tuple if tree == pytree.tree_structure((0,) * tree.num_leaves) else tree.unflatten
    return lambda results: pack(wrap_all(results, avals, placements))


class Consts:
    """The arrays that a program closes over, which it takes as leading arguments, and their buffers.

    A call may also donate one of them as an argument: it is first replaced here by a copy, for later calls.
    """

    __slots__ = ("arrays", "buffer_ids", "buffers")

    def __init__(self, arrays: Sequence[Array]):
        self.arrays = list(arrays)
        # Stored as well, so that a call reads no attribute of each array.
        self.buffers = [x._buf for x in arrays]
        self.buffer_ids = set(map(id, self.buffers))

    def explain_failure(self) -> None:
        """Raises an error in the user's terms if one of the arrays was deleted."""
        explain_failure(self.arrays, "an array that the function closes over")

    def replace_donated(self, leaves: Sequence[Any], donated: Iterable[int]) -> None:
        """Copies the closed-over arrays that a call with these leaves donates; `donated` has indices into `leaves`."""
        if self.buffer_ids.isdisjoint(map(id, leaves)):
            return
        gone = {id(leaves[i]) for i in donated}
        # Changed in place: `_selecting` has given `self.buffers` to the fast paths.
        for i, x in enumerate(self.arrays):
            if id(x._buf) in gone:
                self.arrays[i] = copied = copy(x)
                self.buffers[i] = copied._buf
        self.buffer_ids = set(map(id, self.buffers))


def _selecting(consts: Consts, used_indices: Sequence[int], donated: frozenset[int]) -> _Prepare:
    """A function from the leaves of a call to the program's arguments: the closed-over arrays, then the used leaves."""
    buffers = consts.buffers
    if buffers and donated:

        def read(leaves: list[Any]) -> Sequence[Any]:
            consts.replace_donated(leaves, donated)
            return [*buffers, *[leaves[i] for i in used_indices]]

        return read
    if buffers:
        return lambda leaves: [*buffers, *[leaves[i] for i in used_indices]]
    if len(used_indices) > 1:
        # `itemgetter` selects in C. With one index it would return the buffer alone, which the line below avoids.
        return itemgetter(*used_indices)
    return lambda leaves: [leaves[i] for i in used_indices]


class Entry:
    """A compiled call: the program, its closed-over arrays, the indices of the leaves that it reads and donates.

    Callers take the steps of `run` themselves: jaxlib walks the Python stack whenever it executes, so each stack
    frame costs a tenth of a microsecond.

    Attributes:
      prepare: makes the program's arguments from the leaves of `gather`; None if the leaves are the arguments.
      execute, handlers: those of the program.
      finish: makes the user's result from the program's results; None if the result is one array.
      aval, placement: abstract value and placement of that one array.
      keys: the key of each leaf: the placement of an array, or the class of a number.
      integer_dtypes: dtypes that must hold Python integers among the leaves, by leaf index; see `narrowing`.
      calls_run: whether calls go through `Program.run`, which moves arrays between devices and checks runs.
      counter: counts the calls; all entries of a program share it.
      stale_values: the values of globals and closures that checks compare at later calls; see `checks.stale_values`.
      variants: entries of the same program for leaves in other orders or of other kinds.
      captured, written: of a program that uses references, see `references.ReferenceEntry`.
    """

    __slots__ = (
        "__weakref__",
        "aval",
        "calls_run",
        "captured",
        "consts",
        "counter",
        "donated",
        "execute",
        "finish",
        "handlers",
        "integer_dtypes",
        "keys",
        "out_tree",
        "placement",
        "prepare",
        "program",
        "stale_values",
        "used_indices",
        "variants",
        "written",
    )  # fmt: skip
    finish: Callable[[list[Any]], Any] | None
    aval: Any
    placement: Any

    def __init__(
        self,
        program: Program,
        consts: Consts,
        used_indices: list[int],
        keys: Sequence[Any],
        out_tree: PyTreeDef,
        donated: frozenset[int],
        integer_dtypes: Mapping[int, Dtype],
    ):
        self.program = program
        self.counter = CallCounter()
        self.stale_values: Any = None
        self.captured: Sequence[Ref] = ()
        self.written: Sequence[int] = ()
        self.consts = consts
        self.used_indices = used_indices
        self.keys = keys
        self.variants: dict[Any, Entry] = {}
        self.out_tree = out_tree
        self.donated = donated
        self.integer_dtypes = integer_dtypes
        self.calls_run = bool(program.target_shardings) or program.checks is not None
        # Most programs read all leaves in order, and then a call passes the list of `gather` to jaxlib as it is.
        whole = not consts.arrays and list(used_indices) == list(range(len(keys)))
        self.prepare = None if whole or self.calls_run else _selecting(consts, used_indices, donated)
        # `Program.run` calls the marker by itself.
        if program.mark_keys is not None and not self.calls_run:
            self.prepare = _marking(program.mark_keys, self.prepare)
        self.execute = (
            _execute_by_run(program, consts, used_indices, keys, donated, integer_dtypes)
            if self.calls_run
            else program.execute
        )
        self.handlers = program.handlers
        self.aval = self.placement = self.finish = None
        # In this case `execute` returns arrays, not buffers, so that only the tree is missing.
        if self.calls_run:
            self.finish = out_tree.unflatten
        elif out_tree == _LEAF:
            (self.aval,), (self.placement,) = program.out_avals, program.out_placements
        else:
            self.finish = _packing(program, out_tree)
        if any(aval.dtype == float0 for aval in program.out_avals):
            self.finish = _without_float0(program, out_tree, self.calls_run)

    def with_program(self, program: Program) -> Entry:
        """The entry of another program of the same calls; it goes on counting them."""
        entry = type(self)(
            program, self.consts, self.used_indices, self.keys, self.out_tree, self.donated, self.integer_dtypes
        )
        return self._share(entry)

    def _share(self, entry: Entry) -> Entry:
        """Makes `entry`, of the same calls, share this one's counter and references; returns it."""
        entry.counter, entry.stale_values = self.counter, self.stale_values
        entry.captured, entry.written = self.captured, self.written
        return entry

    def for_leaves(self, leaves: Sequence[Any], order: Sequence[int]) -> Entry:
        """The entry of this program for leaves of these kinds which `gather` visits in this order; may be `self`."""
        kinds = [None if type(x) is ArrayImpl else x.dtype if type(x) is np.ndarray else type(x) for x in leaves]
        # Leaves that are all arrays, in pytree order, are what `run` gets: the entry itself serves them.
        if list(order) == list(range(len(leaves))) and not any(kinds):
            return self
        variant = (*order, *kinds)
        entry = self.variants.get(variant)
        if entry is None:
            # The program keeps its order of arguments. Only the indices into the leaves change.
            used_indices = [order.index(i) for i in self.used_indices]
            donated = frozenset(order.index(i) for i in self.donated)
            integer_dtypes = {order.index(i): dtype for i, dtype in self.integer_dtypes.items()}
            keys = [self.keys[i] for i in order]
            entry = self._share(
                Entry(self.program, self.consts, used_indices, keys, self.out_tree, donated, integer_dtypes)
            )
            if not self.calls_run:
                read = [(i, kinds[order[i]]) for i in used_indices if kinds[order[i]] is not None]
                converters = [(i, entry._converter(i, kind)) for i, kind in read]
                entry.prepare = _converting(converters, entry.prepare)
            clear_if_full(self.variants, LIMIT)[variant] = entry
        return entry

    def fast_path(self, fingerprint: Any) -> FastPath:
        """The fields that the generated call path uses, for settings with this fingerprint."""
        return (
            fingerprint,
            self.prepare,
            self.execute,
            self.handlers,
            self.finish,
            self.aval,
            self.placement,
            self.counter.calls_until_check,
            self,
        )

    def _converter(self, i: int, kind: Any) -> Callable[[Any], Any]:
        """A function that makes a buffer of leaf number `i`, which is of this kind. Equal numbers share one buffer,
        unless the call donates arguments."""
        # A cached buffer must not be donated, as it would be deleted under the next call with an equal number.
        if kind in NUMBERS and not self.donated:
            convert: Callable[[Any], Any] = _buffer_of_number
        else:
            convert = buffer_maker(aval_of_leaf(self.keys[i]).physical, default_sharding(), kind)
        return checking(self.integer_dtypes[i], convert) if i in self.integer_dtypes else convert

    def runs(self) -> int:
        """How often the program was called, with leaves in any order and of any kind."""
        return self.counter.calls

    def run(self, leaves: Sequence[Any]) -> Any:
        """The user's result for leaves in pytree order, each an array, a number or a NumPy array."""
        operands = [x._buf if type(x) is ArrayImpl else x for x in leaves]
        # On the general path a leaf may have another class than on the fast path, so the class is tested.
        for i in () if self.calls_run else self.used_indices:
            if type(operands[i]) is not _Buffer:
                operands[i] = self._converter(i, type(operands[i]))(operands[i])
        self.counter.count()
        # These lines repeat `calling.CALL`, which has them inline.
        try:
            arguments = operands if self.prepare is None else self.prepare(operands)
            results = self.execute(arguments).consume_with_handlers(self.handlers)
            return wrap(results[0], self.aval, self.placement) if self.finish is None else self.finish(results)
        except (JaxRuntimeError, ValueError, RuntimeError):
            self.consts.explain_failure()
            raise


class _WrappedResults:
    """Takes the place of jaxlib's result object where `Program.run` has already made arrays."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Array]):
        self.arrays = arrays

    # The handlers are not needed: `Program.run` has applied them.
    def consume_with_handlers(self, _: Any) -> list[Array]:
        return self.arrays


def _execute_by_run(
    program: Program,
    consts: Consts,
    used_indices: list[int],
    keys: Sequence[Any],
    donated: frozenset[int],
    integer_dtypes: Mapping[int, Dtype],
) -> Callable[[Sequence[Any]], _WrappedResults]:
    """`execute` for a program that goes through `Program.run`, to move its arguments or watch the run."""

    def execute(operands: Sequence[Any]) -> _WrappedResults:
        # Leaves are buffers, numbers and NumPy arrays. `Program.run` moves arrays, and needs their placements for that.
        check_all(integer_dtypes, operands)
        pairs = zip(operands, keys, strict=True)
        leaves = [wrap(x, aval_of(key), key) if type(x) is _Buffer else x for x, key in pairs]
        # Before the closed-over arrays are read: a donated one is replaced by its copy here.
        consts.replace_donated(operands, donated)
        leaves = [*consts.arrays, *[leaves[i] for i in used_indices]]
        adopted = [x if type(x) is ArrayImpl else program.adopt(x, i, bool(donated)) for i, x in enumerate(leaves)]
        return _WrappedResults(program.run(adopted))

    return execute


def _marking(mark: Callable[[Any], Any], prepare: _Prepare | None) -> _Prepare:
    """`prepare`, followed by the record of the PRNG keys that the program uses."""
    if prepare is None:
        return mark
    return lambda leaves: mark(prepare(leaves))


def _converting(converters: list[tuple[int, Callable[[Any], Any]]], prepare: _Prepare | None) -> _Prepare | None:
    """`prepare`, preceded by the conversion of numbers and NumPy arrays to buffers."""

    def convert(leaves: list[Any]) -> Sequence[Any]:
        for i, converter in converters:
            leaves[i] = converter(leaves[i])
        return leaves if prepare is None else prepare(leaves)

    return convert if converters else prepare


def _buffer_of_number(x: Any) -> Any:
    return scalar(x)._buf
