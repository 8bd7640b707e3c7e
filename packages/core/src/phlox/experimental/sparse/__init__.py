"""``phlox.experimental.sparse``: matrices and arrays of few elements, the part of ``jax.experimental.sparse`` that
libraries use.

`BCOO` stores elements with their indices, `BCSR` a matrix by rows. Both are pytrees, so they pass `jit`, `grad` and
`vmap`; gradients with respect to their elements have the same indices. Products are sums over the stored elements.
"""

from __future__ import annotations

from ._formats import BCOO, BCSR, JAXSparse, empty, eye, todense

__all__ = ["BCOO", "BCSR", "JAXSparse", "empty", "eye", "todense"]


def __dir__() -> list[str]:
    return __all__
