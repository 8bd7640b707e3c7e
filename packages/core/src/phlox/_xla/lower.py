"""Lowers a Jaxpr to the text of a StableHLO module: the lowering rule of each equation adds lines.

Text is used instead of jaxlib's MLIR bindings: it needs no import of them, is faster to build, serves several versions
of jaxlib, and is the cache key on disk.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from .._base.errors import PhloxError, UnsupportedError
from .._base.source import Location, Replay, replays, scope_text
from .._ir.avals import ShapedArray
from .._ir.dtypes import ExtendedDtype
from .._ir.effects import ordered
from .._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, has_unbounded_loop
from .._ir.primitive import RULE_FAILURES, defined_in_phlox, parameter_error
from . import explicit_axes
from .compared_values import compared_values, in_memory
from .constant_nan import may_know_nan
from .costly_values import costly_values
from .definitions import Definitions
from .forms import form_for
from .text import TOKEN, Function, Module, Value, quoted


class Argument(NamedTuple):
    """One argument of ``main``: its type, its MLIR attributes and, in a text with locations, the user's name of it."""

    aval: ShapedArray
    attributes: tuple[str, ...] = ()
    name: str | None = None

    def __str__(self) -> str:
        location = "" if self.name is None else f" loc({quoted(self.name)})"
        return f"{self.aval.physical.text}{_braces(self.attributes)}{location}"


def lower_module(
    jaxpr: Jaxpr,
    name: str,
    *,
    arguments: Sequence[Argument],
    result_attributes: Sequence[tuple[str, ...]] = (),
    result_shardings: Sequence[str | None] = (),
    module: Module | None = None,
) -> str:
    """The text of a module whose ``main`` computes `jaxpr`. Its results get the `result_shardings`, in Shardy's syntax.

    The arguments of ``main`` are the constants of `jaxpr`, then its inputs. Only literals are constants in the text:
    XLA would spend time and memory on folding arrays.
    """
    module = module or Module()
    # A function called main by the user gets another name, as the runtime looks for this one.
    module.names["main"] = 1
    # Before the first rule is called: some write another form if the compiler may know that an operand is nan.
    module.may_know_nan = may_know_nan(jaxpr)
    module.compared_values = compared_values(jaxpr)
    module.main = jaxpr
    main = Function(module, label=(f"jit({jaxpr.name})",))
    inputs = [Value(f"%arg{i}", argument.aval.physical) for i, argument in enumerate(arguments)]
    module.inputs.update(inputs)
    outputs = lower_jaxpr(main, jaxpr, inputs)
    shardings = result_shardings or [None] * len(outputs)
    outputs = [x if s is None else main.constrain(x, s) for x, s in zip(outputs, shardings, strict=True)]
    head = ", ".join(f"{x}: {argument}" for x, argument in zip(inputs, arguments, strict=True))
    attributes = result_attributes or [()] * len(outputs)
    results = ", ".join(x.aval.text + _braces(a) for x, a in zip(outputs, attributes, strict=True))
    end = _return(outputs)  # before main.lines is read: it adds the lines of constants that are results
    lines = [
        f"module @{module.fresh_name(name).rstrip('_')} attributes "
        f"{{mhlo.num_partitions = {module.partitions} : i32, mhlo.num_replicas = 1 : i32}} {{",
        *module.mesh_lines(),
        f"  func.func public @main({head}) -> ({results}) {{",
        *main.lines,
        end,
        "  }",
        *module.functions,
        "}",
    ]
    return "\n".join(lines) + "\n"


@replays
def lower_jaxpr(f: Function, jaxpr: Jaxpr, inputs: Sequence[Value]) -> list[Value]:
    """Adds the equations of `jaxpr` to `f`; returns the values of its outputs."""
    env: dict[Var, Value] = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))

    def read(v: Atom) -> Value:
        return f.number(v.val, v.aval.physical) if isinstance(v, Literal) else env[v]

    locate, explicit = f.module.locations, f.module.explicit
    stored = f.module.compared_values | costly_values(jaxpr)
    apply = explicit_axes.on_parts(_apply_rule) if explicit else _apply_rule
    if explicit:
        env = {v: explicit_axes.marked(f, x, v.aval) for v, x in env.items()}
    around_definitions, f.definitions = f.definitions, Definitions(jaxpr, env, read)
    with Replay() as replay:
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            # Variables are read inline, as a call for each operand would take longer than the rest of the loop.
            operands = [env[v] if type(v) is Var else read(v) for v in eqn.invars]
            outvars = eqn.outvars
            # Rules that only add one operation need not compute its types again.
            f.outs = [v.aval.physical for v in outvars] if primitive.multiple_results else [outvars[0].aval.physical]
            rule = primitive.lower or primitive.rule("lower")
            # A primitive without a rule `extend` has no PRNG keys among its operands: its rule `types` refuses them.
            params = eqn.params if primitive.extend is None else _physical_params(eqn)
            rule = form_for(f, eqn, operands, params) or rule
            if locate:
                around = f.label
                # Rules read `f.source` and `f.label` for the locations of all lines that they add.
                f.source = eqn.source_info
                if f.source is not None:
                    f.label = (*around, *f.source.scope)
                    # Rules that stage functions, as that of `scan`, give this line to their operations.
                    replay.enter(Location(f.source.code, f.source.offset))
                results = apply(f, eqn, rule, operands, params)
                f.locate(scope_text(f.label), primitive.name)
                f.label = around
            else:
                results = apply(f, eqn, rule, operands, params)
            if explicit:
                results = explicit_axes.split(f, eqn, results)
            if stored and not stored.isdisjoint(outvars):
                results = _in_memory(f, eqn, results, stored)
            if primitive.multiple_results:
                env.update(zip(outvars, results, strict=True))
            else:
                env[outvars[0]] = results
    f.definitions = around_definitions
    return [read(v) for v in jaxpr.outvars]


def lower_computation(f: Function, jaxpr: Jaxpr, inputs: Sequence[Value]) -> list[Value]:
    """As `lower_jaxpr`, for the computation of single elements in a reduction or a scatter.

    Raises `UnsupportedError` if it contains a ``while_loop``.
    """
    if has_unbounded_loop(jaxpr):  # XLA's fusion of such a computation fails a check, which ends the process
        raise UnsupportedError(
            f"a while_loop in {jaxpr.name or 'the function'}, which combines or changes the elements of an array in a "
            "reduction or a scatter",
            instead="vmap of the function over the elements, or scan for a reduction",
        )
    return lower_jaxpr(f, jaxpr, inputs)


def _in_memory(f: Function, eqn: JaxprEqn, results: Any, stored: Set[Var]) -> Any:
    """The results of an equation, of which those that are `stored` are computed once for all of their readers."""
    if not eqn.primitive.multiple_results:
        return in_memory(f, results)
    return [in_memory(f, x) if v in stored else x for x, v in zip(results, eqn.outvars, strict=True)]


def _apply_rule(f: Function, eqn: JaxprEqn, rule: Any, operands: Sequence[Value], params: dict[str, Any]) -> Any:
    """Calls a lowering rule; returns its results. If phlox's own rule fails on a parameter, raises an `OptionError`."""
    try:
        return rule(f, *operands, **params)
    except PhloxError:
        raise
    except RULE_FAILURES as error:
        # A rule of a user's own primitive raises its error as it is.
        if not defined_in_phlox(rule):
            raise
        raise parameter_error(eqn.primitive, [v.aval for v in eqn.invars], eqn.params, error) from error


def _physical_params(eqn: JaxprEqn) -> dict[str, Any]:
    """The parameters for the physical arrays: those of PRNG keys have trailing axes."""
    for v in (*eqn.invars, *eqn.outvars):
        if isinstance(v.aval.dtype, ExtendedDtype):
            extend = eqn.primitive.rule("extend")
            return extend(eqn.params, v.aval.dtype.element_shape, *[x.aval for x in eqn.invars])
    return eqn.params


def call_function(
    f: Function, closed: ClosedJaxpr, args: Sequence[Value], name: str, attributes: str = ""
) -> list[Value]:
    """Calls a private function that computes `closed`, which has no constants; `attributes` is the text of the call's.
    The module gets the function once."""
    in_order = ordered(closed.jaxpr.effects)
    outs = [aval.physical for aval in closed.out_avals]
    symbol = _function(f, closed, args, name, in_order)
    # The token of ordered effects goes through the function.
    operands, types = ([*args, f.order()], [*outs, TOKEN]) if in_order else (args, outs)
    results = f.call(symbol, operands, types, attributes)
    if f.module.locations:
        # When XLA inlines the call, it prefixes the names inside of the function with this one.
        f.locate(scope_text((*f.label, f"jit({name})")))
    if in_order:
        f.token = results.pop()
    return results


def _function(f: Function, closed: ClosedJaxpr, args: Sequence[Value], name: str, in_order: bool) -> str:
    """The symbol of the function for `closed`. With ordered effects, its last argument and last result are tokens."""
    module = f.module
    # The axes are part of the key: inside of `shard_map` the same Jaxpr is another function.
    key = (closed.jaxpr, f.axes, f.auto)
    symbol = module.known.get(key)
    if symbol is None:
        symbol = module.known[key] = module.fresh_name(name)
        inner = Function(module, f.axes, auto=f.auto)
        inputs = [Value(f"%arg{i}", aval.physical) for i, aval in enumerate(closed.in_avals)]
        # Arguments of the program are so in the functions that it calls.
        module.inputs.update(x for x, arg in zip(inputs, args, strict=True) if arg in module.inputs)
        if in_order:
            inner.token = Value("%token", TOKEN)
        outputs = lower_jaxpr(inner, closed.jaxpr, inputs)
        if in_order:
            # A token goes in and out, so that effects inside of the function keep their order with those outside.
            inputs.append(Value("%token", TOKEN))
            outputs.append(inner.order())
        head = ", ".join(f"{x}: {x.aval.text}" for x in inputs)
        results = ", ".join(x.aval.text for x in outputs)
        # After the body: it may add the lines of constants.
        end = _return(outputs)
        start = f"  func.func private @{symbol}({head}) -> ({results}) {{"
        module.functions.append("\n".join([start, *inner.lines, end, "  }"]))
    return symbol


def _return(outputs: Sequence[Value]) -> str:
    if not outputs:
        return "    return"
    return f"    return {', '.join(map(str, outputs))} : {', '.join(x.aval.text for x in outputs)}"


def _braces(attributes: Sequence[str]) -> str:
    return f" {{{', '.join(attributes)}}}" if attributes else ""


def result_info(path: str) -> str:
    """The attribute that names the part of the result which an output is."""
    return f"jax.result_info = {quoted(path)}"
