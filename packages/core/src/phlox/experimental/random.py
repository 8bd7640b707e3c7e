"""``phlox.experimental.random``: a generator that counts its draws itself, as in ``jax.experimental.random``.

It consists of a key and a reference with the number of draws. What it draws is what `phlox.random` draws from the key
folded with that number.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import numpy as jnp, random
from .._base.errors import ArgumentError
from .._base.public_names import publish
from .._ir.primitive import current_trace
from ..ref import new_ref
from ..tree_util import register_dataclass
from ..typing import Array, ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


@register_dataclass
@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers; `stateful_rng` makes one. It can be passed to functions that are transformed.

    >>> rng = stateful_rng(0)
    >>> first, second = rng.uniform(), rng.uniform()
    >>> bool(first == second)
    False
    """

    _base_key: Array
    _counter: Any  # a Ref, whose operators are not typed

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key, independent of all that were drawn before.

        Args:
          shape: shape of an array of new keys; ``()`` for a single one.

        Returns:
          A key, or an array of keys.

        Raises:
          ArgumentError: the generator is one of `split`, outside of `vmap`.

        >>> stateful_rng(0).key((2,)).shape
        (2,)
        """
        if self._base_key.shape:
            raise ArgumentError(
                "a split generator cannot draw", instead="phlox.vmap over it, or spawn(), which gives a list"
            )
        drawn = random.fold_in(self._base_key, self._counter[...])
        # The key itself never changes. The count makes each draw a new key, also inside of loops, where it is a carry.
        self._counter[...] += 1
        sizes = _sizes(shape)
        return random.split(drawn, sizes) if sizes else drawn

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Uniform samples in [0, 1).

        Args:
          size: shape of the result; None for a single number.
          dtype: dtype of the result.

        Returns:
          An array.

        >>> stateful_rng(0).random((2,)).shape
        (2,)
        """
        return random.uniform(self.key(), _sizes(size), dtype)

    def uniform(self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Uniform samples in [low, high).

        Args:
          low, high: the bounds; arrays that broadcast to `size`.
          size: shape of the result; None for that of `low` and `high` together.
          dtype: dtype of the result.

        Returns:
          An array.

        >>> stateful_rng(0).uniform(-1, 1, 2).shape
        (2,)
        """
        return random.uniform(self.key(), _sizes(size, low, high), dtype, low, high)

    def normal(self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float) -> Array:
        """Samples of normal distributions.

        Args:
          loc, scale: means and standard deviations; arrays that broadcast to `size`.
          size: shape of the result; None for that of `loc` and `scale` together.
          dtype: dtype of the result.

        Returns:
          An array.

        >>> stateful_rng(0).normal(jnp.zeros(3), 2.0).shape
        (3,)
        """
        drawn = random.normal(self.key(), _sizes(size, loc, scale), dtype)
        return (jnp.asarray(loc) + jnp.asarray(scale) * drawn).astype(dtype)

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike = int
    ) -> Array:
        """Integers in [low, high), or in [0, low) without `high`.

        Args:
          low, high: the bounds; arrays that broadcast to `size`.
          size: shape of the result; None for that of `low` and `high` together.
          dtype: dtype of the result.

        Returns:
          An array.

        >>> stateful_rng(0).integers(10, size=4).shape
        (4,)
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _sizes(size, low, high), low, high, dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Several generators as one object, over which `vmap` maps.

        Args:
          num: number of generators, or a shape.

        Returns:
          A generator with arrays of keys and counts.

        >>> phlox.vmap(lambda rng: rng.uniform())(stateful_rng(0).split(3)).shape
        (3,)
        """
        return StatefulPRNG(self.key(num), new_ref(jnp.zeros(num, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Several generators as a list.

        Args:
          n_children: number of generators.

        Returns:
          A list of generators.

        >>> len(stateful_rng(0).spawn(2))
        2
        """
        return [StatefulPRNG(key, new_ref(0)) for key in self.key(n_children)]


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers that counts its draws itself, similar to `numpy.random.default_rng`.

    Args:
      seed: an integer; None for one that the operating system gives, which differs in each call.
      impl: the implementation of the keys, as for `phlox.random.key`.

    Returns:
      A `StatefulPRNG`.

    Raises:
      ArgumentError: `seed` is None inside of a function that is transformed.

    >>> rng = stateful_rng(0)
    >>> rng.normal(size=(2,)).shape
    (2,)
    """
    if seed is None:
        if current_trace.get() is not None:
            raise ArgumentError("stateful_rng: a function that is transformed needs a seed", instead="stateful_rng(0)")
        seed = np.random.SeedSequence().generate_state(1, np.uint32)[0].astype(np.int32)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def _sizes(size: Size, *arguments: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*(np.shape(x) for x in arguments))
    if isinstance(size, int | np.integer):
        return (operator.index(size),)
    return tuple(operator.index(n) for n in size)


publish(__name__)
