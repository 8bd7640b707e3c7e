"""The form of depthwise convolutions for CPUs, where XLA's convolution with as many groups as channels is a slow loop.

Each channel has a kernel of its own, of few numbers: the result is a sum of as many slices of the operand, each times
one number for each channel. The derivative by the kernel is, number by number, a sum of products with such a slice.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from ..._ir import dtypes
from ..._trace.trace import typeof
from ..._xla.forms import Form
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, mul
from ..elementwise.families import literal, lowered_as
from ..reductions.reduce import reduce_sum
from ..structure.shape import broadcast_in_dim, concatenate, pad, reshape, transpose
from ..structure.slicing import slice_
from ..windows.conv import conv_general_dilated

#: the most slices, which bounds the size of the program, and the least number of elements
_MOST, _LEAST = 49, 1 << 12


def _applies(f: Function, lhs: Value, rhs: Value, **params: Any) -> bool:
    """Whether each channel, or each group of the batch, is one of its own."""
    if lhs.aval.dtype != dtypes.float32 or f.out.dtype != dtypes.float32 or lhs.aval.size < _LEAST:
        return False
    if f.module.partitions > 1:
        return False
    numbers = params["dimension_numbers"]
    outs = rhs.aval.shape[numbers.rhs_spec[0]]
    # One channel is an ordinary convolution.
    if outs == 1:
        return False
    if params["feature_group_count"] == outs == lhs.aval.shape[numbers.lhs_spec[1]]:
        return math.prod(rhs.aval.shape[i] for i in numbers.rhs_spec[2:]) <= _MOST
    if params["batch_group_count"] == outs == lhs.aval.shape[numbers.lhs_spec[0]]:
        return math.prod(f.out.shape[i] for i in numbers.out_spec[2:]) <= _MOST
    return False


def _depthwise(lhs: Any, rhs: Any, out: Any, **params: Any) -> Any:
    """The convolution, whose type is `out`."""
    numbers = params["dimension_numbers"]
    by_channel = params["feature_group_count"] > 1
    config = [(0, 0, 0)] * typeof(lhs).ndim
    for axis, (low, high), gap in zip(numbers.lhs_spec[2:], params["padding"], params["lhs_dilation"], strict=True):
        config[axis] = (low, high, gap - 1)
    # Padding, negative padding and dilation of the operand are done once, so that each slice below is a plain one.
    lhs = pad(lhs, literal(lhs, 0), padding_config=tuple(config))
    window = tuple(typeof(rhs).shape[i] for i in numbers.rhs_spec[2:])
    out_lengths = tuple(out.shape[i] for i in numbers.out_spec[2:])
    strides, gaps = params["window_strides"], params["rhs_dilation"]
    # Where a slice begins, its steps and its lengths: of all results for one element of the kernel, or the reverse.
    firsts, steps, lengths, starts = (
        (window, strides, out_lengths, gaps) if by_channel else (out_lengths, gaps, window, strides)
    )
    parts = []
    # One slice for each element of the kernel, or for its derivative one for each result, which are the few then.
    for at in itertools.product(*map(range, firsts)):
        begin, end, by = [0] * typeof(lhs).ndim, list(typeof(lhs).shape), [1] * typeof(lhs).ndim
        for axis, i, start, step, length in zip(numbers.lhs_spec[2:], at, starts, steps, lengths, strict=True):
            begin[axis], end[axis], by[axis] = i * start, i * start + (length - 1) * step + 1, step
        part = slice_(lhs, start_indices=tuple(begin), limit_indices=tuple(end), strides=tuple(by))
        parts.append(_scaled(part, rhs, at, numbers) if by_channel else _summed(part, rhs, numbers))
    if by_channel:
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        return _arranged(total, numbers.lhs_spec, numbers.out_spec)
    count = typeof(parts[0]).shape[0]
    columns = [reshape(part, new_sizes=(count, 1), dimensions=None) for part in parts]
    table = concatenate(*columns, dimension=1) if len(columns) > 1 else columns[0]
    table = reshape(table, new_sizes=(1, count, *out_lengths), dimensions=None)
    return _arranged(table, tuple(range(2 + len(out_lengths))), numbers.out_spec)


def _scaled(part: Any, rhs: Any, at: tuple[int, ...], numbers: Any) -> Any:
    """`part` times the element of each channel's kernel at `at`."""
    spec, shape = numbers.rhs_spec, typeof(rhs).shape
    begin, end = [0] * len(shape), list(shape)
    for axis, i in zip(spec[2:], at, strict=True):
        begin[axis], end[axis] = i, i + 1
    scale = slice_(rhs, start_indices=tuple(begin), limit_indices=tuple(end), strides=None)
    scale = reshape(scale, new_sizes=(shape[spec[0]],), dimensions=None)
    whole = typeof(part).shape
    return mul(part, broadcast_in_dim(scale, shape=whole, broadcast_dimensions=(numbers.lhs_spec[1],)))


def _summed(part: Any, rhs: Any, numbers: Any) -> Any:
    """For each group the sum of the products of the elements of `part` and of `rhs`."""
    products = mul(part, _arranged(rhs, numbers.rhs_spec, numbers.lhs_spec))
    axes = tuple(i for i in range(typeof(part).ndim) if i != numbers.lhs_spec[0])
    return reduce_sum(products, axes=axes)


def _arranged(x: Any, spec: tuple[int, ...], out_spec: tuple[int, ...]) -> Any:
    """`x`, whose axes mean what `spec` says, with them in the order of `out_spec`."""
    order = [0] * len(spec)
    for have, want in zip(spec, out_spec, strict=True):
        order[want] = have
    return x if order == sorted(order) else transpose(x, permutation=tuple(order))


def _write(f: Function, lhs: Value, rhs: Value, **params: Any) -> Value:
    result: Value = lowered_as(_depthwise)(f, lhs, rhs, out=f.out, **params)
    return result


FORMS = {conv_general_dilated: [Form(_applies, _write, "3x3, 64 channels of 56x56: 0.04 of XLA's time")]}
