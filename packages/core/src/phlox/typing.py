"""``phlox.typing``: types for annotations, as in ``jax.typing``; also `Array`, `Key` and `Shape`.

    from phlox.typing import Array, ArrayLike, Key, Shape

    def noisy(x: ArrayLike, key: Key, scale: float = 1.0) -> Array: ...

Annotations do not describe shapes and dtypes of arrays: these are checked when the program runs.
"""

from collections.abc import Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from ._base.public_names import publish
from ._xla.array import Array

__all__ = ["Array", "ArrayLike", "DTypeLike", "Key", "Shape"]


class _HasDtype(Protocol):
    @property
    def dtype(self) -> Any: ...


#: An argument that functions of `phlox.numpy` accept as an array.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
#: A dtype, its name, a scalar type, or an object that has a dtype.
DTypeLike = str | type[Any] | np.dtype | _HasDtype
#: A PRNG key for `phlox.random`: an array from `random.key` or `random.split`, or a legacy key of two uint32.
Key = Array | np.ndarray
#: The shape of an array: a sequence of integers, or one integer for a single axis.
Shape = SupportsIndex | Sequence[SupportsIndex]


publish(__name__)
