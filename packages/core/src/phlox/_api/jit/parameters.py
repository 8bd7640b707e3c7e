"""The parameters of a function, so that the jitted function can be given the same ones.

A Python function with named parameters cannot tell how they were given: `f(x, y=1)` and `f(x, 1)` are one call, and
share a cache key. Functions of ``*args, **kwargs``, such as those that `grad` returns, can tell.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class _Missing:
    """The class of `MISSING`, the default of generated parameters: the argument was not given."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:  # a pickle refers to the one object, which is compared by identity
        return "MISSING"


MISSING = _Missing()


class Parameters(NamedTuple):
    """The parameters of a function.

    Attributes:
      names: of all but ``*args`` and ``**kwargs``; keyword-only ones are last.
      positional_only: how many of them are positional-only.
      positional: how many can be given by position.
      optional: the indices of those that have a default.
      has_args, has_kwargs: whether there are ``*args``, and ``**kwargs``.
    """

    names: tuple[str, ...]
    positional_only: int
    positional: int
    optional: frozenset[int]
    has_args: bool
    has_kwargs: bool

    def label(self, number: int) -> str | int:
        """The name of the parameter at this position, or `number` if it has none."""
        name = self.names[number] if number < self.positional else ""
        return name if name.isidentifier() else number

    def in_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with as many arguments as possible given by position."""
        # While a positional-only argument is missing, no named one can move into its position.
        if not kwargs or len(args) < self.positional_only:
            return args, kwargs
        moved, kwargs = list(args), dict(kwargs)
        for name in self.names[len(args) : self.positional]:
            # An argument after one that is missing cannot be given by position.
            if name not in kwargs:
                break
            moved.append(kwargs.pop(name))
        return tuple(moved), kwargs

    def bind(self, values: Iterable[Any], rest: Iterable[Any], named: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """(args, kwargs) that give the parameters these values, in the form that `in_position` returns."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for number, value in enumerate(values):
            if value is MISSING:
                continue
            # After a missing argument, all later ones go by name.
            if number == len(args) < self.positional:
                args.append(value)
            else:
                kwargs[self.names[number]] = value
        return (*args, *rest), {**kwargs, **named}


class OwnSignature(inspect.Signature):
    """The signature of `fun`, computed at the first read. It is the ``__signature__`` of jitted functions, for callers
    of `inspect` that do not follow ``__wrapped__``, such as `inspect.getfullargspec`.
    """

    __slots__ = ("_fun",)

    def __init__(self, fun: Callable[..., Any]):
        self._fun = fun

    # `inspect.Signature` has slots, so that this is called only while they are not set.
    def __getattr__(self, name: str) -> Any:
        if name not in inspect.Signature.__slots__:
            raise AttributeError(name)
        signature: Any = inspect.signature(self._fun)
        # Stored, so that later reads find the slots filled and do not come here.
        self._parameters, self._return_annotation = signature._parameters, signature._return_annotation
        return getattr(signature, name)

    def replace(self, **changes: Any) -> inspect.Signature:  # type: ignore[override]
        return inspect.signature(self._fun).replace(**changes)

    def __reduce__(self) -> Any:
        # The function itself may not be picklable, but its signature is.
        return inspect.signature(self._fun).__reduce__()


def variadic_parameters(count: int, names: Iterable[str] = ()) -> Parameters:
    """The parameters of a function of ``*args, **kwargs``, of which `count` by position and `names` have parameters.

    Python matches arguments to parameters faster than it makes a tuple and a dict of them.
    """
    # Names that are no identifiers: `label` returns numbers for such parameters.
    labels = (*map(str, range(count)), *names)
    return Parameters(labels, count, count, frozenset(range(len(labels))), has_args=True, has_kwargs=True)


def parameters_of(fun: Callable[..., Any]) -> Parameters:
    """The parameters of a function or method by its own code, not by that of ``__wrapped__``.

    Other callables count as taking any arguments.
    """
    # The code decides, not ``__wrapped__`` or ``__signature__``: generated parameters have to match what Python
    # accepts.
    function: Any = fun.__func__ if isinstance(fun, types.MethodType) else fun
    if type(function) is not types.FunctionType:
        return variadic_parameters(0)
    code, bound = function.__code__, int(function is not fun)
    positional, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    if positional < bound:  # a method of *args: `self` is the first of them
        return variadic_parameters(0)
    names, by_name = code.co_varnames[:total], function.__kwdefaults__ or {}
    optional = [*range(positional - len(function.__defaults__ or ()), positional)]
    optional += [n for n in range(positional, total) if names[n] in by_name]
    return Parameters(
        names[bound:],
        max(code.co_posonlyargcount - bound, 0),
        positional - bound,
        frozenset(n - bound for n in optional if n >= bound),
        bool(code.co_flags & inspect.CO_VARARGS),
        bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )
