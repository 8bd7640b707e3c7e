"""Checks of shapes, sizes and parameters of layers, with errors that name the layer."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from phlox import ShapeDtypeStruct, eval_shape
from phlox.errors import ArgumentError, ShapeError, TreeError

from ._layer import Shape


def integer(n: Any) -> int | None:
    """A Python int for an integer of Python, NumPy or phlox; None for other objects and for bools."""
    try:
        return None if isinstance(n, bool) else operator.index(n)
    except TypeError:
        return None


def features(layer: str, out_dim: Any) -> int:
    """`out_dim`, the number of features of the outputs, as an int; raises unless it is positive."""
    width = integer(out_dim)
    if width is None or width < 1:
        raise ArgumentError(
            f"{layer}: the number of features must be a positive integer, got {out_dim!r}", out_dim=out_dim
        )
    return width


def lengths(layer: str, option: str, values: Any, count: int | None = None) -> Shape:
    """`values` as a tuple of positive integers, `count` of them."""
    integers = [integer(n) for n in values] if isinstance(values, Sequence) else [None]
    if not all(n is not None and n > 0 for n in integers) or count not in (None, len(integers)):
        many = "" if count is None else f"{count} "
        raise ArgumentError(
            f"{layer}: {option} must be a tuple of {many}positive integers, got {values!r}",
            instead=f"for example {option}={(2,) * (count or 2)}",
            **{option: values},
        )
    return tuple(n for n in integers if n is not None)


def checked_shape(layer: str, shape: Any) -> Shape:
    """`shape` as a tuple of ints; raises `ShapeError` unless each is a length or -1."""
    integers = [integer(n) for n in shape] if isinstance(shape, tuple | list) else [None]
    if not all(n is not None and n >= -1 for n in integers):
        raise ShapeError(
            f"{layer}: input_shape must be a tuple of lengths (or -1 for one not known yet), got {shape!r}",
            instead="for example (-1, 64), a batch of any size with 64 features",
            shape=shape,
        )
    return tuple(n for n in integers if n is not None)


def checked_shapes(layer: str, shapes: Any) -> Any:
    """One shape as a tuple of lengths. Several shapes, in a list or a dict, are returned unchecked: layers that take
    several inputs check them."""
    nested = isinstance(shapes, tuple | list) and shapes and all(isinstance(s, tuple | list | dict) for s in shapes)
    return shapes if nested or isinstance(shapes, dict) else checked_shape(layer, shapes)


def shape_with_axes(layer: str, shape: Any, rank: int, batch: int) -> Shape:
    """`shape` as a tuple of `rank` lengths, of which only that of the axis `batch` may be -1."""
    sizes = checked_shape(layer, shape)
    if len(sizes) != rank or -1 in (*sizes[:batch], *sizes[batch + 1 :]):
        raise ShapeError(
            f"{layer}: input_shape {sizes} must have {rank} lengths; -1 may stand for the batch's, axis {batch}, alone",
            instead="the shape of the inputs",
            shape=sizes,
        )
    return sizes


def output_shape(function: Callable[[Any], Any], input_shape: Shape, batch: int, out_batch: int) -> Shape:
    """The shape of the result of `function` for an array of shape `input_shape`.

    If the length of the axis `batch` is -1, so is that of the axis `out_batch` of the result.
    """
    known = tuple(1 if n == -1 else n for n in input_shape)
    shape = list(eval_shape(function, ShapeDtypeStruct(known, "float32")).shape)
    if input_shape[batch] == -1:
        shape[out_batch] = -1
    return tuple(shape)


def pair(layer: str, params: Any, names: str) -> tuple[Any, Any]:
    """The two parameters of a layer; raises `TreeError` unless `params` is a pair."""
    if not isinstance(params, tuple | list) or len(params) != 2:
        raise TreeError(
            f"{layer}: the parameters must be a pair {names}, got a {type(params).__name__}",
            instead="the parameters that init returned",
            path=(),
            expected=names,
            got=params,
        )
    first, second = params
    return first, second


def one_for_each(layer: str, what: str, values: Any, count: int, instead: str) -> list[Any]:
    """`values` as a list; raises `TreeError` unless it has one for each of the `count` layers inside of `layer`."""
    iterable = isinstance(values, Iterable) and not isinstance(values, dict | str)
    items = list(values) if iterable else []
    if not iterable or len(items) != count:
        raise TreeError(
            f"{layer}: {what} must be a list with one for each of {count} layers, "
            f"got {len(items) if iterable else f'a {type(values).__name__}'}",
            instead=instead,
            path=(),
            expected=count,
            got=values,
        )
    return items
