"""``phlox.dtypes``: questions about element types, as in ``jax.dtypes``."""

from ._base.errors import TypePromotionError
from ._ir.dtypes import bfloat16, canonicalize_dtype, extended, float0, issubdtype, itemsize_bits, prng_key
from .numpy._dtypes import finfo, iinfo, result_type

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
]
