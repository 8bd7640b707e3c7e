"""How far programs have the form that JAX gives them, where phlox has chosen a faster one.

XLA rounds by how it groups operations, so that the last bits of a program's results depend on its form. `phlox.as_jax`
asks for JAX's form where arrays are small, and speed says little: programs then have JAX's results to the last bit.
"""

from __future__ import annotations

_largest = {"size": -1}


def as_in_jax_up_to(size: int) -> None:
    """Gives operations on arrays of at most `size` elements the form that they have in JAX."""
    _largest["size"] = size


def is_as_in_jax(size: int) -> bool:
    """Whether an operation on an array of `size` elements has the form that it has in JAX."""
    return size <= _largest["size"]
