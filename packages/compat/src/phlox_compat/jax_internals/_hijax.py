"""``jax.experimental.hijax``: base classes for values with a type of their own.

flax derives classes from these when it is imported, and uses them only with ``nnx.use_hijax(True)``. phlox has no such
values: making one raises an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from phlox.errors import UnsupportedError
from phlox.extend import ShapedArray as ShapedArray, instantiate as instantiate_zeros, is_linear as is_undefined_primal

__all__ = ["instantiate_zeros", "is_undefined_primal"]


class _Refused:
    def __init__(self, *_args: Any, **_kwargs: Any):
        raise UnsupportedError(
            f"{type(self).__name__} is a value with a type of its own (hijax), which phlox does not have",
            instead="nnx.use_hijax(False), which is the default; or a pytree",
        )


class AbstractValue:
    """The base of types in JAX."""


class HiType(AbstractValue):
    """The type of such a value."""


class MutableHiType(HiType):
    """The type of such a value that can change."""


class AvalQDD:
    """A type with a part that depends on data."""


class AvalMutableQDD:
    """The same for values that can change."""


class QDD:
    """The part of a type that depends on data."""


class HipSpec:
    """Where such a value lies."""


HiPspec = HipSpec
MappingSpec = HipSpec


class Box(_Refused):
    """A value that can change."""


class HiPrimitive:
    """An operation on such values; `bind` raises."""

    multiple_results = False

    def __init__(self, name: str = "", *_args: Any):
        self.name = name

    def bind(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{self.name or type(self).__name__} is an operation on values with a type of their own (hijax), which "
            "phlox does not have",
            instead="a pytree, and functions of its arrays",
        )

    __call__ = bind


class VJPHiPrimitive(HiPrimitive):
    """The same with a derivative rule."""


class _Effects:
    def add_type(self, *_args: Any) -> None:
        """Accepted: flax names its effects when it is imported."""


control_flow_allowed_effects = _Effects()


def register_hitype(*_args: Any) -> None:
    """Accepted: no value of such a class can be made."""


def new_from_aval(*_args: Any) -> NoReturn:
    raise UnsupportedError("values with a type of their own (hijax) are not there", instead="a pytree")


def aval_method(fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` itself."""
    return fun


def aval_property(fget: Callable[..., Any]) -> property:
    """A property."""
    return property(fget)
