"""`Origin`: the user's function that a Jaxpr was traced from. It is recorded in each trace, and read by tools."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Collection, Sequence
from types import CodeType, MethodType
from typing import Any, NamedTuple

from ..._base.pytree import PyTreeDef
from ..._ir.jaxpr import Jaxpr, Var


class Origin(NamedTuple):
    """The attribute `origin` of a Jaxpr.

    It does not keep the function alive: caches hold Jaxprs until their function dies.

    Attributes:
      function, role: the transformation that traced it, such as "while_loop", and its parameter: "body_fun".
      fun: a function that returns the user's function, or None if that has died.
      code: its code, that of a method if `is_method`; None if it is no function of Python.
      invars: the variables of the leaves of its arguments.
      tree: the structure of the arguments: (args, kwargs) if `has_kwargs`, otherwise args.
      static: the positions of static arguments, which are not in the tree.
      out_tree: the structure of its result.
    """

    function: str
    role: str
    fun: Callable[[], Callable[..., Any] | None]
    code: CodeType | None
    is_method: bool
    invars: Sequence[Var]
    tree: PyTreeDef
    has_kwargs: bool
    static: Collection[int]
    out_tree: PyTreeDef


def origin(
    function: str,
    role: str,
    fun: Callable[..., Any],
    jaxpr: Jaxpr,
    tree: PyTreeDef,
    out_tree: PyTreeDef,
    has_kwargs: bool = False,
    static: Collection[int] = (),
) -> Origin:
    """The origin of a Jaxpr whose inputs are the arguments of `fun`."""
    # A few attributes and no names: it takes 1 µs of the 30 µs of the shortest trace.
    user: Any = fun
    if hasattr(fun, "__wrapped__"):
        with contextlib.suppress(ValueError):  # a function that wraps itself
            user = inspect.unwrap(fun)
    try:
        reference: Callable[[], Any] = weakref.ref(fun)
    except TypeError:  # a callable without weak references
        reference = type(None)
    code, is_method = getattr(user, "__code__", None), type(user) is MethodType
    return Origin(function, role, reference, code, is_method, jaxpr.invars, tree, has_kwargs, static, out_tree)
