"""`phlox.memory`: the kinds of memory that JAX distinguishes."""

from ..._ir.memory_spaces import Space as Space
