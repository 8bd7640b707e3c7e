"""``phlox.scipy.cluster.vq``: the nearest of some codes for each observation."""

from __future__ import annotations

import functools
from typing import Any

from ... import numpy as jnp
from ..._api.jit.jit import jit
from ..._base.errors import ShapeError
from ..._base.public_names import publish
from ..._base.strictness import lenient
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike

__all__ = ["vq"]


@functools.partial(jit, inline=True)
def _nearest(obs: Any, code_book: Any) -> tuple[Any, Any]:
    # By differences, as x² - 2 x y + y² cancels for an observation close to its code
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    code = jnp.argmin(distances, axis=-1)
    return code, jnp.take_along_axis(distances, code[:, None], axis=-1)[:, 0]


@lenient
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code for each observation, by the Euclidean distance (as ``scipy.cluster.vq.vq``).

    Args:
      obs: observations, of shape [m, n]; a vector means observations of one number each.
      code_book: codes, of shape [k, n], or a vector if `obs` is one.
      check_finite: has no effect: numbers are not checked.

    Returns:
      A pair: the index of the nearest code for each observation, of shape [m] and an integer dtype, and the distances
      to them, of shape [m] and a float dtype. Of equally near codes it is the first.

    Raises:
      ShapeError: the arguments are not both vectors or both matrices with equally many columns, or there are no codes.

    >>> codes, distances = vq(jnp.array([[1.0, 2.0], [5.0, 5.0]]), jnp.array([[5.0, 4.0], [1.0, 0.0]]))
    >>> codes, distances
    (Array([1, 0], dtype=int32), Array([2., 1.], dtype=float32))
    """
    obs, code_book = promote_inexact(*check("vq", obs, code_book))
    ranks = type_of(obs).ndim, type_of(code_book).ndim
    if ranks not in ((1, 1), (2, 2)) or type_of(obs).shape[1:] != type_of(code_book).shape[1:]:
        raise ShapeError(
            f"vq: obs is {type_of(obs).short}, code_book is {type_of(code_book).short}",
            instead="two matrices with equally many columns, or two vectors",
            shapes=[type_of(obs).shape, type_of(code_book).shape],
        )
    if ranks == (1, 1):
        obs, code_book = jnp.expand_dims(obs, -1), jnp.expand_dims(code_book, -1)
    return _nearest(obs, code_book)


publish(__name__)
