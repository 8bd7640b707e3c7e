"""The rules `pad` of convolutions and windowed reductions: windows that reach behind the true length read the neutral
element there, as those that reach behind the end of the unpadded array do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._ir.bounds import bounds
from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import primitive
from ..._trace.trace import typeof
from ..._transform.padding import Padding, pad_elementwise, refuse
from .geometry import dilated

_VARIES = "a window moves along an axis whose length varies"


def _width(n: int, low: int, window: int, stride: int, base: int, gap: int, out: int) -> tuple[int, int]:
    """(low, high): the padding of an axis of length `n` such that the result has the length `out`."""
    # Up to the end of the last window; the rest of the axis, if any, is cut off by a negative width.
    reach = (out - 1) * stride + dilated(window, gap)
    return low, reach - low - dilated(n, base)


def _started(padding: Padding, eqn: JaxprEqn, x: Any, axis: int, pads: Any, base: int, value: Any) -> tuple[Any, Any]:
    """The operand, and the padding before it as a number. If it depends on a length, as with 'SAME' and strides, the
    elements are moved to where they begin when the program runs. The `value` is that of windows' padding."""
    low, _ = pads
    if not is_symbolic(low):
        return x, low
    if bounds(low)[0] < 0:
        refuse(eqn, "the first window may begin before or behind the first element")
    aval, most = typeof(x), padding.capacity(low)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (most, 0, base - 1)
    fill = np.asarray(value, aval.dtype)[()]
    x = primitive("pad").bind(x, fill, padding_config=tuple(config))
    start = primitive("sub").bind(np.int32(most), padding.length(low))
    return padding.from_position(x, axis, start, most, fill), 0


class _Window(NamedTuple):
    """The windows along an axis: parameters of an operation, some of which are symbolic."""

    axis: int
    pads: Any
    length: Any
    stride: int
    base: int
    gap: int
    out: Any

    def varies(self, shape: Sequence[Any]) -> bool:
        """Whether the true shape, or the windows, vary."""
        return any(map(is_symbolic, (shape[self.axis], *self.pads, self.length, self.out)))


def _windows(
    padding: Padding, eqn: JaxprEqn, x: Any, shape: Sequence[Any], windows: Sequence[_Window], value: Any
) -> tuple[Any, tuple[tuple[int, int], ...], tuple[int, ...]]:
    """(the padded operand of this true shape, the padding, and the base dilation of each window)."""
    pads, bases = [], []
    for w in windows:
        low, base = w.pads, w.base
        if not w.varies(shape):
            pads.append(low)
        else:
            moved, first = _started(padding, eqn, x, w.axis, w.pads, base, value)
            base = base if moved is x else 1
            x, n = moved, typeof(moved).shape[w.axis]
            pads.append(_width(n, first, padding.capacity(w.length), w.stride, base, w.gap, padding.capacity(w.out)))
        bases.append(base)
    return x, tuple(pads), tuple(bases)


def _axes(window: dict[str, Any], out: Sequence[Any]) -> list[_Window]:
    """The windows of a windowed reduction, with as many places along each axis as `out` says."""
    ones = (1,) * len(out)
    columns = (
        range(len(out)),
        window["padding"],
        window["window_dimensions"],
        window["window_strides"],
        window.get("base_dilation", ones),
        window.get("window_dilation", ones),
        out,
    )
    return [_Window(*column) for column in zip(*columns, strict=True)]


def reduction_pad(start: Callable[[Any], Any]) -> Callable[..., Any]:
    """The rule of a windowed reduction with the neutral element ``start(dtype)``."""

    def pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
        aval, out, window = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params
        neutral = start(aval.dtype)
        x = padding.filled(x, aval, neutral)
        x, pads, bases = _windows(padding, eqn, x, aval.shape, _axes(window, out.shape), neutral)
        return eqn.primitive.bind(x, **{**window, "padding": pads, "base_dilation": bases})

    return pad


def selection_pad(worst: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The rule of sums over selected elements. ``worst(select_prim, dtype)`` is the value that is never selected."""

    def pad(padding: Padding, eqn: JaxprEqn, values: Any, operand: Any) -> Any:
        first, aval, out, window = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval, eqn.params
        windows = first if out.shape == aval.shape else out  # the one that has a value for each window
        axes = _axes(window, windows.shape)
        if any(is_symbolic(low) for low, _ in window["padding"]):
            refuse(eqn, "where the first window begins depends on a length")
        operand = padding.filled(operand, aval, worst(window["select_prim"], aval.dtype))
        operand, pads, _ = _windows(padding, eqn, operand, aval.shape, axes, 0)
        return eqn.primitive.bind(padding.filled(values, first, 0), operand, **{**window, "padding": pads})

    return pad


def unwindowed_pad(padding: Padding, eqn: JaxprEqn, *args: Any) -> Any:
    """The rule of other operations on windows: along padded axes these have the length one."""
    window, ones = eqn.params, ("window_dimensions", "window_strides", "base_dilation", "window_dilation")
    for v in (*eqn.invars, *eqn.outvars):
        for axis, n in enumerate(v.aval.shape):
            if is_symbolic(n) and (
                any(window[name][axis] != 1 for name in ones if name in window) or window["padding"][axis] != (0, 0)
            ):
                refuse(eqn, _VARIES)
    return pad_elementwise(padding, eqn, *args)


def conv_pad(padding: Padding, eqn: JaxprEqn, lhs: Any, rhs: Any) -> Any:
    left, right, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    window, numbers = eqn.params, eqn.params["dimension_numbers"]
    if any(is_symbolic(window[name]) for name in ("feature_group_count", "batch_group_count")):
        refuse(eqn, "the number of groups varies")
    grouped = window["batch_group_count"] != 1 and is_symbolic(left.shape[numbers.lhs_spec[0]])
    if grouped or (window["feature_group_count"] != 1 and is_symbolic(left.shape[numbers.lhs_spec[1]])):
        refuse(eqn, "the length of the groups varies")
    columns = (
        numbers.lhs_spec[2:],
        window["padding"],
        (right.shape[i] for i in numbers.rhs_spec[2:]),
        window["window_strides"],
        window["lhs_dilation"],
        window["rhs_dilation"],
        (out.shape[i] for i in numbers.out_spec[2:]),
    )
    axes = [_Window(*column) for column in zip(*columns, strict=True)]
    # Windows over the batch add nothing up.
    lhs = padding.filled(lhs, left, 0, numbers.lhs_spec[1:])
    rhs = padding.filled(rhs, right, 0, numbers.rhs_spec[1:])
    lhs, pads, bases = _windows(padding, eqn, lhs, left.shape, axes, 0)
    return eqn.primitive.bind(lhs, rhs, **{**padding.params(eqn), "padding": pads, "lhs_dilation": bases})
