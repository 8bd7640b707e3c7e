"""Records which PRNG keys programs have used from run to run, for the flags `checks` and `debug_key_reuse`.

A program that draws from keys among its arguments marks their buffers: the mark is a `Use`, or a `View` of `Keys` if
single keys of an array are told apart. It is the attribute `_npy_value` of the buffer, which jaxlib reserves for the
Python package around it and phlox does not use. So marks live as long as the buffers do, and the check of an unused key
costs 0.1 µs.

What counts as a second use of one key:

- a draw, or a split, from a key that a draw or a split has used;
- a draw from ``keys[i]`` or ``fold_in(key, number)`` that was made a second time;
- a call of a jitted function of the user that draws from a used key. A call with the very same arguments as the first
  use, of a function that also takes other arrays than keys, is a repetition, as in a benchmark: it counts as no use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._base import checks, config
from .._base.source import Location, is_replaying, user_location
from .._ir.jaxpr import Jaxpr
from .._ir.key_uses import KeyUses, Mask
from .._trace.key_reuse import Problem, check, is_key


class Use(NamedTuple):
    """The use of a key by a program.

    Attributes:
      name: the program.
      arguments: ids of all arguments, where a repetition counts as no use.
      where: the user's line; None where it is not known, as looking for it takes 1 µs.
    """

    name: str
    arguments: tuple[int, ...] = ()
    where: Location | None = None


class Keys:
    """The uses of the keys in one array, which all views of the array share."""

    __slots__ = ("derived", "first", "used")

    def __init__(self, first: Use | None = None) -> None:
        #: the first use of any of the keys
        self.first = first
        #: a mask of the used keys: a bool for all, or an array of bools
        self.used: Mask = first is not None
        #: the keys that `fold_in` has made from one key and a number, by this number
        self.derived: dict[Any, Keys] = {}


class View(NamedTuple):
    """The keys of an array of this shape that basic indices select, one index after the other."""

    keys: Keys
    shape: tuple[int, ...]
    indices: tuple[Any, ...] = ()

    def mark(self, mask: Mask, use: Use) -> Use | None:
        """Marks the keys in `mask` as used; returns an earlier use of one of them, or None."""
        keys = self.keys
        # The mask of an array of keys is an array from here on, so that views of it can be marked.
        if self.shape and np.ndim(keys.used) == 0:
            keys.used = np.full(self.shape, keys.used)
        if self.shape:
            part = keys.used
            for index in self.indices:
                # Basic indices give views, so that the marks below are written into `keys.used`.
                part = part[index]
            # The program may use the keys in another shape; if their numbers differ, one used key counts as all.
            selected: Any = np.reshape(mask, part.shape) if np.size(mask) == part.size else bool(np.any(mask))
            before = bool(np.any(part & selected))
            part |= selected
        else:
            before, keys.used = bool(keys.used), True
        first, keys.first = keys.first, keys.first or use
        return first if before else None


#: the kinds of basic indices
_BASIC = (int, slice, type(None), type(...))


def _view(buffer: Any, shape: tuple[int, ...]) -> View:
    """The view that is the mark of a buffer; made if there is none."""
    mark = buffer._npy_value
    # The mark that was a `Use` becomes the first use of all keys of the array.
    if type(mark) is not View:
        mark = buffer._npy_value = View(Keys(mark), shape)
    return mark


def select(source: Any, result: Any, index: Any) -> None:
    """Notes that the array `result` is ``source[index]``, both arrays of keys. Indices that are arrays are ignored."""
    parts = index if isinstance(index, tuple) else (index,)
    if all(type(part) in _BASIC for part in parts):
        view = _view(source._buf, source.aval.shape)
        whole = parts if Ellipsis in parts else (*parts, ...)  # with "..." NumPy gives a view also for one element
        result._buf._npy_value = view._replace(indices=(*view.indices, whole))


def fold(key: Any, result: Any, data: Any) -> None:
    """Notes that the key `result` is ``fold_in(key, data)`` for the Python number `data`."""
    view = _view(key._buf, key.aval.shape)
    # Keys that are elements of an array have no place where the keys derived from them could be noted.
    if not view.indices:
        result._buf._npy_value = View(view.keys.derived.setdefault(data, Keys()), result.aval.shape)


def share(source: Any, result: Any) -> None:
    """Notes that the array `result` is the keys of `source`."""
    result._buf._npy_value = _view(source._buf, source.aval.shape)


def _use(buffer: Any, mask: Mask, use: Use, aval: Any, described: str = "") -> None:
    """Marks keys in a buffer of this type as used; reports those that were used before."""
    record = buffer._npy_value
    before = record.keys.first if type(record) is View else record
    if use.arguments and before is not None and before.arguments == use.arguments:
        return  # a repetition
    # Looking for the line takes 1 µs, ten times as long as the check of an unused key.
    if checks.is_strict() or described:
        use = use._replace(where=user_location())
    first = _view(buffer, aval.shape).mark(mask, use)
    if first is None or is_replaying():  # recorded equations are evaluated again
        return
    place = f"first used at {first.where}" if first.where else f"first used by {first.name}"
    Problem(f"{described}{use.name} draws from a {aval.short} again, {place}", None).tell()


class Observer:
    """Checks the runs of a program with keys among its arguments or results, before and after each.

    Attributes:
      name: what reports call the program.
      uses: how it uses the keys.
      repeatable: whether a call with the same arguments as an earlier one counts as no use.
      old: indices of the results that are keys, but neither new ones nor those of an argument.
    """

    def __init__(self, jaxpr: Jaxpr, name: str, uses: KeyUses, repeatable: bool):
        self.name = name.lstrip("_")  # samplers run private functions
        self.uses = uses
        # A function of keys alone is a sampler, for which a second draw from one key is never a repetition.
        self.repeatable = repeatable and not all(map(is_key, jaxpr.invars))
        known = uses.unused | {o for _, o in uses.passed}
        # They count as used.
        self.old = [o for o, v in enumerate(jaxpr.outvars) if is_key(v) and o not in known]
        self.described = ""
        if config.current().debug_key_reuse:
            alone = len(jaxpr.eqns) == 1 and jaxpr.eqns[0].primitive.name == name
            self.described = f"Previously-consumed key passed to {name if alone else 'jit-compiled function'} at index "

    def before(self, arguments: Sequence[Any]) -> None:
        """Records the uses by a run; reports those of used keys."""
        # By identity, which is cheap. If the id of a dead buffer returns, a use is taken for a repetition, and not
        # reported.
        same = tuple(id(x._buf) for x in arguments) if self.repeatable else ()
        for i, mask in self.uses.consumed:
            x = arguments[i]
            _use(x._buf, mask, Use(self.name, same), x.aval, self.described and f"{self.described}{i}: ")

    def after(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """Records which keys the results are."""
        for o in self.old:
            results[o]._buf._npy_value = Use(self.name)
        for i, o in self.uses.passed:
            share(arguments[i], results[o])

    def marker(self, avals: Sequence[Any]) -> Callable[[Any], Any] | None:
        """A faster form of `before`, from buffers of arguments of these types to these buffers; None if `after` must be
        called too."""
        consumed = [(i, mask, avals[i]) for i, mask in self.uses.consumed]
        if self.old or self.uses.passed or self.described:
            return None
        whole, repeatable = Use(self.name), self.repeatable

        def mark(buffers: Any) -> Any:
            use = whole._replace(arguments=tuple(map(id, buffers))) if repeatable else whole
            for i, mask, aval in consumed:
                _use(buffers[i], mask, use, aval)
            return buffers

        if len(consumed) != 1 or consumed[0][1] is not True or repeatable:
            return mark
        only = consumed[0][0]

        def mark_one(buffers: Any) -> Any:
            buffer = buffers[only]
            # An unused key has no mark: the common case costs one test.
            if buffer._npy_value is None:
                buffer._npy_value = whole
            else:
                mark(buffers)
            return buffers

        return mark_one


def observer(jaxpr: Jaxpr, name: str, repeatable: bool) -> Observer | None:
    """The `Observer` that the flags require, or None. Keys that the program itself uses twice are reported.

    Args:
      jaxpr: what the program computes, with its constants as first arguments.
      name: what reports call it.
      repeatable: whether a call with the same arguments is a repetition, unless all arguments are keys.

    Returns:
      The observer of runs.

    Raises:
      KeyReuseError: the program uses a key twice, and the flag `debug_key_reuse` is on.
      CheckError: it does, and checks are strict.
    """
    observed = Observer(jaxpr, name, check(jaxpr), repeatable)
    if observed.uses.consumed:
        return observed
    return observed if observed.described and (observed.uses.passed or observed.old) else None
