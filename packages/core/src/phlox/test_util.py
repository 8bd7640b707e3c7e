"""``phlox.test_util``: checks of derivatives against finite differences, as in ``jax.test_util``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ._api.derivatives.differentiate import jvp, linearize, vjp
from ._base import pytree
from ._base.docstrings import docs_from
from ._base.public_names import publish
from ._ir import dtypes
from ._trace.trace import typeof

__all__ = ["check_grads", "check_jvp", "check_vjp"]

#: The default tolerance, by the number of bytes of an element (of its real part for complex dtypes).
_TOLERANCE = {1: 1.0, 2: 1e-1, 4: 2e-3, 8: 1e-5}
#: The same for values that are no finite differences.
_VALUE_TOLERANCE = {1: 1.0, 2: 1e-2, 4: 1e-6, 8: 1e-15}
_STEP = 1e-4

Tolerance = float | dict[Any, float] | None


def _host(tree: Any) -> Any:
    """The tree with NumPy arrays for all leaves."""
    return pytree.tree_map(np.asarray, tree)


def _direction(random: np.random.RandomState, x: Any) -> Any:
    """A random tangent for `x`."""
    aval = typeof(x).tangent()
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, aval.dtype)
    value = random.randn(*aval.shape)
    if dtypes.kind(aval.dtype) == "c":
        value = value + 1j * random.randn(*aval.shape)
    return np.asarray(value, aval.dtype)


def _moved(x: Any, direction: Any, step: float) -> Any:
    """``x + step * direction``; `x` itself if its dtype has no derivatives."""
    if direction.dtype == dtypes.float0:
        return x
    return np.asarray(x + step * direction, direction.dtype)


def _differences(f: Callable[..., Any], args: Any, directions: Any, step: float) -> Any:
    """The derivative of `f` along `directions`, as a central difference."""

    def slope(after: Any, before: Any) -> Any:
        if not dtypes.is_inexact(after.dtype):
            return np.zeros(after.shape, dtypes.float0)
        with np.errstate(invalid="ignore"):
            difference = np.where(after == before, 0, after - before)  # so that infinities cancel
        return (difference / (2 * step)).astype(after.dtype)

    ends = [_host(f(*pytree.tree_map(partial(_moved, step=s), args, directions))) for s in (step, -step)]
    return pytree.tree_map(slope, *ends)


def _bound(tolerance: Tolerance, dtype: Any, defaults: dict[int, float]) -> float:
    if isinstance(tolerance, int | float):
        return float(tolerance)
    for key, value in (tolerance or {}).items():
        if np.dtype(key) == dtype:
            return value
    width = dtype.itemsize // (2 if dtypes.kind(dtype) == "c" else 1)
    return defaults[width] if dtypes.is_inexact(dtype) else 0.0


def _assert_close(
    mine: Any, expected: Any, atol: Tolerance, rtol: Tolerance, what: str, defaults: dict[int, float] = _TOLERANCE
) -> None:
    """Asserts that trees are close. The bounds grow with the number of elements, over which errors may add up."""
    pytree.check_same(pytree.tree_structure(expected), pytree.tree_structure(mine), f"{what}: other structure")
    for path, (x, y) in zip(
        pytree.tree_leaves_with_path(mine),
        zip(*map(pytree.tree_leaves, (_host(mine), _host(expected))), strict=True),
        strict=True,
    ):
        place = f"{what} at {pytree.keystr(path[0])}" if path[0] else what
        assert x.shape == y.shape, f"{place}: an array of shape {x.shape} for {y.shape}"
        if dtypes.float0 in (x.dtype, y.dtype):
            assert x.dtype == y.dtype, f"{place}: {x.dtype} for {y.dtype}"
            continue
        bounds = [max(_bound(tol, v.dtype, defaults) for v in (x, y)) * max(x.size, 1) for tol in (atol, rtol)]
        wide = np.complex128 if "c" in (dtypes.kind(x.dtype), dtypes.kind(y.dtype)) else np.float64
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), atol=bounds[0], rtol=bounds[1], err_msg=place)


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = "") -> None:
    """Asserts that trees of values are close. tinygp takes it from jax's inside, as `check_close`."""
    _assert_close(xs, ys, atol, rtol, err_msg or "values", _VALUE_TOLERANCE)


def _named(err_msg: str, what: str) -> str:
    return f"{err_msg} {what}" if err_msg else what


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _STEP,
    err_msg: str = "",
) -> None:
    """Compares a forward derivative with a finite difference, in one random direction.

    Args:
      f: function of trees of arrays; it is called at `args`.
      f_jvp: ``f_jvp(primals, tangents) -> (out, tangent of out)``, such as ``functools.partial(phlox.jvp, f)``.
      args: tuple or list of arguments.
      atol, rtol: tolerances, or dicts of them by dtype; None for the default of the dtype, 2e-3 for float32.
      eps: the step of the finite differences.
      err_msg: the beginning of the error message.

    Raises:
      AssertionError: the derivatives differ.

    >>> import functools
    >>> check_jvp(jnp.sin, functools.partial(phlox.jvp, jnp.sin), (1.0,))
    """
    args = tuple(args)
    random = np.random.RandomState(0)
    tangents = pytree.tree_map(partial(_direction, random), args)
    out, out_tangent = f_jvp(args, tangents)
    for x, t in zip(pytree.tree_leaves(out), pytree.tree_leaves(out_tangent), strict=True):
        assert typeof(x).tangent().dtype == typeof(t).dtype, f"{_named(err_msg, 'tangent')}: {t!r} for {x!r}"
    _assert_close(out, f(*args), atol, rtol, _named(err_msg, "primal"))
    _assert_close(out_tangent, _differences(f, args, tangents, eps), atol, rtol, _named(err_msg, "tangent"))


@docs_from(check_jvp)
def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _STEP,
    err_msg: str = "",
) -> None:
    """Compares a reverse derivative with a finite difference: ``<ct, J t> = <Jᵀ ct, t>`` for random t and ct.

    Args:
      f_vjp: ``f_vjp(*args) -> (out, vjp_fun)``, such as ``functools.partial(phlox.vjp, f)``.

    >>> import functools
    >>> check_vjp(jnp.sin, functools.partial(phlox.vjp, jnp.sin), (1.0,))
    """
    args = tuple(args)
    random = np.random.RandomState(0)
    out, pullback = f_vjp(*args)
    _assert_close(out, f(*args), atol, rtol, _named(err_msg, "primal"))
    tangents = pytree.tree_map(partial(_direction, random), args)
    cotangents = pytree.tree_map(partial(_direction, random), out)
    pulled = pullback(pytree.tree_map(_conj, cotangents))
    mine = _inner(tangents, pytree.tree_map(_conj, _host(pulled)))
    expected = _inner(_differences(f, args, tangents, eps), cotangents)
    widths = [typeof(x).dtype for x in pytree.tree_leaves((args, out)) if dtypes.is_inexact(typeof(x).dtype)]
    bounds = [max((_bound(tol, d, _TOLERANCE) for d in widths), default=0.0) for tol in (atol, rtol)]
    _assert_close(mine, expected, bounds[0], bounds[1], _named(err_msg, "cotangent projection"))


def _conj(x: Any) -> Any:
    return x if x.dtype == dtypes.float0 else np.conj(x)


def _inner(xs: Any, ys: Any) -> Any:
    """The real part of the inner product of two trees."""
    pairs = zip(pytree.tree_leaves(xs), pytree.tree_leaves(ys), strict=True)
    return sum((np.vdot(x, y).real for x, y in pairs if x.dtype != dtypes.float0), np.float64(0))


@docs_from(check_jvp)
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compares derivatives of `f` up to an order with finite differences of `f` and of its derivatives.

    Args:
      f: function of trees of arrays; it is differentiated at `args`.
      order: the highest order to check.
      modes: "fwd" (`jvp`), "rev" (`vjp`) and "lin" (`linearize`); orders above the first mix them.
      atol, rtol, eps: as for `check_jvp`; an `eps` of None is 1e-4.

    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    forward_modes: dict[str, Callable[..., Any]] = {"fwd": jvp, "lin": _linearized}
    how: dict[str, Any] = {"atol": atol, "rtol": rtol, "eps": eps or _STEP}

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, path: str) -> None:
        for mode in modes:
            what = f"{mode} of {path}" if path else mode
            derived: Callable[..., Any]
            if mode == "rev":
                check_vjp(f, partial(vjp, f), args, **how, err_msg=what)
                derived, point = partial(_pulled, f), args
            else:
                derived, point = partial(forward_modes[mode], f), (args, args)
                check_jvp(f, derived, args, **how, err_msg=what)
            if order > 1:
                check(derived, point, order - 1, what)

    check(f, tuple(args), order, "")


def _pulled(f: Callable[..., Any], *args: Any) -> Any:
    out, pullback = vjp(f, *args)
    return pullback(out)


def _linearized(f: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    out, derivative = linearize(f, *primals)
    return out, derivative(*tangents)


publish(__name__)
