"""Lowering rules that build MLIR with jaxlib's bindings, as libraries register them.

phlox writes programs as text. Such a rule fills a function of an MLIR module of its own; the text of that function is
added to the program, which calls it. The bindings are imported when the first rule is used: the import takes 60 ms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import phlox
from phlox import ShapeDtypeStruct
from phlox.errors import UnsupportedError
from phlox.extend import Function, Primitive, ShapedArray, Value

from .._core import (
    IOEffect,
    call_host,
    dense_text,
    mlir_context,
    mlir_module,
    no_effects,
    on_host,
    platform_of,
)


@dataclasses.dataclass
class ModuleContext:
    """The module that a rule builds, and what it may ask of the program.

    Attributes:
      context: the MLIR context.
      module: the module of the rule's functions.
      ip: the place for functions in it.
      symbol_table: the names of its functions.
      platforms: the platform of the program.
      keepalives: objects that must live as long as the program.
      program: the function of the program that calls the rule's.
    """

    context: Any
    module: Any
    ip: Any
    symbol_table: Any
    platforms: Sequence[str]
    keepalives: list[Any]
    program: Function
    backend: Any = None
    cached_primitive_lowerings: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def add_keepalive(self, keepalive: Any) -> None:
        """Keeps an object alive as long as the program."""
        self.keepalives.append(keepalive)


@dataclasses.dataclass
class LoweringRuleContext:
    """What a rule is told about the equation that it lowers.

    Attributes:
      module_context: the module.
      primitive: the primitive.
      avals_in, avals_out: types of the operands and results.
    """

    module_context: ModuleContext
    primitive: Primitive | None
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    name_stack: Any = None
    traceback: Any = None
    tokens_in: Any = None
    tokens_out: Any = None
    const_lowering: Any = None
    axis_size_env: Any = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """A copy with some attributes replaced."""
        return dataclasses.replace(self, **changes)

    def is_forward_compat(self) -> bool:
        """Whether older compilers must understand the program."""
        return False

    def set_tokens_out(self, tokens_out: Any) -> None:
        """Sets the tokens of the results."""
        self.tokens_out = tokens_out


def lowered_by_bindings(prim: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of phlox's form for one that builds MLIR: ``rule(ctx, *operands, **params)``."""

    def lower(f: Function, *args: Value, **params: Any) -> Any:
        text, symbol = _function_text(f, prim, rule, args, params)
        f.module.functions.append(text)
        results = f.call(symbol, args, f.outs)
        return results if prim.multiple_results else results[0]

    return lower


def _function_text(
    f: Function, prim: Primitive, rule: Callable[..., Any], args: Sequence[Value], params: dict[str, Any]
) -> tuple[str, str]:
    """The text of the function that the rule fills, and of those that it has added, and the name of the first."""
    ir, func = mlir_module("ir"), mlir_module("dialects.func")
    symbol = f.module.fresh_name(prim.name)
    with mlir_context() as context, ir.Location.unknown():
        module = ir.Module.create()
        inputs, outputs = ([ir.Type.parse(aval.text) for aval in avals] for avals in ([x.aval for x in args], f.outs))
        with ir.InsertionPoint(module.body) as place:
            function = func.FuncOp(symbol, (inputs, outputs), visibility="private")
        platforms = (platform_of(f),)
        symbols = ir.SymbolTable(module.operation)
        module_context = ModuleContext(context, module, place, symbols, platforms, f.module.references, f)
        ctx = LoweringRuleContext(
            module_context, prim, [x.aval for x in args], list(f.outs), const_lowering={}, platforms=platforms
        )
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            try:
                results = flatten_ir_values(_several(rule(ctx, *block.arguments, **params)))
                func.ReturnOp(results)
                module.operation.verify()
            except Exception as error:
                raise UnsupportedError(
                    f"the lowering rule of {prim} builds MLIR, and failed: {type(error).__name__}: {error}",
                    instead="mlir.lower_fun(f), or phlox.extend.Primitive(name, lower=...), whose rule writes text",
                    primitive=prim.name,
                ) from error
        # Declarations are of functions that the program has already.
        operations = [op for op in module.body.operations if not op.operation.regions or op.operation.regions[0].blocks]
        for op in operations:
            _rename(f, module, op, symbol)
        text = "\n".join(str(op.operation.get_asm(use_local_scope=True)) for op in operations)
    return "\n".join("  " + line for line in text.splitlines()), symbol


def _rename(f: Function, module: Any, op: Any, symbol: str) -> None:
    """Gives a function that the rule has added a name that is unique in the program."""
    ir = mlir_module("ir")
    name = ir.StringAttr(op.attributes["sym_name"]).value
    if name != symbol:
        new = f.module.fresh_name(name)
        ir.SymbolTable.replace_all_symbol_uses(name, new, module.operation)
        ir.SymbolTable.set_symbol_name(op, new)
    ir.SymbolTable.set_visibility(op, "private")


def _several(results: Any) -> Sequence[Any]:
    """The results of a rule: values, or an operation."""
    if hasattr(results, "results") and not isinstance(results, tuple | list):
        return list(results.results)
    return results if isinstance(results, tuple | list) else list(results)


def flatten_ir_values(xs: Iterable[Any]) -> list[Any]:
    """Values and sequences of values as one list."""
    return [x for value in xs for x in (flatten_ir_values(value) if isinstance(value, tuple | list) else [value])]


def call_jax_function(
    ctx: LoweringRuleContext, fun: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """Adds the program of a function of arrays to the module of a rule, and calls it."""
    ir, func = mlir_module("ir"), mlir_module("dialects.func")
    structs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_in]
    lowered = phlox.jit(lambda *xs: fun(*xs, **params), keep_unused=True).lower(*structs)
    source = ir.Module.parse(lowered.as_text())
    main = None
    count = len(ctx.module_context.module.body.operations)
    for op in source.body.operations:
        name = ir.StringAttr(op.attributes["sym_name"]).value
        ir.SymbolTable.replace_all_symbol_uses(name, f"{name}_{count}", source.operation)
        ir.SymbolTable.set_symbol_name(op, f"{name}_{count}")
        with ctx.module_context.ip:
            copy = op.operation.clone()
        main = copy if name == "main" else main
    assert main is not None
    outs: list[Any] = list(func.CallOp(main.opview, list(args)).results)
    return outs


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Adds a call of a Python function of arrays to the function of a rule.

    Args:
      ctx: the context of the rule.
      callback: called with arrays; returns a sequence of them.
      token: None. Calls in program order are those of `phlox.experimental.io_callback`.
      operands, operand_avals: the arguments and their types.
      result_avals: the types of the results.
      has_side_effect: whether the call is kept if its results are unused.
      returns_token, sharding: accepted as in JAX; not used.
      partitioned: whether each device calls, with its part of the arguments.

    Returns:
      (results, None for the token, the function to keep alive).
    """
    if token is not None:
        raise UnsupportedError("a callback with a token in a lowering rule", instead="io_callback(..., ordered=True)")
    func, ir = mlir_module("dialects.func"), mlir_module("ir")
    effects = frozenset([IOEffect()]) if has_side_effect else no_effects
    fun = on_host(callback, f"the callback of {ctx.primitive}", result_avals)

    def body(f: Function, *xs: Value) -> list[Value]:
        return call_host(f, xs, fun, result_avals, effects=effects, partitioned=partitioned)

    symbol = ctx.module_context.program.function("callback", operand_avals, body)
    inputs, outputs = ([ir.Type.parse(aval.text) for aval in avals] for avals in (operand_avals, result_avals))
    with ctx.module_context.ip:
        declaration = func.FuncOp(symbol, (inputs, outputs), visibility="private")
    return list(func.CallOp(declaration, list(operands)).results), None, fun


def attribute_of(value: Any, aval: ShapedArray) -> Any:
    """An array as a ``DenseElementsAttr``."""
    ir = mlir_module("ir")
    if aval.dtype.kind == "c":  # the bindings cannot show such an attribute that was parsed
        element = ir.RankedTensorType(ir.Type.parse(aval.text)).element_type
        return ir.DenseElementsAttr.get(np.asarray(value, aval.dtype), type=element, shape=aval.shape)
    return ir.Attribute.parse(f"{dense_text(value, aval)} : {aval.text}")
