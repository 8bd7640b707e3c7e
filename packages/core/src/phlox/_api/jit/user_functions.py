"""User functions as functions of flat lists of leaves, the form that the transformations work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..._base.checks import is_on
from ..._base.errors import FunctionTreeError
from ..._base.pytree import PyTreeDef, flatten, tree_structure
from ..._base.tracebacks import trim
from ..._ir.avals import typeof_value
from ..._ops.structure.shape import results_as_arrays
from . import arguments

#: a function of any type
Fun = TypeVar("Fun", bound=Callable[..., Any])


class Aux:
    """What a function returns beside its result: its arrays pass through a transformation, other leaves stay here."""

    def __init__(self, aux: Any):
        self._leaves, self._tree = flatten(aux)

    @property
    def arrays(self) -> list[Any]:
        return [x for x in self._leaves if typeof_value(x) is not None]

    def with_arrays(self, arrays: Sequence[Any]) -> Any:
        """The tree with these arrays, which the transformation returned, in the place of its own."""
        values = iter(arrays)
        return self._tree.unflatten([x if typeof_value(x) is None else next(values) for x in self._leaves])


class FlatFunction:
    """`fun(*args)` as a function of the leaves of args. After a call, `out_tree` is the treedef of the result.

    With `has_aux` the function returns (out, aux). Arrays in aux are returned after those of out. Where
    `fun` only passes arguments on, `user` is the user's function, of which error messages speak.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: PyTreeDef,
        has_aux: bool = False,
        user: Callable[..., Any] | None = None,
    ):
        self.fun = fun
        self.user = user or fun
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.out_tree: PyTreeDef
        self.aux = Aux(None)

    def __call__(self, *leaves: Any) -> list[Any]:
        """The leaves of the result, followed by the arrays of aux."""
        out = self.fun(*self.in_tree.unflatten(leaves))
        if not self.has_aux:
            flat, self.out_tree = flatten(out)
            arguments.check_outputs(self.user, out, flat)
            return flat
        if not (isinstance(out, tuple | list) and len(out) == 2):
            raise FunctionTreeError(
                f"{arguments.fun_name(self.user)} must return a pair (out, aux), a two-element tuple, because of "
                f"has_aux=True, got {out!r}"
            )
        flat, self.out_tree = flatten(out[0])
        arguments.check_outputs(self.user, out[0], flat)
        self.aux = Aux(out[1])
        return [*flat, *self.aux.arrays]

    def split(self, outs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Flat results, and aux as a tree."""
        if not self.has_aux:
            return results_as_arrays(outs), None
        count = self.out_tree.num_leaves
        return results_as_arrays(outs[:count]), self.aux.with_arrays(outs[count:])


def check_returned(fun: Callable[..., Any], out_tree: PyTreeDef) -> None:
    """Reports a user's function that returned None because its ``return`` is missing; see `checks.missing_return`."""
    # The cheap test first: this runs for each transformed function.
    if not out_tree.num_leaves and is_on() and out_tree == tree_structure(None):
        from ..checks import missing_return

        missing_return.check(fun)


def user_call(function: Fun) -> Fun:
    """Decorator for entry points that run user functions: removes phlox's frames from tracebacks of errors."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    call.__name__, call.__qualname__, call.__doc__ = function.__name__, function.__qualname__, function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    call.__module__ = function.__module__
    return call  # type: ignore[return-value]
