"""Users' functions that become parts of a program, such as branches and loop bodies: traced, and cached as Jaxprs."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..._base import config
from ..._base.checks import is_on, retracing
from ..._base.errors import DtypeError, UnsupportedError
from ..._base.interning import forgettable
from ..._base.pytree import PyTreeDef, flatten, typed_text
from ..._ir.avals import ShapedArray
from ..._ir.jaxpr import ClosedJaxpr, hoist_consts, memoized
from ..._trace.axes import axis_env
from ..._trace.interpret import eval_jaxpr
from ..._trace.leaks import no_leaks
from ..._trace.refs import accesses, is_reusable, is_valid_for
from ..._trace.staging import stage
from ..._transform.manual_axes import as_typed_all
from . import arguments
from .origins import origin


class Staged:
    """A user's function as a Jaxpr, which takes `consts` as its first arguments, with the treedef of its result.

    `refs` are the references from outside that it uses; without `may_use_refs` they are refused.
    """

    def __init__(
        self,
        function: str,
        role: str,
        fun: Callable[..., Any],
        in_tree: PyTreeDef,
        avals: Sequence[Any],
        arg_names: Callable[[], Sequence[str]] | None = None,
        may_use_refs: bool = False,
    ):
        arguments.check_callable(f"{function}: {role}", fun)
        # Filled by `flat`, which runs once.
        trees: list[PyTreeDef] = []

        def flat(*xs: Any) -> list[Any]:
            out = fun(*in_tree.unflatten(xs))
            leaves, tree = flatten(out)
            arguments.check_outputs(fun, out, leaves, function)
            trees.append(tree)
            return leaves

        self.name = arguments.fun_name(fun)
        with no_leaks(self.name, fun):
            jaxpr, self.consts = stage(flat, avals, name=self.name, arg_names=arg_names, may_use_refs=may_use_refs)
        jaxpr.origin = origin(function, role, fun, jaxpr, in_tree, trees[0])
        self.refs = tuple(accesses(jaxpr).values)
        # Constants become inputs, so that equal bodies which close over different arrays are one program.
        self.closed = ClosedJaxpr(hoist_consts(jaxpr))
        self.out_tree = trees[0]
        self.stale_values: Any = None

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.closed.out_avals

    def typed_result(self) -> str:
        """The structure and the types of the result."""
        return typed_text(self.out_tree, [a.short for a in self.out_avals])

    def advice(self, role: str, result: str) -> str:
        """What to write instead, if the function returns None: most often its ``return`` is missing."""
        data = self.out_tree.node_data()
        if data is None or data[0] is not type(None):
            return ""
        return f"return {result} at the end of {role} ({self.name}), which returns None"

    def varying(self, vma: Sequence[frozenset[Any]]) -> Staged:
        """This function with its first results declared as varying along the axes `vma`."""
        program = varying_results(self.closed, [*vma, *[a.vma for a in self.out_avals[len(vma) :]]])
        if program is self.closed:
            return self
        result = copy.copy(self)
        result.closed = program
        return result


# A bound method dies after the call, and its programs with it: only functions that live on are cached.
_programs: weakref.WeakKeyDictionary[Callable[..., Any], dict[Any, Staged]] = forgettable(weakref.WeakKeyDictionary())


def staged(
    function: str,
    role: str,
    fun: Callable[..., Any],
    in_tree: PyTreeDef,
    avals: Sequence[Any],
    arg_names: Callable[[], Sequence[str]] | None = None,
) -> Staged:
    """`fun` as a Jaxpr, traced once for each tuple of argument types, which may use references. The cache dies with
    `fun`.

    `arg_names` returns the user's names of the arguments; error messages call it when they need them.
    """
    # The fingerprint has the settings that a trace can depend on; axis names in scope decide what collectives mean.
    key = (in_tree, tuple(avals), config.current().trace_fingerprint, axis_env.get())
    try:
        programs = _programs.setdefault(fun, {})
    except TypeError:  # `fun` is not hashable, or does not support weak references
        return Staged(function, role, fun, in_tree, avals, arg_names, True)
    body = programs.get(key)
    # A reference may hold a value of another type by now; the cached program would read it as the old one.
    if body is None or retracing.get() or (body.refs and not is_valid_for(body.refs, body.closed.jaxpr)):
        body = Staged(function, role, fun, in_tree, avals, arg_names, True)
        # Tracers, and references that a trace made, are valid for this call only.
        if not retracing.get() and is_reusable(body.consts, body.refs):
            programs[key] = body
            if is_on():
                body.stale_values = _watch(fun, body)
    elif body.stale_values is not None and body.stale_values.is_due():
        body.stale_values.check(fun, functools.partial(Staged, function, role, fun, in_tree, avals, arg_names, True))
    return body


_wrappers: weakref.WeakKeyDictionary[Callable[..., Any], dict[Any, Callable[..., Any]]] = weakref.WeakKeyDictionary()


def wrapped_once(
    make: Callable[[Callable[[], Callable[..., Any]]], Callable[..., Any]], fun: Callable[..., Any]
) -> Callable[..., Any]:
    """``make(get)``, a function that calls ``get()``, which is `fun`. It is made once for each `fun`, so that `staged`
    finds its program again. The result has the name of `fun`, and does not keep it alive.
    """
    try:
        wrappers = _wrappers.setdefault(fun, {})
    except TypeError:  # `fun` is not hashable, or does not support weak references
        return _named_as(fun, make(lambda: fun))
    if make not in wrappers:
        wrappers[make] = _named_as(fun, make(weakref.ref(fun)))  # type: ignore[arg-type]
    return wrappers[make]


def _named_as(fun: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    # The name goes into the jaxpr and into messages.
    wrapper.__name__ = arguments.fun_name(fun)
    return wrapper


def _watch(fun: Callable[..., Any], body: Staged) -> Any:
    """The values from outside that the function reads, to be compared when it is next taken from the cache."""
    from ..checks import hooks

    return hooks.values_of(fun, body)


def operands_of(function: str, fun: Callable[..., Any], args: Sequence[Any]) -> tuple[list[Any], PyTreeDef]:
    """The leaves of the arguments, checked to be arrays, and their treedef."""
    leaves, tree = flatten(tuple(args))
    arguments.check_arrays(function, fun, args, {}, leaves)
    return leaves, tree


def varying_results(closed: ClosedJaxpr, vma: Sequence[frozenset[Any]]) -> ClosedJaxpr:
    """The program with results that vary along the axes `vma`, which are those along which they do or more."""
    expected = [a.varying(axes) for a, axes in zip(closed.out_avals, vma, strict=True)]
    if expected == closed.out_avals:
        return closed

    def make() -> ClosedJaxpr:
        def fun(*xs: Any) -> list[Any]:
            return as_typed_all(eval_jaxpr(closed.jaxpr, closed.consts, *xs), expected)

        return ClosedJaxpr(stage(fun, closed.in_avals, name=closed.jaxpr.name, may_use_refs=True)[0])

    # The axes in scope are part of the key: the program is staged under them.
    return memoized(closed.jaxpr, ("varying", tuple(vma), axis_env.get()), make)


def program_of_element(name: str, func: Callable[[Any], Any], aval: ShapedArray) -> ClosedJaxpr:
    """`func` as a program on one element of an array of type `aval`, which returns one element of the same dtype."""
    element = aval.update(shape=())
    program = staged(name, "func", func, flatten((element,))[1], [element])
    if program.consts or program.refs:
        raise UnsupportedError(f"{name}: func uses arrays from outside", instead="numbers")
    out = program.closed.out_avals
    if [(a.shape, a.dtype) for a in out] != [((), element.dtype)]:
        raise DtypeError(f"{name}: func returns {', '.join(a.short for a in out)} for {element.short}")
    return program.closed
