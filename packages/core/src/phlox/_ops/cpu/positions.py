"""The form of argmax and argmin of floats for CPUs: extrema of groups first, then places in the group that is found.

XLA's reductions of pairs (value, index) on CPUs take one element after another; those of values alone use vector
instructions. Along the axis elements are divided into groups, whose extrema take one such reduction; the first group
with the best one, and the first place in it, are looked for among few elements.

Arrays with nan take another branch of the program, as these reductions on CPUs may lose nan. The sum of all elements
tells: it is nan if there is one (or if there are infinities of both signs, for which that branch is right, too).
"""

from __future__ import annotations

import functools
from typing import Any

from ..._ir import dtypes
from ..._ir.dtypes import highest, lowest
from ..._ir.primitive import Primitive
from ..._trace.trace import typeof
from ..._xla.forms import Form
from ..._xla.text import Function, Value
from ..elementwise.arithmetic import add, mul
from ..elementwise.families import literal, lowered_as
from ..elementwise.logic import eq, select
from ..reductions.reduce import Axes, argmax, argmin, fast_max, fast_min, reduce_min
from ..structure.dimension_numbers import GatherDimensionNumbers
from ..structure.gather import take
from ..structure.iota import iota
from ..structure.shape import broadcast_in_dim, pad, reshape
from .unless_nan import unless_nan

#: the least number of elements, and the least length of the axis: others are as fast as pairs, and compile sooner
_LEAST, _SHORTEST = 1 << 17, 48


def _form(primitive: Primitive, largest: bool) -> Form:
    def applies(f: Function, x: Value, axes: Axes, index_dtype: Any) -> bool:
        aval = x.aval
        return (
            aval.size >= _LEAST
            # Below 2**30, positions in the padding of the last group are still int32 numbers.
            and _SHORTEST <= aval.shape[axes[0]] < 1 << 30
            and dtypes.kind(aval.dtype) == "f"
            and dtypes.bits(aval.dtype) >= 8
            and dtypes.bits(index_dtype) >= 32
            and f.module.partitions == 1  # over several devices the axis may be divided otherwise
        )

    def write(f: Function, x: Value, axes: Axes, index_dtype: Any) -> Value:
        out = f.out
        in_groups = lowered_as(functools.partial(_position_in_groups, largest=largest))

        def portable(g: Function) -> Value:
            g.outs = [out]
            pairs: Value = primitive.lower(g, x, axes, index_dtype)
            return pairs

        return unless_nan(f, x, out, lambda g: in_groups(g, x, axis=axes[0], index_dtype=index_dtype), portable)

    return Form(applies, write, "1e6 float32: 0.3 of the time of XLA's pairs")


def _position_in_groups(x: Any, axis: int, index_dtype: Any, largest: bool) -> Any:
    """The positions along `axis` of the first largest or smallest elements of `x`, which has no nan."""
    extremum = fast_max if largest else fast_min
    shape, dtype = typeof(x).shape, typeof(x).dtype
    n = shape[axis]
    length = _group(n)
    count = -(-n // length)
    # The padding is last in the last group: also where all elements equal it, the first position is an element's.
    if count * length > n:
        more, worst = count * length - n, (lowest if largest else highest)(dtype)
        x = pad(x, literal(x, worst), padding_config=tuple((0, more * (i == axis), 0) for i in range(len(shape))))
    x = reshape(x, new_sizes=(*shape[:axis], count, length, *shape[axis + 1 :]), dimensions=None)
    groups = extremum(x, axes=(axis + 1,))
    best = extremum(groups, axes=(axis,))
    group = _first(groups, best, axis, index_dtype)
    # The first group with the best value holds its first position.
    return add(mul(group, literal(group, length)), _first(_take_groups(x, group, axis), best, axis, index_dtype))


def _group(n: int) -> int:
    """The length of a group: about the root of `n`, and a divisor of it if there is one not far away."""
    root = int(n**0.5)
    near = [d for d in range(max(8, root // 4), min(4 * root, n // 4) + 1) if n % d == 0]
    return min(near, key=lambda d: abs(d - root)) if near else root


def _first(x: Any, value: Any, axis: int, index_dtype: Any) -> Any:
    """The first position along `axis` at which `x` has `value`."""
    shape = typeof(x).shape
    value = broadcast_in_dim(value, shape=shape, broadcast_dimensions=tuple(i for i in range(len(shape)) if i != axis))
    positions = iota(dtype=index_dtype, shape=shape, dimension=axis)
    # The first place is the least position that holds the value, so that no reduction of pairs is needed.
    return reduce_min(select(eq(x, value), positions, literal(positions, shape[axis])), axes=(axis,))


def _take_groups(x: Any, group: Any, axis: int) -> Any:
    """The elements of the group of each index along the other axes. Groups are numbered along `axis` of `x`."""
    shape = typeof(x).shape
    others = tuple(i for i in range(len(shape)) if i not in (axis, axis + 1))
    numbers = GatherDimensionNumbers((axis,), (axis,), (axis,), others, tuple(range(len(others))))
    return take(x, group, numbers, [n if i == axis + 1 else 1 for i, n in enumerate(shape)], unique=True)


FORMS = {argmax: [_form(argmax, True)], argmin: [_form(argmin, False)]}
