"""How a function takes its arguments, so that calls of what is made of it can be taken the same way.

A function of Python with names for its arguments cannot tell how they were given: `f(x, y=1)` and `f(x, 1)` are one
call. Functions that take any arguments (``*args, **kwargs``), such as those that `grad` returns, can.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple


class _Missing:
    """The only one stands for an argument that is not given, and is left to its default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class Parameters(NamedTuple):
    """The parameters of a function.

    Attributes:
      names: of all but ``*args`` and ``**kwargs``; those that are given by name alone are last.
      unnamed: how many of them are given by position alone.
      positional: how many can be given by position.
      optional: the numbers of those that have a default.
      rest, named: whether there are ``*args``, and ``**kwargs``.
    """

    names: tuple[str, ...]
    unnamed: int
    positional: int
    optional: frozenset[int]
    rest: bool
    named: bool

    def label(self, number: int) -> str | int:
        """What to call the argument at this position: the name of its parameter, if it has one."""
        name = self.names[number] if number < self.positional else ""
        return name if name.isidentifier() else number

    def in_position(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with as many arguments by position as can be."""
        if not kwargs or len(args) < self.unnamed:
            return args, kwargs
        moved, kwargs = list(args), dict(kwargs)
        for name in self.names[len(args) : self.positional]:
            if name not in kwargs:
                break
            moved.append(kwargs.pop(name))
        return tuple(moved), kwargs

    def given(self, values: Iterable[Any], rest: Iterable[Any], named: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The call that gives the parameters these values, as `in_position` leaves it."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for number, value in enumerate(values):
            if value is MISSING:
                continue
            if number == len(args) < self.positional:
                args.append(value)
            else:
                kwargs[self.names[number]] = value
        return (*args, *rest), {**kwargs, **named}


def any_like(count: int, names: Iterable[str] = ()) -> Parameters:
    """The parameters of a function that takes any arguments, and is mostly called with so many by position, and by
    these names: Python fills them in sooner than it makes tuples and dicts of them.
    """
    every = (*map(str, range(count)), *names)
    return Parameters(every, count, count, frozenset(range(len(every))), rest=True, named=True)


def parameters_of(fun: Callable[..., Any]) -> Parameters:
    """What the code of a function or method says, whatever it is wrapped around; other things take any arguments."""
    function: Any = fun.__func__ if isinstance(fun, types.MethodType) else fun
    if type(function) is not types.FunctionType:
        return any_like(0)
    code, bound = function.__code__, int(function is not fun)
    positional, every = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    if positional < bound:  # the object is the first of *args
        return any_like(0)
    names, by_name = code.co_varnames[:every], function.__kwdefaults__ or {}
    optional = [*range(positional - len(function.__defaults__ or ()), positional)]
    optional += [n for n in range(positional, every) if names[n] in by_name]
    return Parameters(
        names[bound:],
        max(code.co_posonlyargcount - bound, 0),
        positional - bound,
        frozenset(n - bound for n in optional if n >= bound),
        bool(code.co_flags & inspect.CO_VARARGS),
        bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )
