"""Semaphores of kernels in interpret mode: counters. The cores run one after the other, so that nothing waits."""

from __future__ import annotations

import dataclasses
from typing import Any

from phlox import numpy as jnp
from phlox.errors import UnsupportedError
from phlox.ref import Ref, new_ref
from phlox.tree_util import register_static


@register_static
@dataclasses.dataclass(frozen=True)
class Semaphores:
    """The type of a memory of semaphores."""

    shape: tuple[int, ...]

    def new(self) -> Ref:
        """A reference of this type, whose counters are 0."""
        return new_ref(jnp.zeros(self.shape, jnp.int32))


def semaphore_read(sem_or_view: Any) -> Any:
    """The value of a semaphore, an int32.

    Args:
      sem_or_view: reference to one semaphore.
    """
    return sem_or_view[...]


def semaphore_signal(
    sem_or_view: Any, inc: Any = 1, *, device_id: Any = None, device_id_type: Any = None, core_index: Any = None
) -> None:
    """Adds to the value of a semaphore.

    Args:
      sem_or_view: reference to one semaphore.
      inc: the number to add.
      device_id: None; semaphores of other devices are not there.
      device_id_type, core_index: no meaning in interpret mode.

    Raises:
      UnsupportedError: a `device_id` is given.
    """
    if device_id is not None:
        raise UnsupportedError(
            "semaphore_signal: kernels in interpret mode do not reach other devices",
            instead="collectives of jax.lax in jax.shard_map",
        )
    sem_or_view[...] = sem_or_view[...] + inc


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Takes `value` from a semaphore at once: what it waits for has run before, or does not run at all.

    Args:
      sem_or_view: reference to one semaphore.
      value: the value to wait for.
      decrement: whether to subtract it.
    """
    if decrement:
        sem_or_view[...] = sem_or_view[...] - value
