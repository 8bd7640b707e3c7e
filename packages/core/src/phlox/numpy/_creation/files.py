"""Arrays from files, bytes and text, read by NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.docstrings import docs_from
from ..._base.errors import UnsupportedError
from ..._ir import dtypes
from ...typing import Array, DTypeLike
from .from_data import asarray

if TYPE_CHECKING:
    import os
    from typing import IO


def _of(x: np.ndarray) -> Any:
    return asarray(x, dtypes.canonical(x.dtype))


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """The array (or the arrays by name) in a file that `save` (or `savez`) wrote (as ``numpy.load``).

    Args:
      file: path, or a file that is open for reading bytes.
      *args, **kwargs: further arguments of ``numpy.load``.

    Returns:
      An array, 64-bit types becoming 32-bit unless x64 mode is on; for a file with several arrays, the mapping of names
      to NumPy arrays that ``numpy.load`` returns. The file does not name dtypes of one byte that NumPy lacks (int4,
      float8): these arrays are returned as NumPy arrays of bytes, whose method `view` gives them their dtype.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(2)), file.seek(0)
    (None, 0)
    >>> jnp.load(file)
    Array([0, 1], dtype=int32)
    """
    data = np.load(file, *args, **kwargs)
    if not isinstance(data, np.ndarray):
        return data
    if data.dtype.kind == "V":  # NumPy writes dtypes of extensions (bfloat16 …) as bytes
        if data.dtype.itemsize != 2:
            return data
        data = data.view(dtypes.bfloat16)
    return _of(data)


def frombuffer(buffer: bytes | Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A vector of the elements in a buffer of bytes (as ``numpy.frombuffer``).

    Args:
      buffer: bytes, or another object with Python's buffer protocol.
      dtype: dtype of the elements in `buffer`.
      count: number of elements to read; -1 reads all.
      offset: number of bytes to skip at the start of `buffer`.

    Returns:
      A vector of `dtype`, 64-bit types becoming 32-bit unless x64 mode is on.

    Raises:
      ValueError: the number of bytes is not a multiple of the size of an element.

    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), "int16")
    Array([1, 2], dtype=int16)
    """
    return _of(np.frombuffer(buffer, dtype, count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not supported, as in JAX: it always raises, because traced functions cannot read files.

    Use ``jnp.asarray(numpy.fromfile(...))``.

    Args:
      *args, **kwargs: ignored.

    Returns:
      Nothing.

    Raises:
      UnsupportedError: always.

    >>> jnp.fromfile("x")
    Traceback (most recent call last):
    phlox.errors.UnsupportedError: fromfile reads from the world outside
    """
    raise UnsupportedError("fromfile reads from the world outside", instead="jnp.asarray(numpy.fromfile(...))")


@docs_from(fromfile)
def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not supported, as in JAX: it always raises, because traced functions cannot consume iterators.

    Use ``jnp.asarray(numpy.fromiter(...))``.

    >>> jnp.fromiter("x")
    Traceback (most recent call last):
    phlox.errors.UnsupportedError: fromiter uses up its argument
    """
    raise UnsupportedError("fromiter uses up its argument", instead="jnp.asarray(numpy.fromiter(...))")


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers in a text, between separators (as ``numpy.fromstring``).

    Args:
      string: text that contains the numbers.
      dtype: dtype of the numbers.
      count: number of numbers to read; -1 reads all.
      sep: separator between the numbers; whitespace around it is skipped.

    Returns:
      A vector of `dtype`, 64-bit types becoming 32-bit unless x64 mode is on.

    Raises:
      ValueError: the text contains anything else.

    >>> jnp.fromstring("1, 2", "int32", sep=",")
    Array([1, 2], dtype=int32)
    """
    return _of(np.fromstring(string, dtype, count, sep=sep))
