"""Sizes as users specify them: names of axes, and buckets of lengths."""

from __future__ import annotations

import inspect
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..._base import pytree
from ..._base.errors import OptionError, ShapeError, TreeError
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..jit.arguments import fun_name, signature_of

#: the name of each leading axis of an array, or None
Names = tuple[str | None, ...]


def parse_sizes(fun: Callable[..., Any], sizes: Mapping[str, Any]) -> dict[str, Any]:
    """For each parameter a tree of `Names`. Raises `OptionError` for other parameters than those of `fun`."""
    if not isinstance(sizes, Mapping) or not sizes:
        raise OptionError(f"pad_axes: sizes is {sizes!r}", instead="a dict such as {'x': 'n'}")
    signature = signature_of(fun)
    known = list(signature.parameters) if signature is not None else list(sizes)
    for name in sizes:
        if name not in known:
            raise OptionError(
                f"pad_axes: {fun_name(fun)} has no parameter {name!r}", instead="one of " + ", ".join(known), name=name
            )
    return {name: _parse(name, spec) for name, spec in sizes.items()}


def _parse(parameter: str, spec: Any) -> Any:
    if isinstance(spec, Mapping):
        return {key: _parse(parameter, value) for key, value in spec.items()}
    entries = spec.split(",") if isinstance(spec, str) else spec
    if not isinstance(entries, Sequence) or not all(isinstance(e, str | None) for e in entries):
        raise OptionError(
            f"pad_axes: the sizes of {parameter} are {spec!r}", instead="names of axes, such as 'batch, n'"
        )
    names = [None if e is None or e.strip() == "_" else e.strip() for e in entries]
    for name in names:
        if name is not None and not name.isidentifier():
            raise OptionError(
                f"pad_axes: {name!r}, in the sizes of {parameter}, is no name", instead="'n', '_' or None"
            )
    return tuple(names)


def leaf_names(fun: Callable[..., Any], specs: Mapping[str, Any], tree: PyTreeDef) -> list[Names]:
    """For each leaf of (args, kwargs), whose treedef is `tree`, the names of its leading axes."""
    args, kwargs = tree.unflatten(range(tree.num_leaves))
    names: list[Names] = [()] * tree.num_leaves
    for parameter, value in inspect.signature(fun).bind(*args, **kwargs).arguments.items():
        if parameter in specs:
            try:
                below = pytree.broadcast_prefix(specs[parameter], value, is_leaf=lambda s: isinstance(s, tuple))
            except TreeError as error:
                raise OptionError(
                    f"pad_axes: the sizes of {parameter}, {specs[parameter]!r}, do not fit its value: {error.what}",
                    instead="one tuple of names for all of its arrays",
                ) from None
            for index, leaf in zip(below, pytree.tree_leaves(value), strict=True):
                names[leaf] = index
    return names


def find_lengths(
    fun: Callable[..., Any], avals: Sequence[ShapedArray], names: Sequence[Names], labels: Callable[[], Sequence[str]]
) -> dict[str, Any]:
    """The length of each name. Raises `ShapeError` if axes of one name have different lengths, or do not exist."""
    lengths: dict[str, Any] = {}
    first: dict[str, int] = {}
    for i, (aval, axes) in enumerate(zip(avals, names, strict=True)):
        if len(axes) > aval.ndim:
            raise ShapeError(
                f"pad_axes: {fun_name(fun)} needs the axes {axes} of {labels()[i]}, which is {aval.short}",
                shapes=[aval.shape],
            )
        for name, n in zip(axes, aval.shape, strict=False):
            if name is None:
                continue
            if lengths.setdefault(name, n) != n:
                raise ShapeError(
                    f"pad_axes: {name} is {lengths[name]} in {labels()[first[name]]} and {n} in {labels()[i]}",
                    instead="arrays whose axes of one name have one length",
                    shapes=[avals[first[name]].shape, aval.shape],
                )
            first.setdefault(name, i)
    return lengths


class Buckets:
    """The lengths that programs are compiled for: a list for all names, lists for some, or powers of two."""

    def __init__(self, buckets: Sequence[int] | Mapping[str, Sequence[int]] | None):
        by_name = buckets if isinstance(buckets, Mapping) else {}
        self.by_name = {name: _rising(lengths) for name, lengths in by_name.items()}
        self.default = None if buckets is None or isinstance(buckets, Mapping) else _rising(buckets)

    def range_of(self, name: str, length: int) -> tuple[int, int]:
        """The least and the largest length in the bucket of `length`. Above the last bucket each length is its own."""
        lengths = self.by_name.get(name, self.default)
        if lengths is None:
            high = 1 << max(0, length - 1).bit_length()
            return high // 2 + 1, high
        at = bisect_left(lengths, length)
        if at == len(lengths):
            return length, length
        return (lengths[at - 1] if at else 0) + 1, lengths[at]


def _rising(lengths: Sequence[int]) -> list[int]:
    numbers = [int(n) for n in lengths]
    if not numbers or numbers[0] < 1 or any(a >= b for a, b in pairwise(numbers)):
        raise OptionError(f"pad_axes: buckets are {lengths!r}", instead="positive lengths in rising order")
    return numbers
