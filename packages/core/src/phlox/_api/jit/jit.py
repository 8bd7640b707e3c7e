"""`jit`: a Python function is traced and compiled once for each kind of arguments, then called from a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._base.errors import OptionError
from ..._base.wrapping import renamed
from ..._xla.devices import Device
from . import arguments
from .calling import function_of
from .inlining import Inline, as_inline
from .jit_function import JitFunction
from .options import (
    CompilerOptions,
    Options,
    Prefix,
    as_checks,
    as_device,
    as_effort,
    as_limit,
    as_overrides,
    check_jittable,
)

if TYPE_CHECKING:
    from typing import Never, Unpack, overload

    from ..._base.wrapping import P, R
    from .options import JitOptions
    from .stages import Jitted

if TYPE_CHECKING:

    @overload
    def jit(fun: Never, /, **options: Unpack[JitOptions]) -> Any: ...  # what mypy takes for functools.partial(jit, …)
    @overload
    def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
    @overload
    def jit(fun: None = None, /, **options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: CompilerOptions | None = None,
    compile_effort: str | None = None,
    checks: str | None = None,
    max_traces: int | None = None,
    sizes: Mapping[str, Any] | str | None = None,
    buckets: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
) -> Any:
    """Compiles `fun` with XLA the first time it is called with arguments of new shapes and dtypes.

    `fun` must be pure: it runs once on tracers, and later calls run the compiled program.

    Args:
      fun: function of arrays, numbers and pytrees of them, which returns such values. None returns a decorator.
      in_shardings, out_shardings: shardings of arguments and results, as tree prefixes with `Sharding` leaves; None
        leaves the choice to the arguments and the compiler.
      static_argnums, static_argnames: arguments that are hashable Python values; each new value compiles anew. Numbers
        count from 0, or back from -1. If only one of the two is given, the other is derived from the signature of
        `fun`; if both are given, neither is completed.
      donate_argnums, donate_argnames: arguments whose memory may be reused for results; the call deletes them.
      keep_unused: keep arguments that `fun` does not use in the compiled program.
      device, backend: where to run, for example ``phlox.devices()[0]`` or ``'cpu'``; None for where the arguments are.
      inline: True: inside other transformed functions, record the operations of `fun` instead of one call. Or an
        `Inline`, of which `JAX_EARLY` does so.
      compiler_options: options of XLA by the names of its flags; ignored where `fun` is part of another program.
      compile_effort: ``'default'``, ``'fast'`` (fewer optimizations) or ``'tiered'`` (calls run a program compiled at
        low effort until the optimized one is compiled on a thread); None for the flag of this name. Ignored as above.
      checks: ``'off'``, ``'default'`` or ``'strict'``: traps in this function are passed over, warned of, or refused;
        None for the flag of this name.
      max_traces: how often `fun` may be traced; None for any number.
      sizes: names of axes that vary in length, by parameter: ``{"x": "n", "mask": ("batch", "n")}``. One program then
        serves all lengths up to a bucket, with the results of `fun`; see `pad_axes`. ``{"x": "auto"}`` names the
        leading axis of each leaf after its length, and ``"auto"`` those that differ between two calls.
      buckets: the lengths to compile for, in rising order, or such a list for each name; see `pad_axes`.

    Returns:
      A function that is called as `fun` is. Its methods ``trace``, ``lower`` and ``eval_shape`` take the same arguments
      and show the program without running it.

    Raises:
      ArgumentError: in a call, when an argument or a result is no array.
      ConcretizationTypeError: in a call, when `fun` needs the value of a traced array; often one of the subclasses,
        such as `TracerBoolConversionError`.
      BackendError: there is no such backend.
      CheckError: in a call, when `fun` would be traced more often than `max_traces`, or for ``checks='strict'``.
      OptionError: `static_argnums`, `sizes` and the like name arguments that `fun` does not have.
      StaticArgumentError: in a call, when a static argument is not hashable.

    >>> phlox.jit(lambda x: x * 2)(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    options = Options(
        arguments.as_ints(static_argnums, "static_argnums"),
        arguments.as_names(static_argnames, "static_argnames"),
        arguments.as_ints(donate_argnums, "donate_argnums"),
        arguments.as_names(donate_argnames, "donate_argnames"),
        keep_unused,
        as_inline(inline),
        as_device(device, backend, in_shardings, out_shardings),
        # `in_shardings` names arguments by position, in a tuple or, as in JAX, a list. Those by name have none.
        Prefix.of("in_shardings", None if in_shardings is None else (_as_tuple(in_shardings), None)),
        Prefix.of("out_shardings", out_shardings),
        as_overrides(compiler_options),
        as_effort(compile_effort),
        # If numbers and names are both given, neither is completed from the other. As in JAX.
        tuple(
            kind
            for kind, numbers, names in (
                ("static", static_argnums, static_argnames),
                ("donate", donate_argnums, donate_argnames),
            )
            if numbers is not None and names is not None
        ),
        checks=as_checks(checks),
        max_traces=as_limit(max_traces),
    )
    if sizes is None and buckets is not None:
        raise OptionError("jit: buckets without sizes", instead="sizes={'x': 'n'}, which names the axes that vary")

    def make(fun: Any) -> Any:
        if sizes is None:
            return _make(fun, options)
        from ..sizes.sized_jit import sized_jit  # on demand: few functions have sizes

        return sized_jit(_make(fun, options), sizes, buckets)

    return make(fun) if fun is not None else make


def jitted_alias(function: Any, name: str) -> Any:
    """A jitted function that does the same under another name, with which it is in programs and pickles."""
    jitted = function._jit
    return function_of(JitFunction(renamed(jitted.fun, name), jitted._options))


def _make(fun: Any, options: Options) -> Any:
    arguments.check_callable("jit", fun)
    check_jittable(fun, options)
    jitted = JitFunction(fun, options)
    # Reads the signature now; for functions without such options it is read at the first call.
    if options.static_argnums or options.static_argnames or options.donate_argnums or options.donate_argnames:
        _ = jitted.options  # raises for numbers and names that the function does not have
    return function_of(jitted)


def _as_tuple(in_shardings: Any) -> Any:
    return tuple(in_shardings) if type(in_shardings) is list else in_shardings
