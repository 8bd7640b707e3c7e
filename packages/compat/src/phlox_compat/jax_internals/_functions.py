"""``jax.extend.linear_util``: functions with wrappers around them, and helpers of ``jax._src.util``.

JAX keeps a function and a list of transformations of it apart. Here a transformation is applied at once, so that a
wrapped function is one function again.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any

from numpy.lib.array_utils import normalize_axis_index as canonicalize_axis  # noqa: F401

from ..api_util import safe_map as safe_map

Function = Callable[..., Any]


class StoreException(Exception):
    """A result beside the main one was read before the function ran."""


class Store:
    """Holds the result beside the main one, from the call of the function to the call that asks for it."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    @property
    def val(self) -> Any:
        if not self.values:
            raise StoreException("the function has not run yet")
        return self.values[-1]

    def store(self, value: Any) -> None:
        self.values[:] = [value]

    def __call__(self) -> Any:
        return self.val


class WrappedFun:
    """A function as JAX passes it between its parts; calling it calls the function."""

    def __init__(self, f: Function, debug_info: Any = None):
        self.f = f
        self.debug_info = debug_info
        self.__name__ = getattr(f, "__name__", "function")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    __call__ = call_wrapped


def wrap_init(f: Function, params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """`f` with the keyword arguments `params`, as a `WrappedFun`."""
    if isinstance(f, WrappedFun) and not params:
        return f
    return WrappedFun(functools.partial(f, **params) if params else f, debug_info)


def called(fun: Any) -> Function:
    """`fun` as a plain function."""
    return fun.call_wrapped if hasattr(fun, "call_wrapped") else fun


def transformation(generator: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., WrappedFun]:
    """A transformation: the generator yields arguments, is sent the result of the function, and yields its own."""

    def transform(fun: Any, *gen_args: Any) -> WrappedFun:
        inner = called(fun)

        def call(*args: Any, **kwargs: Any) -> Any:
            steps = generator(*gen_args, *args, **kwargs)
            inner_args, inner_kwargs = next(steps)
            return steps.send(inner(*inner_args, **inner_kwargs))

        return WrappedFun(call, getattr(fun, "debug_info", None))

    return transform


def transformation_with_aux(
    generator: Callable[..., Generator[Any, Any, Any]], use_eq_store: bool = False
) -> Callable[..., tuple[WrappedFun, Store]]:
    """The same for a generator that yields a pair, whose second part a function returns after the call."""

    def transform(fun: Any, *gen_args: Any) -> tuple[WrappedFun, Store]:
        store = Store()
        pairs = transformation(generator)(fun, *gen_args)

        def call(*args: Any, **kwargs: Any) -> Any:
            out, aux = pairs(*args, **kwargs)
            store.store(aux)
            return out

        return WrappedFun(call, getattr(fun, "debug_info", None)), store

    return transform


def transformation2(f: Function) -> Callable[..., WrappedFun]:
    """A transformation by a function ``f(fun, *own arguments, *args, **kwargs)``."""
    return lambda fun, *own: WrappedFun(functools.partial(f, called(fun), *own), getattr(fun, "debug_info", None))


def transformation_with_aux2(f: Function, use_eq_store: bool = False) -> Callable[..., tuple[WrappedFun, Store]]:
    """The same for a function ``f(fun, store, ...)`` that puts a second result into `store`."""

    def transform(fun: Any, *own: Any) -> tuple[WrappedFun, Store]:
        store = Store()
        return WrappedFun(functools.partial(f, called(fun), store, *own), getattr(fun, "debug_info", None)), store

    return transform


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """The result beside the main one of the only one of two functions that ran, and whether that was the first."""
    results = []
    for i, aux in enumerate((aux1, aux2)):
        with contextlib.suppress(StoreException):
            results.append((i == 0, aux()))
    if len(results) != 1:
        raise StoreException("both functions have run" if results else "neither of the functions has run yet")
    return results[0]


def cache(call: Function, *, explain: Any = None) -> Function:
    """`functools.cache`, for functions of hashable arguments."""
    return functools.cache(call)


class HashablePartial:
    """A function with its first arguments. Two are equal if the code and the arguments are."""

    def __init__(self, f: Function, *args: Any, **kwargs: Any):
        self.func, self.args, self.kwargs = f, args, kwargs

    def __eq__(self, other: object) -> bool:
        return type(other) is HashablePartial and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*self.args, *args, **self.kwargs, **kwargs)

    def _key(self) -> Any:
        return self.func.__code__, self.args, tuple(sorted(self.kwargs.items()))


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """``list(zip(*args, strict=True))``."""
    return list(zip(*args, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The first and the second parts of pairs."""
    known = list(pairs)
    return tuple(a for a, _ in known), tuple(b for _, b in known)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """The first, second and third parts of triples."""
    known = list(triples)
    return tuple(tuple(triple[i] for triple in known) for i in range(3))


def split_list(args: Iterable[Any], counts: Iterable[int]) -> list[list[Any]]:
    """Consecutive parts of these lengths, and the rest."""
    rest, parts = list(args), []
    for count in counts:
        parts.append(rest[:count])
        rest = rest[count:]
    return [*parts, rest]


def partition_list(which: Iterable[bool], values: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The values where `which` is False, and those where it is True."""
    parts: tuple[list[Any], list[Any]] = ([], [])
    for chosen, value in zip(which, values, strict=True):
        parts[chosen].append(value)
    return parts


def wraps(wrapped: Function, **_options: Any) -> Callable[[Function], Function]:
    """`functools.wraps`; JAX's also takes forms of the name and the docstring, which are not used."""
    return functools.wraps(wrapped)


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names of arguments, each completed by the other if only one of them is given."""
    numbers = None if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = None if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    parameters = [p for p in sig.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if numbers is None and names is not None:
        numbers = tuple(i for i, p in enumerate(parameters) if p.name in names)
    elif names is None and numbers is not None:
        names = tuple(
            p.name
            for i, p in enumerate(parameters)
            if p.kind is p.POSITIONAL_OR_KEYWORD and {i, i - len(parameters)} & {*numbers}
        )
    return numbers or (), names or ()
