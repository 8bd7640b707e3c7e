"""`Origin`: the user's function that a Jaxpr was traced from. It is recorded in each trace, and read by tools."""

from __future__ import annotations

import contextlib
import inspect
import weakref
from collections.abc import Callable, Collection, Sequence
from types import CellType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._base import pytree
from ..._base.pytree import PyTreeDef
from ..._ir.jaxpr import Jaxpr, Var
from . import arguments

if TYPE_CHECKING:
    from ..._ir.debug_info import DebugInfo

#: JAX's words for transformations, and for parts of them
_WORDS = {
    "checkpoint": "checkpoint / remat",
    "custom_jvp": "custom_jvp fun",
    "custom_vjp": "custom_vjp fun",
    ("while_loop", "body_fun"): "while_body",
    ("while_loop", "cond_fun"): "while_cond",
}


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

    def debug_info(self, jaxpr: Jaxpr) -> DebugInfo:
        """The description of the function and of its arguments that are inputs of `jaxpr`."""
        from ..._ir.debug_info import DebugInfo  # on demand: few programs read it

        traced_for = _WORDS.get((self.function, self.role)) or _WORDS.get(self.function, self.function)
        tree = pytree.placeholders(self.tree)
        args, kwargs = tree if self.has_kwargs else (tree, {})
        names = arguments.leaf_names(self.fun() or self._stand_in(), args, kwargs, self.static)
        # A transformation may have removed some of the inputs, or added others.
        by_variable = dict(zip(self.invars, names, strict=False))
        arg_names = tuple(by_variable.get(v, "") for v in jaxpr.invars)
        paths = [path for path, _ in pytree.tree_leaves_with_path(pytree.placeholders(self.out_tree))]
        result_paths = tuple("result" + pytree.keystr(path) for path in paths)
        return DebugInfo(traced_for, arguments.with_position(jaxpr.name, self.code), arg_names, result_paths)

    def _stand_in(self) -> Any:
        """A function with the parameters of one that has died."""
        if self.code is None:
            return lambda *args, **kwargs: None
        function = FunctionType(self.code, {}, closure=tuple(CellType() for _ in self.code.co_freevars))
        return MethodType(function, self) if self.is_method else function


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
