"""The text of an array: what `repr` returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ir.dtypes import ExtendedDtype

#: Of larger arrays, in bytes, `repr` has the shape only: a device would send all elements for a line of text.
MOST_PRINTED = 1 << 20


def array_text(array: Any, stored: Any) -> str:
    """``Array([1., 2.], dtype=float32)``, as JAX prints it. `stored` is the array with its physical type."""
    aval = array.aval
    tail = f"dtype={aval.dtype.name}" + (", weak_type=True)" if aval.weak_type else ")")
    if not array._is_shown():
        return f"Array(shape={aval.shape}, {tail[:-1]}, sharding={array.sharding})"
    if isinstance(aval.dtype, ExtendedDtype):
        return f"Array({aval.shape}, {tail} overlaying:\n{stored}"
    prefix = "Array("
    if aval.size == 0:
        body = f"[], shape={aval.shape}"
    elif array.nbytes >= MOST_PRINTED:
        body = f"shape={aval.shape}"
    else:
        body = np.array2string(np.asarray(array), prefix=prefix, suffix=",", separator=", ")
    # JAX's rule, to the character: programs print arrays, and tests compare what they print. A dtype that does not fit
    # stays on its line, after as many blanks as NumPy would put before it on the next.
    last = len(body) - body.rfind("\n") + 1
    gap = " " if last + len(tail) + 1 <= int(np.get_printoptions()["linewidth"]) else " " * len(prefix)
    return f"{prefix}{body},{gap}{tail}"
