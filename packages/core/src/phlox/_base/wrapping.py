"""`wraps`: gives a function that wraps another one its name, signature and attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from . import pickling as pickling  # registers how the variables that wrappers refer to are pickled

F = TypeVar("F", bound=Callable[..., Any])
#: parameters and result of a function, for wrappers that keep them
P = ParamSpec("P")
R = TypeVar("R")

#: attributes of jitted functions, which functions made from them (as by `grad`) must not copy
COMPILED = ("trace", "lower", "eval_shape", "stats", "explain", "clear_cache", "_cache_size")

#: further attributes of jitted functions, which must not be copied
_OTHERS = ("_jit", "_trace_for_export", "__signature__")


def renamed(fun: F, name: str, module: str = "") -> F:
    """A function that does the same under another name: an alias that programs, profiles and pickles show as itself."""
    code: Any = fun
    # A new function object with the same code: a lambda around `fun` would add a frame to each call and to tracebacks.
    function: Any = FunctionType(code.__code__, code.__globals__, name, code.__defaults__, code.__closure__)
    functools.update_wrapper(function, fun)
    # With ``__wrapped__``, `inspect.unwrap` would lead tools back to the other name.
    vars(function).pop("__wrapped__")
    vars(function).update(vars(fun))
    function.__kwdefaults__ = code.__kwdefaults__
    function.__name__ = function.__qualname__ = name
    function.__module__ = module or code.__module__
    return cast(F, function)


def wraps(fun: Callable[..., Any], what: str = "") -> Callable[[F], F]:
    """As `functools.wraps`, but without the attributes that jitted functions have.

    `what` becomes the first line of the docstring, with ``{fun}`` replaced by the name of `fun`.

    >>> hasattr(phlox.jit(phlox.grad(phlox.jit(abs))), "lower"), hasattr(phlox.grad(phlox.jit(abs)), "lower")
    (True, False)
    """

    def decorate(wrapper: F) -> F:
        attributes = getattr(fun, "__dict__", {})
        # Jitted functions are recognized by their attributes (see docs/notes/dispatch.md). A wrapper that had them
        # would pass for jitted and run the inner program.
        if "lower" in attributes:
            attributes = {name: value for name, value in attributes.items() if name not in (*COMPILED, *_OTHERS)}
        vars(wrapper).update(attributes)
        # The attribute of this name may be something else in a callable object.
        named = isinstance(getattr(fun, "__name__", ""), str)
        assigned = functools.WRAPPER_ASSIGNMENTS if named else ("__module__", "__doc__")
        # `updated` is empty: it would copy all attributes again, those of jitted functions included.
        functools.update_wrapper(wrapper, fun, assigned, ())
        if what and fun.__doc__:
            name = getattr(fun, "__name__", "the function")
            wrapper.__doc__ = f"{what.format(fun=name)}\n\nOriginal documentation:\n\n{fun.__doc__}"
        return wrapper

    return decorate
