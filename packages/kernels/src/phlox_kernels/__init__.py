"""Native kernels for what XLA's CPU compiler is slow at: sorting, extrema, sums at indices, convolutions,
products of bytes.

phlox uses them where this package is installed.

The kernels are functions of a shared library that follow XLA's foreign function interface (FFI). The library does not
depend on the version of Python, nor on that of jaxlib from the one on with which it was built.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
__all__ = ["handlers", "instructions"]

_OPERATIONS = (
    "sort_1",
    "argsort_1",
    "top_k_1",
    "argmax_1",
    "argmin_1",
    "max_1",
    "min_1",
    "sum_2",
    "sine_2",
    "scan_2",
    "places_1",
    "scatter_add_1",
    "rows_times_matrix_1",
    "conv_1",
    "byte_products_1",
    "small_products_1",
)
#: Names of the handlers, which are those of their FFI targets. A name ends with a number, which changes with the
#: operands, results or attributes of the handler, so that a program never calls one that it was not written for.
NAMES = tuple(f"phlox_kernels_{name}" for name in _OPERATIONS)


def handlers() -> dict[str, Any]:
    """The handlers by the names of their targets, as functions of a `ctypes` library.

    Returns:
      A dict, which is empty if this is a source folder where the library was not built.

    Raises:
      OSError: the library cannot be loaded here.

    >>> import phlox  # doctest: +SKIP
    >>> for name, handler in handlers().items():  # doctest: +SKIP
    ...     phlox.ffi.register_ffi_target(name, phlox.ffi.pycapsule(handler))
    """
    library = _library()
    return {} if library is None else {name: getattr(library, name) for name in NAMES}


def instructions() -> str:
    """The instruction set for which the kernels run here, the best of those that they were compiled for.

    Returns:
      Its name, such as "x86-64-v3 (AVX2)"; "" if this is a source folder where the library was not built.

    Raises:
      OSError: the library cannot be loaded here.

    >>> instructions()  # doctest: +SKIP
    'x86-64-v4 (AVX-512)'
    """
    library = _library()
    if library is None:
        return ""
    name = library.phlox_kernels_instructions
    name.restype = ctypes.c_char_p
    return str(name().decode())


def _library() -> ctypes.CDLL | None:
    for path in Path(__file__).parent.glob("_kernels.*"):
        return ctypes.CDLL(str(path))
    return None
