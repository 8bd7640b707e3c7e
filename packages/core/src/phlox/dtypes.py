"""``phlox.dtypes``: dtypes and functions of dtypes, as in ``jax.dtypes``."""

from typing import Any

from ._base.errors import TypePromotionError
from ._base.public_names import publish
from ._ir import dtypes as _dtypes
from ._ir.dtypes import canonicalize_dtype, extended, float0, itemsize_bits, prng_key
from .numpy._creation.dtypes import common_type, finfo, iinfo, scalar_type_of
from .typing import ArrayLike, DTypeLike

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

#: the class of elements, of which scalars are instances, as in JAX
bfloat16 = _dtypes.bfloat16.type


def issubdtype(a: DTypeLike | None, b: Any) -> bool:
    """Whether element type `a` belongs to the (possibly abstract) type `b` (as ``numpy.issubdtype``).

    Args:
      a: a dtype or its name.
      b: the same, or an abstract type such as ``phlox.numpy.floating`` or `prng_key`.

    Returns:
      True or False.

    Raises:
      DtypeError: `a` or `b` is no dtype.

    >>> issubdtype("bfloat16", jnp.floating), issubdtype(phlox.random.key(0).dtype, prng_key)
    (True, True)
    """
    return _dtypes.issubdtype(a, b)


def result_type(*args: ArrayLike | DTypeLike | None, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation on these arrays, numbers and dtypes (as ``jax.dtypes.result_type``).

    Args:
      *args: at least one array, number or dtype.
      return_weak_type_flag: also return whether the type is weak, that is, yields to the dtypes of other arrays.

    Returns:
      A dtype, or (dtype, bool).

    Raises:
      ArgumentError: there are no `args`.
      DtypeError: one of them is no dtype.
      TypePromotionError: no dtype holds both of two of them, as for int4 and bfloat16.

    >>> result_type(1.0, 2, return_weak_type_flag=True)
    (dtype('float32'), True)
    """
    result = common_type(*args)
    return result if return_weak_type_flag else result[0]


publish(__name__)
