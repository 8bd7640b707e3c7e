"""``phlox.experimental.key_reuse``: refusing to use PRNG keys twice, as ``jax.experimental.key_reuse``.

As in JAX the module has no names: `phlox.debug_key_reuse` sets the flag, `phlox.errors.KeyReuseError` is raised, and
`phlox.random.clone` makes a key that may be used again. The flag `checks` warns of them by default. Old-style keys,
arrays of numbers, are not followed."""

from __future__ import annotations

from .._base.public_names import publish as _publish

__all__: list[str] = []


_publish(__name__)
