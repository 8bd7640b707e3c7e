"""The functions that `jit` returns, and the fast path of their calls.

`jit` returns plain Python functions: calling them costs less than calling an object, and they bind as methods do.
Behind each is a `JitFunction`. A call is looked up by the placements of the arguments (type and sharding, see
`_xla.placement`), the classes of Python numbers, and the static arguments. The `Entry` holds all that a call needs.

After a call of jaxlib the CPU caches are cold, and each Python step costs about ten times as much as it does alone. So
on its first call a function gets generated code, `CALL`. It has the parameters of the jitted function, so that Python
itself matches arguments given by position or by name.

With the flag `generated_calls` off, no further function gets such code, and calls take the general path,
`JitFunction.call_flat`. To test whether a fault lies here, set PHLOX_GENERATED_CALLS=0 before the process starts.
"""

from __future__ import annotations

import functools
import linecache
import weakref
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ..._base import config, source  # noqa: F401  (`CALL` uses config and the other names so marked)
from ..._base.config import overridden  # noqa: F401
from ..._base.errors import NumberRangeError
from ..._base.tracebacks import trim
from ..._base.wrapping import COMPILED, wraps
from ..._ir.primitive import tracing
from ..._xla.array import ArrayImpl  # noqa: F401
from ..._xla.compile import JaxRuntimeError
from . import arguments
from .entry import gather  # noqa: F401
from .parameters import MISSING, OwnSignature, Parameters

if TYPE_CHECKING:
    from .jit_function import JitFunction

# Deleted buffers and numbers that are too large raise these; their errors are then told in the user's terms.
FAILURES = (JaxRuntimeError, ValueError, RuntimeError, NumberRangeError)

#: Source of the generated call path; `_text` fills in the braces for the parameters of the function.
#: Helper functions are written out here, as each Python call costs time on the fast path.
CALL = """\
def call({parameters}):
    try:
        if tracing() is not None:
            return jitted.call_traced({arguments})
        {unless}fingerprint = (config.global_settings if overridden() is None else config.current()).call_fingerprint
        if {arrays}:
            call_key = {keys}
            leaves = [{buffers}]
        else:  # pytrees, numbers, optional arguments
            kinds, leaves = [{names}], []
            try:
                gather(kinds, leaves, {values})
                call_key = {kinds}
            except Exception:  # not a pytree of arrays: the general path raises the error
                call_key = None
        try:
            fast_path = jitted.calls.get(call_key)
        except Exception:  # a static argument is not hashable: the general path raises the error
            fast_path = call_key = None
        if fast_path is None or fast_path[0] is not fingerprint:
            fast_path = jitted.calls.get((fingerprint, call_key))
            if fast_path is None:
                return jitted.call_flat({arguments}, call_key)
        _, prepare, execute, handlers, finish, aval, placement, calls_until_check, entry = fast_path
        for _ in calls_until_check:  # at most one turn, which counts the call in C; none when checks are due
            try:
                if prepare is not None:
                    leaves = prepare(leaves)
                results = execute(leaves).consume_with_handlers(handlers)
                if finish is not None:
                    return finish(results)
                array = ArrayImpl()  # `wrap`, inlined
                array._buf = results[0]
                array.aval = aval
                array._placement = placement
                return array
            except FAILURES:
                jitted.explain_failure(entry, {arguments})
                raise
        return jitted.call_flat({arguments}, call_key)  # checks are due
    except Exception as error:
        trim(error)
        raise
"""
# With more or fewer arguments, numbers of static arguments that count from the end mean others.
_OTHERWISE = """\
if {otherwise}:
            return jitted.call_flat({arguments})
        """
#: With more array parameters than this, `gather` collects them instead of generated code for each.
MAX_ARRAYS = 8


def function_of(jitted: JitFunction) -> Any:
    """The function that `jit` returns: it has the name and signature of the user's function and methods of `jitted`."""

    # This closes over `jitted` and nothing else: `specialize` replaces its code, and Python demands that the new code
    # has as many free variables.
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if tracing() is not None:
                return jitted.call_traced(args, kwargs)
            # From now on the function has generated code. The call that compiles goes through it, to store a fast path.
            generated = jitted.specialize(args, kwargs)
            return jitted.call_flat(args, kwargs) if generated is None else generated(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    function: Any = call
    function.__name__ = function.__qualname__ = arguments.fun_name(jitted.fun)
    wraps(jitted.fun)(function)
    if isinstance(jitted.fun, FunctionType | MethodType):
        function.__signature__ = OwnSignature(jitted.fun)
    for name in COMPILED:
        setattr(function, name, getattr(jitted, name))
    function._jit = jitted
    jitted.unspecialized.append(weakref.ref(function))
    return function


def specialize(function: Any, parameters: Parameters, static: frozenset[int], full_calls_only: bool) -> None:
    """Replaces the code of a jitted function by code generated for `parameters`.

    `static` has the positions of static parameters. With `full_calls_only`, the code serves only calls that give all
    parameters and nothing else; other calls take the general path.
    """
    names, optional = parameters.names, sorted(parameters.optional)
    code = _compiled(_text(parameters, static, full_calls_only))
    # The text calls parameters p0, p1, … as the user's names could hide its own; callers need the user's names, and
    # profiles show the name of the code.
    varnames = (*names, *code.co_varnames[len(names) :])
    code = code.replace(co_varnames=varnames, co_name=f"jit({function.__name__})")
    # `MISSING` in place of the user's defaults: these are filled in by the user's function, when it is traced.
    function.__defaults__ = (MISSING,) * sum(i < parameters.positional for i in optional)
    function.__kwdefaults__ = {names[i]: MISSING for i in optional if i >= parameters.positional}
    # A function that cloudpickle stored has only those variables of this module that its former code uses.
    if function.__globals__ is not globals():
        function.__globals__.update(globals())
    function.__code__ = code


def _text(parameters: Parameters, static: frozenset[int], full_calls_only: bool) -> str:
    """`CALL` filled in for these parameters, which are named ``p0, p1, …`` in it."""
    names = [f"p{i}" for i in range(len(parameters.names))]
    by_position, by_name = names[: parameters.positional], names[parameters.positional :]
    optional, chosen = [names[i] for i in parameters.optional], [names[i] for i in sorted(static)]
    dynamic = [name for name in names if name not in chosen]
    rest, named = "rest" if parameters.has_args else "", "named" if parameters.has_kwargs else ""
    more = [name for name in (rest, named) if name]

    heads = [f"{name}=MISSING" if name in optional else name for name in names]
    heads.insert(parameters.positional, "*rest" if rest else "*" if by_name else "")
    heads.insert(parameters.positional_only, "/" if parameters.positional_only else "")
    heads.append("**named" if named else "")

    # (args, kwargs) of the call, for the general path.
    if optional or by_name:
        call_args = f"*jitted.parameters.bind({_tuple(names)}, {rest or '()'}, {named or '{}'})"
    else:
        call_args = f"{_tuple([*names, '*rest' if rest else ''])}, {named or '{}'}"

    # The branch for arrays expects parameters with a default to be left out. Parameters of a function of
    # (*args, **kwargs) are all optional in this sense, and are expected to be given.
    array_names = [name for name in dynamic if name not in optional] or (dynamic if rest else dynamic[:1])
    arrays = [f"type({name}) is ArrayImpl" if name in array_names else f"{name} is MISSING" for name in dynamic]
    arrays += [f"not {name}" for name in more]

    # Classes of static arguments are in the key since 1 == 1.0 == True. Keyword names are in the key of functions of
    # (*args, **kwargs), as such functions can read them.
    fixed = [*chosen, *[f"type({name})" for name in chosen]]
    fixed += [repr(name) for name in parameters.names[parameters.positional :]] if rest and named else []
    keys = [f"{name}._placement" for name in array_names]
    values = [*[name for name in by_position if name in dynamic], "*rest" if rest else ""]
    values += [*[name for name in by_name if name in dynamic], "*named.values()" if named else ""]
    otherwise = " or ".join([*more, *[f"{name} is MISSING" for name in names]])
    return CALL.format(
        parameters=", ".join(filter(None, heads)),
        arguments=call_args,
        unless=_OTHERWISE.format(otherwise=otherwise, arguments=call_args) if full_calls_only else "",
        arrays=(" and ".join(arrays) or "True") if len(array_names) <= MAX_ARRAYS else "False",
        keys=keys[0] if len(keys) == 1 and not fixed else _tuple([*keys, *fixed]),
        buffers=", ".join(f"{name}._buf" for name in array_names),
        names="*named" if named else "",
        values=_tuple(values),
        kinds=_tuple(["*kinds", *fixed]) if fixed else "tuple(kinds)",
    )


def _tuple(items: list[str]) -> str:
    """The source text of a tuple of these expressions; empty ones are left out."""
    return f"({''.join(f'{item}, ' for item in items if item)})"


# By text: functions with parameters of the same kinds share one code object. Compiling the text takes 0.35 ms.
@functools.cache
def _compiled(text: str) -> CodeType:
    """The code object of this source text, which is put into `linecache` so that tracebacks can show it."""
    path = f"{source.WRITTEN}call {_compiled.cache_info().currsize}>"
    # `jitted` has to be a free variable and not a global: the code is put into functions that close over it.
    text = "def outer(jitted):\n    " + text.replace("\n", "\n    ") + "return call\n"
    scope: dict[str, Any] = {}
    exec(compile(text, path, "exec"), globals(), scope)
    linecache.cache[path] = len(text), None, text.splitlines(True), path
    # The function made here is thrown away, only its code is used.
    code: CodeType = scope["outer"](None).__code__
    return code
