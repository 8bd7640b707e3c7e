"""`show`: a table of the arrays of a tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._base.pytree import keystr, tree_leaves_with_path
from ..._ir.avals import typeof_value
from ..._trace.steps import numbers_of
from ..._trace.trace import Tracer
from ..jit.programs import ShapeDtypeStruct
from .answers import Table, number_text

_HEAD = ("path", "type", "elements", "bytes", "min", "mean", "max", "nan", "zero")


def show(tree: Any) -> Table:
    """A table of the arrays of a tree: path, type, size, range, and the shares of nan and zeros.

    Args:
      tree: arrays in dicts, lists and other containers. Of traced values and of `ShapeDtypeStruct`s types are shown,
        so that it can be printed inside of a jitted function.

    Returns:
      A table, which prints itself.

    >>> print(phlox.show({"w": jnp.array([[1.0, 0.0], [jnp.nan, 3.0]]), "n": 3}))
    5 elements in 2 leaves, 20 bytes
    path   type      elements  bytes  min  mean   max  nan   zero
    ['n']  i32[]     1         4      3    3      3
    ['w']  f32[2,2]  4         16     0    1.333  3    25 %  25 %
    """
    rows, elements, size = [], 0, 0
    for path, leaf in tree_leaves_with_path(tree):
        aval = leaf.aval if isinstance(leaf, Tracer | ShapeDtypeStruct) else typeof_value(leaf)
        if aval is None:
            rows.append([keystr(path), type(leaf).__name__, *[""] * 7])
            continue
        bytes_ = aval.size * getattr(aval.dtype, "itemsize", 0)
        elements, size = elements + aval.size, size + bytes_
        known = not isinstance(leaf, Tracer | ShapeDtypeStruct)
        figures = _figures(numbers_of(leaf)) if known else [""] * 5
        rows.append([keystr(path), aval.short, f"{aval.size:,}", f"{bytes_:,}", *figures])
    return Table(f"{elements:,} elements in {len(rows)} leaves, {size:,} bytes", _HEAD, rows)


def _figures(x: np.ndarray) -> list[str]:
    """Minimum, mean, maximum of the finite elements, and shares of nan and of zeros."""
    # Complex numbers have no order.
    if x.size == 0 or x.dtype.kind == "c":
        return ["", "", "", _share(np.isnan(x)), _share(x == 0)]
    finite = x[np.isfinite(x)] if x.dtype.kind == "f" else x
    functions: tuple[Callable[..., Any], ...] = (np.min, np.mean, np.max)
    numbers = [
        number_text(f(finite, dtype=np.float64) if f is np.mean else f(finite)) if finite.size else ""
        for f in functions
    ]
    return [*numbers, _share(np.isnan(x)) if x.dtype.kind == "f" else "", _share(x == 0)]


def _share(mask: np.ndarray) -> str:
    return f"{100 * mask.mean():.3g} %" if mask.any() else ""
