"""Missing returns: a function that returns None where its result is what counts, and that has no effects either.

Only functions written with ``def`` in a file or a notebook are checked. Their source tells effects: calls as statements
(but for those of functions such as `phlox.numpy.sum`), writes to elements, attributes, global and nonlocal variables,
and errors that it may raise.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from ..._base.checks import report
from ..._base.source import is_users
from ..._xla.array import ArrayImpl
from .reads import MISSING, attribute, functions_in, inner_function

# What such a call returns is its only use, so a call as a statement does nothing. NumPy's functions take no traced
# values, so that a statement which calls one is there for its effect, as `numpy.save` is.
#: modules of functions without effects
_PURE = ("phlox.numpy", "phlox.nn", "phlox.random", "phlox.scipy")
#: methods of arrays that containers do not have, and that change nothing
_METHODS = frozenset(
    name
    # A method that lists or dicts have as well may be called on those, and change them.
    for name in dir(np.ndarray)
    if hasattr(ArrayImpl, name) and not any(hasattr(kind, name) for kind in (dict, list, set))
)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def check(fun: Callable[..., Any]) -> None:
    """Reports a user's function that has returned None, if it looks as if its ``return`` is missing."""
    function = _innermost(fun)
    if function is None or not is_users(function.__code__.co_filename):
        return
    definition = _definition(function)
    if definition is None or _returns_none(definition):
        return
    name = function.__name__
    last_line = function.__code__.co_firstlineno - 1 + (definition.end_lineno or 1)
    place = f"the end of {name} (line {last_line})"
    # Some path returns a value, so None is an accident of another path.
    if any(isinstance(node, ast.Return) and not _is_none(node.value) for node in _nodes(definition)):
        happens, instead = "a path through it ends without a return statement", f"return a value at {place}, too"
    else:
        variable = _last_variable(definition, function)
        # With effects, None is most likely meant.
        if variable is None and _has_effects(definition, function):
            return
        happens, instead = "it has no return statement", f"return {variable or 'the result'} at {place}"
    report("missing return", f"{name} returned None: {happens}, and what it computed is lost", instead=instead)


def _innermost(fun: Any) -> FunctionType | None:
    """The Python function in a method, a partial, a callable object, or a wrapper."""
    *_, fun = functions_in(fun)
    if not isinstance(fun, FunctionType):
        fun = inner_function(attribute(fun, "__call__"))
    return fun if isinstance(fun, FunctionType) else None


def _definition(function: FunctionType) -> _Definition | None:
    """The statement that defines the function; None for lambdas, and if the source cannot be read."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    try:  # only these lines, because the rest need not be Python: cells of notebooks have commands of IPython
        # `getblock` finds the end of the function by its indentation; the rest of the file is not read.
        statement = ast.parse(textwrap.dedent("".join(inspect.getblock(lines)))).body[0]
    except (SyntaxError, LookupError, tokenize.TokenError):
        return None
    # A lambda on the same line would be another statement.
    return statement if isinstance(statement, _Definition) and statement.name == code.co_name else None


def _returns_none(definition: _Definition) -> bool:
    """Whether the function says that it returns None: its last statement is ``return None``, or it does nothing."""
    last = definition.body[-1]
    if isinstance(last, ast.Return):
        return _is_none(last.value)
    return all(
        isinstance(statement, ast.Pass | ast.Delete)
        # A docstring or ``...``.
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in definition.body
    )


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes inside of a function, without those of functions and classes that it defines."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Definition | ast.ClassDef | ast.Lambda):
            yield child
            yield from _nodes(child)


def _last_variable(definition: _Definition, function: FunctionType) -> str | None:
    """The local variable that the last statement assigns; no later statement can read it."""
    last = definition.body[-1]
    if not isinstance(last, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return None
    target = last.targets[0] if isinstance(last, ast.Assign) else last.target
    if not isinstance(target, ast.Name) or target.id not in function.__code__.co_varnames:
        return None
    if target.id.startswith("_"):  # the result of a call that is not used
        return None
    calls = [node for node in ast.walk(last) if isinstance(node, ast.Call)]
    return None if any(_is_callback(call, function) for call in calls) else target.id


def _has_effects(definition: _Definition, function: FunctionType) -> bool:
    for node in _nodes(definition):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await):
            return True
        # A function that checks its arguments.
        if isinstance(node, ast.Assert | ast.Raise):
            return True
        # Assigning to an element or attribute changes something that may be outside.
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_pure(node.value, function):
            return True
        if isinstance(node, ast.Call) and _is_callback(node, function):
            return True
    return False


def _is_pure(call: ast.Call, function: FunctionType) -> bool:
    module = _module_of(call, function)
    if module is not None:
        return any(module == pure or module.startswith(pure + ".") for pure in _PURE)
    method = call.func
    if not isinstance(method, ast.Attribute):
        return False
    # ``x.at[i].set(v)`` returns a new array.
    is_update = isinstance(method.value, ast.Subscript) and getattr(method.value.value, "attr", "") == "at"
    return is_update or method.attr in _METHODS


def _is_callback(call: ast.Call, function: FunctionType) -> bool:
    """Whether a call is of a function of phlox outside of its numerical modules, as `debug.print` and `io_callback`."""
    module = _module_of(call, function)
    return module is not None and module.startswith(("phlox._api.debug", "phlox.debug", "phlox._api.callbacks"))


def _module_of(call: ast.Call, function: FunctionType) -> str | None:
    """The module of the function that is called by a name such as ``jnp.sum``; None if it cannot be told."""
    names: list[str] = []
    node = call.func
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    x: Any = function.__globals__.get(node.id, MISSING)
    code = function.__code__
    # Free variables and locals hide globals of the same name.
    if node.id in code.co_freevars:
        try:
            x = (function.__closure__ or ())[code.co_freevars.index(node.id)].cell_contents
        except ValueError:  # the variable has no value yet
            return None
    # A local variable has a value only in a call.
    elif node.id in code.co_varnames:
        return None
    for name in reversed(names):
        x = getattr(x, name, MISSING) if isinstance(x, ModuleType) else attribute(x, name)
    module = getattr(x, "__module__", None)
    return module if isinstance(module, str) and callable(x) else None
