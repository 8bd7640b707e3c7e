"""The rules `pad` of convolutions and windowed reductions: windows that reach behind the true length read the neutral
element there, as those that reach behind the end of the unpadded array do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._ir.dimensions import is_symbolic
from ..._ir.jaxpr import JaxprEqn
from ..._transform.padding import Padding, passes, refuse
from .geometry import dilated

_VARIES = "a window moves along an axis whose length varies"


def _width(
    padding: Padding, eqn: JaxprEqn, n: Any, pads: Any, window: Any, stride: int, base: int, gap: int, out: Any
) -> tuple[int, int]:
    """(low, high): the padding of an axis of true length `n` such that the padded result has the length of `out`."""
    low, high = pads
    if not any(map(is_symbolic, (n, low, high, out))):
        return low, high
    if is_symbolic(low):
        refuse(eqn, "where the first window begins depends on a length")
    reach = (padding.capacity(out) - 1) * stride + dilated(padding.capacity(window), gap)
    return low, reach - low - dilated(padding.capacity(n), base)


def reduction_pad(start: Callable[[Any], Any]) -> Callable[..., Any]:
    """The rule of a windowed reduction with the neutral element ``start(dtype)``."""

    def pad(padding: Padding, eqn: JaxprEqn, x: Any) -> Any:
        aval, out, window = eqn.invars[0].aval, eqn.outvars[0].aval, eqn.params
        columns = zip(
            aval.shape,
            window["padding"],
            window["window_dimensions"],
            window["window_strides"],
            window["base_dilation"],
            window["window_dilation"],
            out.shape,
            strict=True,
        )
        pads = tuple(_width(padding, eqn, *column) for column in columns)
        return eqn.primitive.bind(padding.filled(x, aval, start(aval.dtype)), **{**window, "padding": pads})

    return pad


def selection_pad(worst: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The rule of sums over selected elements. ``worst(select_prim, dtype)`` is the value that is never selected."""

    def pad(padding: Padding, eqn: JaxprEqn, values: Any, operand: Any) -> Any:
        first, aval, out, window = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval, eqn.params
        windows = first if out.shape == aval.shape else out  # the one that has a value for each window
        ones = (1,) * aval.ndim
        columns = zip(
            aval.shape,
            window["padding"],
            window["window_dimensions"],
            window["window_strides"],
            window.get("base_dilation", ones),
            window.get("window_dilation", ones),
            windows.shape,
            strict=True,
        )
        pads = tuple(_width(padding, eqn, *column) for column in columns)
        operand = padding.filled(operand, aval, worst(window["select_prim"], aval.dtype))
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
    return passes(padding, eqn, *args)


def conv_pad(padding: Padding, eqn: JaxprEqn, lhs: Any, rhs: Any) -> Any:
    left, right, out = eqn.invars[0].aval, eqn.invars[1].aval, eqn.outvars[0].aval
    window, numbers = eqn.params, eqn.params["dimension_numbers"]
    if any(is_symbolic(window[name]) for name in ("feature_group_count", "batch_group_count")):
        refuse(eqn, "the number of groups varies")
    grouped = window["batch_group_count"] != 1 and is_symbolic(left.shape[numbers.lhs_spec[0]])
    if grouped or (window["feature_group_count"] != 1 and is_symbolic(left.shape[numbers.lhs_spec[1]])):
        refuse(eqn, "the length of the groups varies")
    columns = zip(
        (left.shape[i] for i in numbers.lhs_spec[2:]),
        window["padding"],
        (right.shape[i] for i in numbers.rhs_spec[2:]),
        window["window_strides"],
        window["lhs_dilation"],
        window["rhs_dilation"],
        (out.shape[i] for i in numbers.out_spec[2:]),
        strict=True,
    )
    pads = tuple(_width(padding, eqn, *column) for column in columns)
    # Windows over the batch add nothing up.
    lhs = padding.filled(lhs, left, 0, numbers.lhs_spec[1:])
    rhs = padding.filled(rhs, right, 0, numbers.rhs_spec[1:])
    return eqn.primitive.bind(lhs, rhs, **{**padding.params(eqn), "padding": pads})
