"""The functions that `jit` returns: the hot path.

They are plain functions of Python, which are called sooner than objects of a class, and bind to objects as methods do.
The `JitFunction` behind them does the work. A call is found by the keys of the arguments (types and places, see
`_xla.placement`), by the classes of Python numbers, and by static arguments; all that it needs has been worked out when
its `Entry` was made.

jaxlib leaves cold caches behind, and each step that Python takes after it costs ten times what it costs alone. So a
function that is called again gets code of its own, `CALL`: it has the parameters of the function that is jitted, which
Python fills in whether they are given by position or by name; nothing about them has to be looked up at a call.

With the flag `generated_calls` off, no function gets such code from then on, and every call takes the general path,
`JitFunction.call_flat`. To find out whether a fault lies here, set PHLOX_GENERATED_CALLS=0 before the start.
"""

from __future__ import annotations

import functools
import linecache
import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any

from ..._base import config, source  # noqa: F401  (`CALL` reads config, and others below)
from ..._base.config import overridden  # noqa: F401
from ..._base.errors import NumberRangeError
from ..._base.wrapping import COMPILED, wraps
from ..._ir.primitive import tracing
from ..._xla.array import ArrayImpl  # noqa: F401
from ..._xla.compile import JaxRuntimeError
from . import arguments
from .entry import gather  # noqa: F401
from .parameters import MISSING, Parameters

if TYPE_CHECKING:
    from .jit import JitFunction

FAILURES = (JaxRuntimeError, ValueError, RuntimeError, NumberRangeError)

#: a jitted function that is called again; `_text` fills in what depends on its parameters
CALL = """\
def call({parameters}):
    if tracing() is not None:
        return jitted.guarded(jitted.call_traced, {arguments})
    {unless}fingerprint = (config.global_settings if overridden() is None else config.current()).called
    if {arrays}:
        call_key = {keys}
        given = [{buffers}]
    else:  # trees, numbers, arguments that are seldom given
        kinds, given = [{names}], []
        try:
            gather(kinds, given, {values})
            call_key = {kinds}
        except Exception:  # no tree: the general path finds it, and says so
            call_key = None
    try:
        fast_path = jitted.calls.get(call_key)
    except Exception:  # a static argument is not hashable: the same
        fast_path = call_key = None
    if fast_path is None or fast_path[0] is not fingerprint:
        fast_path = jitted.calls.get((fingerprint, call_key))
        if fast_path is None:
            return jitted.guarded(jitted.call_flat, {arguments}, call_key)
    _, prepare, execute, handlers, finish, aval, key, entry = fast_path
    try:
        entry.calls += 1
        if prepare is not None:
            given = prepare(given)
        results = execute(given).consume_with_handlers(handlers)
        if finish is not None:
            return finish(results)
        array = ArrayImpl()  # `wrap` written out
        array._buf = results[0]
        array.aval = aval
        array._key = key
        return array
    except FAILURES:
        jitted.explain_failure(entry, {arguments})
        raise
"""
_UNLESS = """\
if {otherwise}:
        return jitted.guarded(jitted.call_flat, {arguments})
    """
#: more arrays than these are gathered one by one
MOST = 8


def function_of(jitted: JitFunction) -> Any:
    """What the user calls: a function with name and signature of the one that is jitted, and methods of `jitted`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if tracing() is not None:
            return jitted.guarded(jitted.call_traced, args, kwargs)
        return jitted.guarded(jitted.call_flat, args, kwargs)

    function: Any = call
    function.__name__ = function.__qualname__ = arguments.fun_name(jitted.fun)
    wraps(jitted.fun)(function)
    for name in COMPILED:
        setattr(function, name, getattr(jitted, name))
    function._jit = jitted
    jitted.fresh.append(weakref.ref(function))
    return function


def specialize(function: Any, parameters: Parameters, static: frozenset[int], by_place: bool) -> None:
    """Gives a jitted function code of its own: for these `parameters`, of which those numbers are static.

    By place: that holds where all of them are given, and nothing else.
    """
    names, optional = parameters.names, sorted(parameters.optional)
    code = _compiled(_text(parameters, static, by_place))
    # By the user's names arguments are given; in the text they could be those of something else.
    code = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    function.__defaults__ = (MISSING,) * sum(i < parameters.positional for i in optional)
    function.__kwdefaults__ = {names[i]: MISSING for i in optional if i >= parameters.positional}
    function.__code__ = code


def _text(parameters: Parameters, static: frozenset[int], by_place: bool) -> str:
    """`CALL` for these parameters, which are called ``p0, p1, …`` in it."""
    names = [f"p{i}" for i in range(len(parameters.names))]
    by_position, by_name = names[: parameters.positional], names[parameters.positional :]
    optional, chosen = [names[i] for i in parameters.optional], [names[i] for i in sorted(static)]
    dynamic = [name for name in names if name not in chosen]
    rest, named = "rest" if parameters.rest else "", "named" if parameters.named else ""
    more = [name for name in (rest, named) if name]

    heads = [f"{name}=MISSING" if name in optional else name for name in names]
    heads.insert(parameters.positional, "*rest" if rest else "*" if by_name else "")
    heads.insert(parameters.unnamed, "/" if parameters.unnamed else "")
    heads.append("**named" if named else "")

    # The call again, for the general path.
    if optional or by_name:
        given = f"*jitted.parameters.given({_tuple(names)}, {rest or '()'}, {named or '{}'})"
    else:
        given = f"{_tuple([*names, '*rest' if rest else ''])}, {named or '{}'}"

    # What has a default is as a rule left to it; not so by those who call a function that takes any arguments.
    wanted = [name for name in dynamic if name not in optional] or (dynamic if rest else dynamic[:1])
    arrays = [f"type({name}) is ArrayImpl" if name in wanted else f"{name} is MISSING" for name in dynamic]
    arrays += [f"not {name}" for name in more]

    # Equal values of other classes are others: 1, 1.0 and True. Names belong to functions that take any arguments.
    fixed = [*chosen, *[f"type({name})" for name in chosen]]
    fixed += [repr(name) for name in parameters.names[parameters.positional :]] if rest and named else []
    keys = [f"{name}._key" for name in wanted]
    values = [*[name for name in by_position if name in dynamic], "*rest" if rest else ""]
    values += [*[name for name in by_name if name in dynamic], "*named.values()" if named else ""]
    otherwise = " or ".join([*more, *[f"{name} is MISSING" for name in names]])
    return CALL.format(
        parameters=", ".join(filter(None, heads)),
        arguments=given,
        unless=_UNLESS.format(otherwise=otherwise, arguments=given) if by_place else "",
        arrays=(" and ".join(arrays) or "True") if len(wanted) <= MOST else "False",
        keys=keys[0] if len(keys) == 1 and not fixed else _tuple([*keys, *fixed]),
        buffers=", ".join(f"{name}._buf" for name in wanted),
        names="*named" if named else "",
        values=_tuple(values),
        kinds=_tuple(["*kinds", *fixed]) if fixed else "tuple(kinds)",
    )


def _tuple(items: list[str]) -> str:
    """A tuple of these, without empty ones."""
    return f"({''.join(f'{item}, ' for item in items if item)})"


@functools.cache
def _compiled(text: str) -> CodeType:
    """The code of this function, which tracebacks show."""
    path = f"{source.WRITTEN}call {_compiled.cache_info().currsize}>"
    text = "def outer(jitted):\n    " + text.replace("\n", "\n    ") + "return call\n"
    scope: dict[str, Any] = {}
    exec(compile(text, path, "exec"), globals(), scope)
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    code: CodeType = scope["outer"](None).__code__
    return code
