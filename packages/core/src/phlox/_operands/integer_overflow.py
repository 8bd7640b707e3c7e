"""Checks that sums and products of integers fit into their dtype, in strict mode of the flag `checks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._base import config
from .._base.errors import CheckError
from .._base.source import Location, user_location
from .._ir import dtypes
from .._trace.trace import typeof
from .runtime_checks import check_when_run


def check_range(function: str, exact: Callable[..., Any], dtype: Any, *operands: Any) -> None:
    """Checks in strict mode, when the program runs, that an exact result fits into the dtype of the computed one.

    Args:
      function: what the error calls the operation.
      exact: computes the result from NumPy arrays of Python's integers.
      dtype: dtype of the computed result; only integers are checked.
      *operands: arrays, which may be traced.

    Raises:
      CheckError: a value does not fit.
    """
    if config.current().checks != "strict" or dtypes.kind(dtype) not in "iu":
        return
    if any(dtypes.kind(typeof(x).dtype) not in "biu" for x in operands):
        return
    check = _Check(function, exact, np.dtype(dtype), user_location())
    check_when_run(check, *operands)


class _Check(NamedTuple):
    """The check of one operation; its call, with the values of the operands, raises `CheckError`."""

    function: str
    exact: Callable[..., Any]
    dtype: Any
    where: Location | None

    def __call__(self, *operands: Any) -> None:
        info = np.iinfo(self.dtype)
        arrays = [np.asarray(x) for x in operands]
        # Python's integers have no limits, but are slow: most results are far inside of the range.
        bound = float(np.max(np.abs(self.exact(*[np.abs(x.astype(np.float64)) for x in arrays])), initial=0))
        # The margin covers rounding errors of the sums in float64.
        if bound * (1 + 1e-6) <= info.max:
            return
        result = np.asarray(self.exact(*[x.astype(object) for x in arrays]), object)
        outside = [value for value in result.ravel() if not info.min <= value <= info.max]
        if outside:
            shapes = ", ".join(str(x.shape) for x in arrays)
            raise CheckError(
                f"{self.function} of integers of shape {shapes} is {outside[0]}, which {self.dtype} cannot hold "
                f"({info.min} to {info.max}): the result wraps around",
                where=self.where,
                instead="dtype=float; or dtype='int64', with phlox.config.update('explicit_x64_dtypes', 'allow')",
                check="integer overflow",
            )
