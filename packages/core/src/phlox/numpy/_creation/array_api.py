"""``__array_namespace_info__`` of the Python array API standard: devices, dtypes, capabilities.

https://data-apis.org/array-api/latest/API_specification/inspection.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.errors import OptionError
from ..._ir import dtypes
from ..._xla.devices import devices
from .dtypes import KINDS

__array_api_version__ = "2025.12"

_DTYPES = [
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    )
]  # fmt: skip


class ArrayNamespaceInfo:
    """The capabilities, dtypes and devices of this namespace, as the array API standard defines them.

    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    def capabilities(self) -> dict[str, Any]:
        """Whether shapes may depend on data (no, because they may not in traced functions), and the maximum rank."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: new arrays are uncommitted, and may be used on any device."""
        return None

    def devices(self) -> list[Any]:
        """None, which means the default device, and all devices."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The default dtypes of new arrays.

        Args:
          device: device, or None; the dtypes are the same on all devices.

        Returns:
          The dtypes by kind: "real floating", "complex floating", "integral" and "indexing".
        """
        integer = dtypes.canonical(dtypes.int64)
        return {
            "real floating": dtypes.canonical(dtypes.float64),
            "complex floating": dtypes.canonical(dtypes.complex128),
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The standard's dtypes; those of 64 bits in x64 mode only.

        Args:
          device: device, or None; the dtypes are the same on all devices.
          kind: a kind of dtypes, such as "bool", "signed integer", "integral" or "numeric", or a tuple of such; None
            means all.

        Returns:
          The dtypes by name.

        Raises:
          OptionError: `kind` is not a kind of dtypes.
        """
        selected: dict[str, np.dtype] = {}
        for one in kind if isinstance(kind, tuple) else ("bool", "numeric") if kind is None else (kind,):
            if one not in KINDS:
                raise OptionError(f"there is no kind {one!r} of dtypes", instead=", ".join(KINDS))
            known = [dtype for dtype in _DTYPES if dtype.kind in KINDS[one]]
            selected.update((dtype.name, dtype) for dtype in known if dtypes.canonical(dtype) == dtype)
        return selected


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What this namespace offers of the array API standard.

    Returns:
      An object whose methods tell dtypes, devices and limits.

    >>> phlox.numpy.__array_namespace_info__().default_device() is None
    True
    """
    return ArrayNamespaceInfo()
