"""``phlox.dlpack``: exchange of arrays with other libraries without copying, as in ``jax.dlpack``."""

from typing import Any

import numpy as np

from ._base.errors import ArgumentError
from ._base.public_names import publish
from ._xla.array import Array
from ._xla.devices import Device
from ._xla.sharding import Sharding
from .numpy._creation.from_data import from_dlpack as _from_dlpack
from .typing import DTypeLike

__all__ = ["from_dlpack", "is_supported_dtype"]

_KINDS = {"b", "i", "u", "f", "c"}


def from_dlpack(external_array: Any, device: Device | Sharding | None = None, copy: bool | None = None) -> Array:
    """An array of another library, through the DLPack protocol; see `phlox.numpy.from_dlpack`.

    Args:
      external_array: an object with methods ``__dlpack__`` and ``__dlpack_device__``, in CPU memory.
      device: a `Device` or `Sharding` for the result; None for the device of `external_array`.
      copy: True for an array with memory of its own. Otherwise memory is shared if the device allows it (on CPU, if it
        is aligned); later writes to the original then change the result.

    Returns:
      An array of the same shape and dtype (64-bit dtypes become 32-bit ones unless `enable_x64` is set).

    Raises:
      ArgumentError: `external_array` offers no DLPack, or its memory cannot be read.

    >>> import numpy as np
    >>> from_dlpack(np.arange(2.0, dtype=np.float32))
    Array([0., 1.], dtype=float32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike | None) -> bool:
    """Whether arrays of this dtype can be exchanged: bool, NumPy's numbers of 8 to 128 bits, and bfloat16.

    Args:
      dtype: a dtype or its name.

    Returns:
      A bool.

    Raises:
      ArgumentError: `dtype` is None.
      TypeError: `dtype` is no dtype.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("float8_e5m2")
    (True, False)
    """
    if dtype is None:
        raise ArgumentError("is_supported_dtype: None is no dtype")
    numpy_dtype = np.dtype(dtype)
    return numpy_dtype.name == "bfloat16" or (
        numpy_dtype.isbuiltin == 1 and numpy_dtype.kind in _KINDS and numpy_dtype.name != "longdouble"
    )


publish(__name__)
