"""Sizes as users specify them: names of axes, and lengths such as ``2*n + 1``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._base import pytree
from ..._base.errors import OptionError, ShapeError
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..._ir.dimensions import is_symbolic
from ..jit.arguments import fun_name, signature_of
from ..jit.bound_call import Statics, join_static

#: the spec of arrays whose leading axis varies, and is named after its length in a call
AUTO = "auto"
_SIZE = re.compile(r"(?:(?P<factor>[1-9]\d*)\s*\*\s*)?(?P<name>[^\W\d]\w*)\s*(?P<offset>[+-]\s*\d+)?")


class Size(NamedTuple):
    """The length of an axis: `factor` times the length that `name` stands for, plus `offset`."""

    name: str
    factor: int = 1
    offset: int = 0

    def length(self, n: Any) -> Any:
        """The length of the axis where that of the name is `n`."""
        return n * self.factor + self.offset

    def solve(self, length: Any) -> Any:
        """The length of the name where that of the axis is `length`; None if there is none."""
        rest = length - self.offset
        if self.factor == 1:
            return rest
        return None if is_symbolic(rest) or rest % self.factor else rest // self.factor

    def __str__(self) -> str:
        return (f"{self.factor}*" if self.factor > 1 else "") + self.name + (f"{self.offset:+}" if self.offset else "")


#: the size of each leading axis of an array, or None
Names = tuple[Size | None, ...]
_AUTO_NAMES: Names = (Size(AUTO),)


def parse_sizes(fun: Callable[..., Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """For each parameter a tree of `Names`. Raises `OptionError` for other parameters than those of `fun`."""
    if not isinstance(sizes, Mapping) or not sizes:
        raise OptionError(f"sizes: {fun_name(fun)} got sizes={sizes!r}", instead="'auto', or a dict such as {'x': 'n'}")
    signature = signature_of(fun)
    known = list(signature.parameters) if signature is not None else list(sizes)
    for name in sizes:
        if name not in known:
            raise OptionError(
                f"sizes: {fun_name(fun)} has no parameter {name!r}", instead="one of " + ", ".join(known), name=name
            )
    return {name: _parse(name, spec) for name, spec in sizes.items()}


def _parse(parameter: str, spec: Any) -> Any:
    if isinstance(spec, Mapping):
        return {key: _parse(parameter, value) for key, value in spec.items()}
    entries = spec.split(",") if isinstance(spec, str) else spec
    if not isinstance(entries, Sequence) or not all(isinstance(e, str | None) for e in entries):
        raise OptionError(f"sizes: the sizes of {parameter} are {spec!r}", instead="names of axes, such as 'batch, n'")
    return tuple(None if e is None or e.strip() == "_" else _parse_size(parameter, e.strip()) for e in entries)


def _parse_size(parameter: str, text: str) -> Size:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise OptionError(
            f"sizes: {text!r}, in the sizes of {parameter}, is no name", instead="'n', '2*n + 1', '_' or None"
        )
    return Size(match["name"], int(match["factor"] or 1), int((match["offset"] or "0").replace(" ", "")))


def leaf_names(
    fun: Callable[..., Any], specs: Mapping[str, Any], tree: PyTreeDef, statics: Statics = ()
) -> list[Names]:
    """For each leaf of (args, kwargs), whose treedef is `tree`, the names of its leading axes."""
    leaves = pytree.placeholders(tree)
    position = {id(leaf): i for i, leaf in enumerate(pytree.tree_leaves(leaves))}
    args, kwargs = join_static(statics, *leaves)
    names: list[Names] = [()] * tree.num_leaves
    for parameter, value in inspect.signature(fun).bind(*args, **kwargs).arguments.items():
        if parameter in specs:
            below = pytree.spread(f"sizes of {parameter}", specs[parameter], value, lambda s: isinstance(s, tuple))
            for index, leaf in zip(below, pytree.tree_leaves(value), strict=True):
                names[position[id(leaf)]] = index
    return names


def named_by_length(names: Sequence[Names], avals: Sequence[ShapedArray]) -> list[Names]:
    """The names, with one for each length that a leading axis of `AUTO` has: equal lengths vary together."""
    numbers: dict[Any, int] = {}
    result = list(names)
    for i, (axes, aval) in enumerate(zip(names, avals, strict=True)):
        if axes == _AUTO_NAMES:
            # Arrays of the same length share a size.
            result[i] = (Size(f"n{numbers.setdefault(aval.shape[0], len(numbers))}"),) if aval.ndim else ()
    return result


class Examples:
    """The arrays whose leading axis varies, found by example: those whose length differs between two calls.

    Attributes:
      first: the leading lengths in the first call, by the types without these.
      varying: the numbers of leaves that had another length since then.
    """

    def __init__(self) -> None:
        self.first: dict[Any, list[Any]] = {}
        self.varying: dict[Any, set[int]] = {}

    def names(self, key: Any, avals: Sequence[ShapedArray]) -> list[Names]:
        """The names of axes of a call. `key` has what else its program depends on."""
        # Without the leading lengths, which may vary between calls of one kind.
        key = (key, *[(aval.shape[1:], aval.ndim, aval.dtype, aval.weak_type) for aval in avals])
        lengths = [aval.shape[0] if aval.ndim else None for aval in avals]
        first = self.first.setdefault(key, lengths)
        varying = self.varying.setdefault(key, set())
        varying |= {i for i, (n, other) in enumerate(zip(lengths, first, strict=True)) if n != other}
        return [_AUTO_NAMES if i in varying else () for i in range(len(avals))]


def find_lengths(
    fun: Callable[..., Any], avals: Sequence[ShapedArray], names: Sequence[Names], labels: Callable[[], Sequence[str]]
) -> dict[str, Any]:
    """The length of each name. Raises `ShapeError` if axes of one name have different lengths, or do not exist."""
    lengths: dict[str, Any] = {}
    first: dict[str, int] = {}
    for i, (aval, axes) in enumerate(zip(avals, names, strict=True)):
        if len(axes) > aval.ndim:
            axis_names = ", ".join(map(str, axes))
            raise ShapeError(
                f"sizes: {fun_name(fun)} needs the axes {axis_names} of {labels()[i]}, which is {aval.short}",
                shapes=[aval.shape],
            )
        for size, length in zip(axes, aval.shape, strict=False):
            if size is None:
                continue
            n, name = size.solve(length), size.name
            if n is None:
                raise ShapeError(f"sizes: {size} cannot be {length}, as in {labels()[i]}", shapes=[aval.shape])
            if lengths.setdefault(name, n) != n:
                raise ShapeError(
                    f"sizes: {name} is {lengths[name]} in {labels()[first[name]]} and {n} in {labels()[i]}",
                    instead="arrays whose axes of one name have one length",
                    shapes=[avals[first[name]].shape, aval.shape],
                )
            first.setdefault(name, i)
    return lengths
