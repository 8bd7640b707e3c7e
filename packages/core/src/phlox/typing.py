"""``phlox.typing``: names for annotations, as in ``jax.typing``; and `Array`, `Key` and `Shape` besides.

A type checker knows by them what functions of arrays take and return:

    from phlox.typing import Array, ArrayLike, Key, Shape

    def noisy(x: ArrayLike, key: Key, scale: float = 1.0) -> Array: ...

No annotation says what shape or dtype an array has: that is checked where the program runs.
"""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from ._xla.array import Array

__all__ = ["Array", "ArrayLike", "DTypeLike", "Key", "Shape"]


class _HasDtype(Protocol):
    @property
    def dtype(self) -> Any: ...


#: What functions of `phlox.numpy` take as an array.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
#: What names a dtype: its name, a scalar type, a dtype, or something that has one.
DTypeLike = str | type[Any] | np.dtype | _HasDtype
#: What `phlox.random` takes as a key: an array that `random.key` or `random.split` made, or an old one, of two uint32.
Key = Array | np.ndarray
#: What says how long the axes of an array are: whole numbers, or one of them for a single axis.
Shape = SupportsIndex | Sequence[SupportsIndex]


def __dir__() -> list[str]:
    return __all__
