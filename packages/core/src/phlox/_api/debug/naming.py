"""`named_scope` and `named_call`: names for parts of a program. They change what is displayed, not what is computed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..._base.errors import ArgumentError
from ..._base.source import within
from ..._base.wrapping import wraps
from ..jit import arguments


def named_scope(name: str) -> AbstractContextManager[None]:
    """Names the operations that are traced inside of a ``with`` block, or of a decorated function.

    Scopes nest. Names appear, with the transformations applied to the operations, in profiles, in
    ``jit(f).lower(x).as_text(debug_info=True)``, ``jit(f).lower(x).compile().as_text()`` and
    ``make_jaxpr(f)(x).pretty_print(name_stack=True)``. They are not part of cache keys: of programs that differ only in
    names, the cache on disk returns the one compiled first, with its names.

    Args:
      name: name of the scope.

    Returns:
      A context manager, and a decorator.

    Raises:
      ArgumentError: `name` is no string.

    >>> def layer(x):
    ...     with named_scope("layer"):
    ...         return x * 2.0
    >>> print(phlox.make_jaxpr(layer)(1.0).pretty_print(name_stack=True))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] # [layer] in (b,) }
    """
    return within(_checked_name("named_scope", name))


def _checked_name(function: str, name: Any) -> str:
    if not isinstance(name, str):
        raise ArgumentError(f"{function} takes a name, got {name!r}", instead="a string", argument="name", value=name)
    return name


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """`fun` with its operations in a `named_scope`.

    Args:
      fun: function of any arguments.
      name: name of the scope; None for the name of the function.

    Returns:
      A function that is called as `fun` is and returns the same.

    Raises:
      ArgumentError: `name` is no string.

    >>> named_call(lambda x: x + 1, name="step")(1)
    2
    """
    arguments.check_callable("named_call", fun)
    label = arguments.fun_name(fun) if name is None else _checked_name("named_call", name)

    @wraps(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        with within(label):
            return fun(*args, **kwargs)

    return named
