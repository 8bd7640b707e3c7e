"""``jax.experimental.hijax`` before JAX 0.12: base classes from which flax 0.12.8 derives classes when it is imported.

JAX has replaced them by `HiType` and `HiPrim`. Here they have no use: an operation on such a value raises an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

from phlox.errors import UnsupportedError

from ._hijax import HiType


class MutableHiType(HiType):
    """The type of a value that can change."""


class AvalQDD:
    """A type with a part that depends on data."""


class AvalMutableQDD:
    """The same for values that can change."""


class QDD:
    """The part of a type that depends on data."""


class HiPrimitive:
    """An operation on such values; `bind` raises."""

    multiple_results = False

    def __init__(self, name: str = "", *_args: Any):
        self.name = name

    def bind(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{self.name or type(self).__name__} is an operation on values that change (hijax before JAX 0.12)",
            instead="flax 0.12.12, or nnx.use_hijax(False), which is the default",
        )

    __call__ = bind
