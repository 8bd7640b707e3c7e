"""Arguments of transformed functions: static argument numbers and names, names for messages, type checks."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import operator
import types
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ..._base import pytree
from ..._base.beside_jax import is_of_jax
from ..._base.errors import ArgumentError, OptionError, StaticArgumentError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, is_masked, typeof_value
from ..._ops.structure.shape import as_array_or_tracer
from ..._trace.refs import Ref
from ..._trace.trace import ArrayBase, Tracer, not_an_array

Ints = tuple[int, ...]


def as_arrays(tree: Any) -> Any:
    """The tree with Python numbers and NumPy arrays converted to arrays, as compiled functions return them."""
    if isinstance(tree, ArrayBase):
        return tree
    return pytree.tree_map(lambda x: x if typeof_value(x) is None else as_array_or_tracer(x), tree)


def as_ints(value: int | Iterable[int] | None, what: str) -> Ints:
    """One number or several as a tuple."""
    if value is None:
        return ()
    if isinstance(value, int):
        return (value,)
    try:
        return tuple([operator.index(n) for n in (value if isinstance(value, Iterable) else (value,))])
    except TypeError:
        instead = "an int, as of an argument that static_argnums names" if isinstance(value, Tracer) else ""
        raise ArgumentError(f"{what} must be an int or a sequence of ints, got {value!r}", instead=instead) from None


def as_names(value: str | Iterable[str] | None, what: str) -> tuple[str, ...]:
    """One name or several as a tuple."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    names = tuple(value) if isinstance(value, Iterable) else (value,)
    if not all(isinstance(n, str) for n in names):
        raise ArgumentError(f"{what} must be a name or a sequence of names, got {value!r}")
    return names


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of `fun`, or None if it cannot be determined."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _parameters(fun: Callable[..., Any]) -> tuple[Sequence[str], Sequence[str], str, str] | None:
    """Names of the parameters that can be given by position; of those that can be given by name; the names of
    ``*args`` and ``**kwargs`` or "". None if the signature is unknown."""
    # Only for functions without attributes: ``__wrapped__`` or ``__signature__`` would change what `inspect` returns.
    if type(fun) is types.FunctionType and not fun.__dict__:  # cheaper than `inspect.signature`, same result
        code = fun.__code__
        count, flags = code.co_argcount + code.co_kwonlyargcount, code.co_flags
        names, rest = code.co_varnames[:count], iter(code.co_varnames[count:])
        variadic = next(rest) if flags & inspect.CO_VARARGS else ""
        keywords = next(rest) if flags & inspect.CO_VARKEYWORDS else ""
        return names[: code.co_argcount], names[code.co_posonlyargcount :], variadic, keywords
    signature = signature_of(fun)
    if signature is None:
        return None
    parameters = list(signature.parameters.values())
    return (
        [p.name for p in parameters if p.kind in _POSITIONAL],
        [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)],
        next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), ""),
        next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), ""),
    )


def complete(
    fun: Callable[..., Any], nums: Ints, names: tuple[str, ...], what: str, verbatim: bool = False
) -> tuple[Ints, tuple[str, ...]]:
    """Argument numbers and names, each completed with the arguments that the other denotes unless `verbatim`.

    Raises `OptionError` when a number or name does not occur in the signature of `fun`.
    """
    if not nums and not names:
        return nums, names
    parameters = _parameters(fun)
    if parameters is None:
        if names and what == "donate":
            raise OptionError(
                f"Getting the signature of function {fun_name(fun)} failed. Pass donate_argnums instead of "
                "donate_argnames."
            )
        return nums, names
    positional, by_name, variadic, keywords = parameters
    for n in nums:
        if not variadic and not -len(positional) <= n < len(positional):
            raise OptionError(
                f"{what}_argnums={n}: {fun_name(fun)} has {len(positional)} positional arguments",
                instead=f"a number from 0 to {len(positional) - 1}",
            )
    for name in names:
        if name == variadic or (name in positional and name not in by_name):
            raise OptionError(
                f"{what}_argnames={name!r}: this argument of {fun_name(fun)} is positional-only, and has no name in a "
                "call",
                instead=f"{what}_argnums",
            )
        if name not in by_name and not keywords:
            raise OptionError(
                f"{what}_argnames={name!r}: {fun_name(fun)} has no such argument",
                instead=f"one of {', '.join(by_name)}",
            )
    # Negative numbers count from the end of the arguments of a call when there is *args.
    numbers = [n if n >= 0 or variadic else n + len(positional) for n in nums]
    if verbatim:
        return tuple(numbers), names
    numbers += [positional.index(name) for name in names if name in positional]
    all_names = [*names, *(positional[n] for n in numbers if 0 <= n < len(positional) and positional[n] in by_name)]
    # In order and without repetition: they are part of a cache key.
    return tuple(dict.fromkeys(numbers)), tuple(dict.fromkeys(all_names))


def check_callable(function: str, fun: Any) -> None:
    """Raises `ArgumentError` when `fun` is not callable: often ``grad(f(x))`` was written instead of ``grad(f)(x)``."""
    if not callable(fun):
        raise ArgumentError(
            f"{function}: the function should be a callable. Expected a callable value, got {fun!r}",
            instead=f"{function}(f)(x), not {function}(f(x))",
        )


def fun_name(fun: Callable[..., Any]) -> str:
    """The name of `fun` in programs and messages."""
    # `functools.partial` and objects like it have the function in `func`.
    while hasattr(fun, "func") and not hasattr(fun, "__name__"):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) and name else type(fun).__name__


def described(fun: Callable[..., Any]) -> str:
    """The name of `fun` and where it is defined: ``f at model.py:12``."""
    return with_position(fun_name(fun), getattr(inspect.unwrap(fun), "__code__", None))


def with_position(name: str, code: types.CodeType | None) -> str:
    """The name of a function and where its code is: ``f at model.py:12``."""
    return name if code is None else f"{name} at {code.co_filename}:{code.co_firstlineno}"


def leaf_names(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], absent: Collection[int] = ()
) -> list[str]:
    """For each leaf of (args, kwargs), its path in the user's terms: ``params['w'][0]``.

    `absent` has the positions in the call of arguments that are not in `args`, such as static ones.
    """
    positional, by_name, variadic, keywords = _parameters(fun) or ((), (), "", "")
    names: list[str] = []
    numbers = (i for i in itertools.count() if i not in absent)
    for i, arg in zip(numbers, args, strict=False):
        if i < len(positional):
            head = positional[i]
        else:
            head = f"{variadic}[{i - len(positional)}]" if variadic else f"args[{i}]"
        names += [head + pytree.keystr(path) for path in pytree.named_paths(pytree.tree_structure(arg), arg)]
    # In the order of the leaves: a dict is flattened by its sorted keys.
    for name in sorted(kwargs):
        head = name if name in by_name or not keywords else f"{keywords}[{name!r}]"
        paths = pytree.named_paths(pytree.tree_structure(kwargs[name]), kwargs[name])
        names += [head + pytree.keystr(path) for path in paths]
    return names


def check_arrays(
    function: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    leaves: Sequence[Any],
    absent: Collection[int] = (),
    values: Collection[int] = (),
) -> list[ShapedArray]:
    """The abstract values of all leaves. Raises `ArgumentError` naming an argument that cannot be an array.

    `values` has the indices of leaves whose values are read: a `ShapeDtypeStruct` there is refused, too.
    """
    avals = [typeof_value(x) for x in leaves]
    described = {i for i, x in enumerate(leaves) if hasattr(x, "aval") and not isinstance(x, ArrayBase)}
    for i in described.intersection(values):
        avals[i] = None
    for i, aval in enumerate(avals):
        if aval is None:
            raise no_argument(function, fun, leaf_names(fun, args, kwargs, absent)[i], leaves[i])
    return avals  # type: ignore[return-value]


def no_argument(function: str, fun: Callable[..., Any], name: str, x: Any) -> ArgumentError:
    """The error for the value `x` of the argument `name` of `fun`, which cannot be an array."""
    if is_masked(x) or is_of_jax(x) or isinstance(x, Ref):
        return not_an_array(x, f"argument {name} of {fun_name(fun)}, given to {function},")
    if _is_public(fun):
        return not_an_array(x, f"{fun_name(fun).lstrip('_')} takes arrays and numbers, and argument {name}")
    # The text of a large array or model would hide the message.
    text = repr(x)
    text = text if len(text) <= 60 else text[:57] + "..."
    return ArgumentError(
        f"Error interpreting argument to {fun_name(fun)}, given to {function}, as an abstract array. The "
        f"problematic value is of type {type(x)} and was passed to the function at path {name}: {text} of type "
        f"{type(x)} is not a valid JAX type" + _jax_array_hint(x),
        instead=_instead(function, fun, name, x),
        argument=name,
        value=x,
    )


def _is_public(fun: Callable[..., Any]) -> bool:
    """Whether `fun` is a function of phlox's own modules, whose arguments its user cannot make static."""
    return str(getattr(fun, "__module__", "")).startswith("phlox.")


def _jax_array_hint(x: Any) -> str:
    if getattr(x, "__jax_array__", None) is None:
        return ""
    return ". Triggering __jax_array__() during abstractification is no longer supported."


def _instead(function: str, fun: Callable[..., Any], name: str, x: Any) -> str:
    if getattr(x, "__jax_array__", None) is not None:
        return "x.__jax_array__(), or phlox.numpy.asarray(x)"
    if hasattr(x, "aval"):
        return "an array; or phlox.eval_shape, which takes types"
    if hasattr(x, "__dict__") and not isinstance(x, type | types.ModuleType) and not callable(x):
        # An object of a user's class, which may hold arrays as attributes.
        register = "phlox.tree_util.register_dataclass"
        return f"{register}({type(x).__name__}, data_fields=[...], meta_fields=[...]), once, if it holds arrays; " + (
            _static(function, fun, name) or "or what it holds as arguments"
        )
    return _static(function, fun, name) or "numbers and arrays, or functools.partial, which binds the argument"


def _static(function: str, fun: Callable[..., Any], name: str) -> str:
    """The advice how to make the argument static; "" where `function` has no static arguments."""
    # The path of a leaf begins with the name of its parameter, as ``params['w']`` or ``state.step``.
    head = name.split("[")[0].split(".")[0]
    signature = signature_of(fun)
    names = list(signature.parameters) if signature is not None else []
    if function == "jit" and head in names:
        return f"static_argnums={names.index(head)} (or static_argnames={head!r}) if it decides what is computed"
    if function == "pmap" and head in names:
        return f"static_broadcasted_argnums={names.index(head)} if it decides what is computed"
    return ""


def check_range(leaves: Sequence[Any], names: Sequence[str]) -> None:
    """Raises `NumberRangeError` for an integer outside of the range of the default integer dtype."""
    dtype = dtypes.python_scalar_dtype(int)
    limits = np.iinfo(dtype)
    for x, name in zip(leaves, names, strict=True):
        # Only Python's own ints: NumPy integers have a dtype, and bools are ints to `isinstance`.
        if type(x) is int and not limits.min <= x <= limits.max:
            what = f"parsing an argument to a jitted computation, whose argument path is {name}: "
            # `from None`: called while the error of the run is handled, which would hide this one.
            raise dtypes.too_large(x, dtype, f"An overflow was encountered while {what}") from None


def as_static(fun: Callable[..., Any], name: Any, value: Any, accepts_arrays: bool) -> Any:
    """A static argument, which is hashable: with `accepts_arrays` also the number in an array of one integer.

    Raises:
      StaticArgumentError: it is not hashable.
    """
    try:
        # `hash` and not `isinstance`: a tuple that holds a list counts as `Hashable`, and fails as a key.
        hash(value)
        return value
    except TypeError:
        if accepts_arrays and getattr(value, "ndim", None) == 0:
            with contextlib.suppress(TypeError):
                return operator.index(value)
        raise StaticArgumentError(
            f"Non-hashable static arguments are not supported: argument {name} of {fun_name(fun)} is {value!r} of type "
            f"{type(value).__name__}, which is not hashable",
            instead="a tuple for a list, a frozen dataclass for a dict; or do not make the argument static",
            argument=name,
            value=value,
        ) from None


def incomparable(fun: Callable[..., Any], statics: Sequence[Any], error: Exception) -> StaticArgumentError:
    """The error for `statics`, each (position or name, class, value), whose comparison with earlier ones raised."""
    if not statics:  # static data of containers among the arguments
        return StaticArgumentError(
            f"the static data of an argument of {fun_name(fun)} cannot be compared with that of earlier calls: {error}",
            instead="hashable static data, such as a tuple; an array as a field with data",
        )
    described = ", ".join(f"{parameter} of type {kind.__name__}" for parameter, kind, _ in statics)
    return StaticArgumentError(
        f"static arguments should be comparable using __eq__; those of {fun_name(fun)} ({described}) raised "
        f"{type(error).__name__} when they were compared with earlier ones: {error}",
        instead="a class whose __eq__ and __hash__ agree, or a value of Python's own",
        argument=statics[0][0],
        value=statics[0][2],
    )


def check_outputs(
    fun: Callable[..., Any],
    out: Any,
    leaves: Sequence[Any],
    function: str = "",
    role: str = "function",
    origin: Callable[[Ref], str] | None = None,
) -> None:
    """Raises `ArgumentError` naming the part of the result of `fun` that is no array.

    `function` is the transformation that traces `fun`, whose `role` it has. ``origin(ref)`` tells of a returned
    reference where it comes from.
    """
    for i, leaf in enumerate(leaves):
        if typeof_value(leaf) is None:
            path = pytree.named_paths(pytree.tree_structure(out), out)[i]
            if isinstance(leaf, Ref):
                what = f"{role} {described(fun)}{function and ' traced for ' + function}"
                raise ArgumentError(
                    f"{what} returned a mutable array reference of type {leaf.aval} at output tree path "
                    f"result{pytree.keystr(path)}{origin(leaf) if origin else ''}",
                    instead="ref[...], which reads its value; the caller has the references that it passes",
                    argument="result" + pytree.keystr(path),
                    value=leaf,
                )
            raise ArgumentError(
                f"function {described(fun)} returned a value of type {type(leaf)} at output component "
                f"{pytree.keystr(path) or 'result'}, which is not a valid JAX type: {leaf!r} is no array",
                instead="return arrays, numbers and containers of them",
                argument="result" + pytree.keystr(path),
                value=leaf,
            )
