"""``phlox.typing``: names for annotations, as in ``jax.typing``."""

from typing import Any, Protocol

import numpy as np

from ._xla.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


class _HasDtype(Protocol):
    @property
    def dtype(self) -> Any: ...


#: What functions of `phlox.numpy` take as an array.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
#: What names a dtype: its name, a scalar type, a dtype, or something that has one.
DTypeLike = str | type[Any] | np.dtype | _HasDtype
