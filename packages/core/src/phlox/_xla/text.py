"""Builds StableHLO text. Lowering rules receive a `Function` and add lines to it.

Values are named ``%0, %1, …`` in order and have a type. Most lines come from three methods: `same` for operations whose
operands and result have one type, `op` for all others, in MLIR's generic form, and `constant`. The compiler gets this
text, and ``jit(f).lower(x).as_text()`` shows it.
"""

from __future__ import annotations

import functools
import itertools
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any

import numpy as np

from .._base import config
from .._base.source import Location, Positions, scope_text
from .._ir import dtypes
from .._ir.avals import ShapedArray, shaped
from .._ir.sharding_types import NO_REDUCTIONS, Entries, Reductions, any_specs


class Value:
    """An SSA value: its name in the text, and its physical type."""

    __slots__ = ("aval", "name")

    def __init__(self, name: str, aval: ShapedArray):
        self.name = name
        self.aval = aval

    def __str__(self) -> str:
        return self.name


class Number(Value):
    """An array whose elements are all one number. The line of the constant is written when its name is first read.

    So a constant that no line uses is not written, and a rule can read `value` instead.
    """

    __slots__ = ("_function", "_name", "value")

    def __init__(self, function: Function, value: Any, aval: ShapedArray):
        # The function refers to its numbers, and would be garbage that only a collection finds.
        self._function = weakref.ref(function)
        # The name is None until a line refers to the number.
        self._name: str | None = None
        self.value = value
        self.aval = aval

    @property
    def name(self) -> str:  # type: ignore[override]
        if self._name is None:
            # The line is added at the end of the function as it is now: reading a name is what decides its place.
            function = self._function()
            assert function is not None
            self._name = function.constant(self.value, self.aval).name
        return self._name


class Derived(Value):
    """A transpose or a conversion of an array. A rule can read the operand instead, in its own order and type.

    Attributes:
      operand: the array.
      permutation: the axes of the operand in the order of this value.
    """

    __slots__ = ("operand", "permutation")

    def __init__(self, value: Value, operand: Value, permutation: tuple[int, ...]):
        super().__init__(value.name, value.aval)
        self.operand = operand
        self.permutation = permutation


class Iota(Value):
    """An array that counts along an axis. A rule can use a position along the axis instead of the element there.

    Attributes:
      dimension: the axis.
    """

    __slots__ = ("dimension",)

    def __init__(self, value: Value, dimension: int):
        super().__init__(value.name, value.aval)
        self.dimension = dimension


class TokenType:
    """The type of tokens. They order operations with effects: each takes the token of the previous one."""

    text = "!stablehlo.token"
    ndim = 0


TOKEN: Any = TokenType()


class Module:
    """A module under construction: its private functions, its meshes, and what must be unique in it.

    Attributes:
      devices: the devices of the program, one for each partition.
      shardy: whether shardings are written for Shardy; otherwise for GSPMD.
      mesh_of_arguments: the mesh that arguments are sharded over, or None.
      explicit: whether the program has several devices and types may say how arrays are split over explicit axes.
      callbacks: Python functions that the program calls, by index.
      references: objects that the text refers to by address, and that must therefore stay alive.
      known: symbols of functions, and other values that rules cache for this module.
      platform: the platform that a program for other processes is written for, in the form that all versions of jaxlib
        can read; None for the platform of `devices`.
      inputs: the arguments of the program, which are in memory, and of its functions where the first call passes these.
      main: the Jaxpr of the program.
      locations: whether lines have locations: name scopes and source lines, which profiles show. The text that is the
        cache key has none, so that equal programs from different lines are one entry.
      when_compiled: functions to call when the program is compiled.
      compared_values: variables that are compared with elements selected from them, see `compared_values`.
      may_know_nan: whether the compiler may know that operands are nan, see `constant_nan`.
    """

    __slots__ = (
        "callbacks",
        "compared_values",
        "devices",
        "explicit",
        "functions",
        "inputs",
        "known",
        "locations",
        "main",
        "may_know_nan",
        "mesh_of_arguments",
        "meshes",
        "names",
        "platform",
        "positions",
        "references",
        "shardy",
        "when_compiled",
    )

    def __init__(
        self,
        devices: tuple[Any, ...] = (None,),
        shardy: bool = True,
        mesh: Any = None,
        locations: bool = False,
        platform: str | None = None,
    ) -> None:
        self.devices = devices
        self.shardy = shardy
        self.mesh_of_arguments = mesh
        self.explicit = len(devices) > 1 and any_specs()
        self.locations = locations
        self.platform = platform
        self.main: Any = None
        self.may_know_nan = False
        self.compared_values: frozenset[Any] = frozenset()
        self.functions: list[str] = []
        self.inputs: set[Value] = set()
        self.names: dict[str, int] = {}
        self.known: dict[Any, Any] = {}
        self.meshes: dict[Any, str] = {}
        self.callbacks: list[Callable[..., Any]] = []
        self.references: list[Any] = []
        self.when_compiled: list[Callable[[], None]] = []
        self.positions: Positions = {}

    @property
    def partitions(self) -> int:
        return len(self.devices)

    def fresh_name(self, name: str) -> str:
        """A unique symbol, made from `name`, that needs no quotes."""
        legal = re.sub(r"[^\w.]", "_", name, flags=re.ASCII)
        legal = legal if legal[:1].isidentifier() else f"f{legal}"
        count = self.names.get(legal, 0)
        fresh = f"{legal}_{count}" if count else legal
        # The user may have a function f_1 besides two that are called f.
        while count and fresh in self.names:
            count += 1
            fresh = f"{legal}_{count}"
        self.names[legal] = count + 1
        self.names.setdefault(fresh, 1)
        return fresh

    def mesh(self, axes: tuple[tuple[str, int], ...], devices: tuple[int, ...] = ()) -> str:
        """The symbol of a mesh with these (name, size) axes, over all devices or over the device numbers `devices`."""
        key = (axes, devices)
        if key not in self.meshes:
            # Equal meshes share a symbol, which is unique among those of functions, too.
            self.meshes[key] = self.fresh_name("mesh")
        return self.meshes[key]

    def mesh_symbol(self, mesh: Any) -> str:
        """The symbol of a `Mesh`."""
        return self.mesh(tuple((str(name), size) for name, size in mesh.shape.items()))

    def split_text(self, mesh: Any, entries: Entries, ndim: int, reductions: Reductions = NO_REDUCTIONS) -> str:
        """A sharding in Shardy's syntax, as in the type of an array with `ndim` axes: ``@mesh, [{"i"}, {}]``. The
        compiler may split further over the axes of `mesh` that are neither explicit nor manual, and over no others."""
        # "?" at the end lets the compiler split the axis further, over axes of type Auto.
        open_end = ["?"] if mesh.auto_axes else []
        rest = ((),) * (ndim - len(entries))
        dims = [", ".join([*map(axis_text, entry), *open_end]) for entry in (*entries, *rest)]
        used = {name for entry in entries for name in entry} | reductions.unreduced
        # With Auto axes present, explicit ones that split nothing are listed as replicated, or the compiler might use
        # them.
        whole = [axis_text(name) for name in mesh.explicit_axes if name not in used] if open_end else []
        end = f", replicated={{{', '.join(whole)}}}" if whole else ""
        end += unreduced_text(mesh, reductions)
        return f"@{self.mesh_symbol(mesh)}, [{', '.join(f'{{{dim}}}' for dim in dims)}]{end}"

    def mesh_lines(self) -> list[str]:
        """The declarations of all meshes."""
        lines = []
        for (axes, devices), symbol in self.meshes.items():
            named = ", ".join(f"{axis_text(name)}={size}" for name, size in axes)
            where = f", device_ids={ints(devices)}" if devices else ""
            lines.append(f"  sdy.mesh @{symbol} = <[{named}]{where}>")
        return lines


def unreduced_text(mesh: Any, reductions: Reductions) -> str:
    """The end of a sharding in Shardy's syntax: ``, unreduced={"x"}`` for sums, ``, unreduced=max{"x"}`` for maxima."""
    if not reductions.unreduced:
        return ""
    names = [axis_text(name) for name in mesh.axis_names if name in reductions.unreduced]
    return f", unreduced={'' if reductions.kind == 'sum' else reductions.kind}{{{', '.join(names)}}}"


@functools.cache
def _file_name(file: str, left_out: str | None) -> str:
    """The name of a source file in locations, without what matches the pattern `left_out`."""
    return file if left_out is None else re.sub(left_out, "", file)


class Function:
    """The body of a function, or of a region inside a function.

    Attributes that rules read:
      outs: physical types of the results of the equation that is being lowered; `out` is the first.
      ins: types of its operands, in programs whose types say how arrays are split.
      axes: inside of `shard_map`, all axes of its mesh, as (name, size).
      auto: names of the axes among them that are not manual; over these the compiler shards as it chooses.
      token: the token of the last operation with an ordered effect, or None.
      definitions: the equations of the Jaxpr that is being lowered, see `Definitions`.
    """

    __slots__ = (
        "__weakref__",
        "auto",
        "axes",
        "counter",
        "definitions",
        "indent",
        "ins",
        "label",
        "lines",
        "located",
        "module",
        "numbers",
        "outs",
        "source",
        "token",
    )  # fmt: skip

    def __init__(
        self,
        module: Module,
        axes: Any = None,
        counter: Iterator[int] | None = None,
        indent: str = "    ",
        label: tuple[str, ...] = (),
        auto: tuple[Any, ...] = (),
    ):
        self.module = module
        self.axes = axes
        self.auto = auto
        #: the number of the next value; a function and its regions share one
        self.counter = counter or itertools.count()
        self.indent = indent
        self.lines: list[str] = []
        #: for locations: the name scopes and the source line of the next lines, and how many lines have a location
        self.label = label
        self.source: Location | None = None
        self.located = 0
        self.outs: Sequence[ShapedArray] = ()
        self.ins: Sequence[ShapedArray] = ()
        self.token: Value | None = None
        self.definitions: Any = None
        self.numbers: dict[Any, Number] = {}

    @property
    def out(self) -> ShapedArray:
        return self.outs[0]

    # -- operations

    def fresh(self) -> str:
        """A new value name."""
        return f"%{next(self.counter)}"

    def line(self, text: str) -> None:
        """Adds one line."""
        self.lines.append(self.indent + text)

    def label_inside(self, *names: str) -> tuple[str, ...]:
        """The label of lines that are in further scopes."""
        # scope_text first: wrappers such as vmap(...) apply to the users' names, and must not wrap `names`.
        return tuple(filter(None, [scope_text(self.label), *names]))

    def locate(self, *names: str) -> None:
        """Adds a location, made of `names` and the source line, to all lines that have none yet."""
        location = quoted("/".join(filter(None, [*names])))
        if self.source is not None:
            # The cache of positions serves all lines of the module: reading those of a code object takes long.
            line, column = self.source.place(self.module.positions)
            file = _file_name(self.source.file, config.current().hlo_source_file_canonicalization_regex)
            location += f"({quoted(file)}:{line}:{column})"
        location = f"loc({location})"
        # Several lines may come from one equation, and all get its location.
        self.lines[self.located :] = [f"{line} {location}" for line in self.lines[self.located :]]
        self.located = len(self.lines)

    def same(self, op: str, x: Value, *more: Value) -> Value:
        """``op`` on operands of one type, with a result of that type, in StableHLO's short form."""
        aval = x.aval
        names = x.name  # before `fresh`: reading the name of a `Number` may add its line
        for other in more:
            names = f"{names}, {other.name}"
        name = self.fresh()
        self.lines.append(f"{self.indent}{name} = {op} {names} : {aval.text}")
        return Value(name, aval)

    def ending(self, op: str, operands: str, end: str, out: ShapedArray) -> Value:
        """``op`` on `operands` (names) in a short form. `end` contains no names, so that callers can cache it."""
        name = self.fresh()
        self.lines.append(f"{self.indent}{name} = {op} {operands}{end}")
        return Value(name, out)

    def op(
        self,
        op: str,
        operands: Sequence[Value],
        out: ShapedArray | Sequence[ShapedArray],
        attributes: str = "",
        regions: Iterable[str] = (),
        marks: str = "",
    ) -> Any:
        """``op`` in generic form; returns a value if `out` is one type, a list if it is a sequence.

        `attributes` are those of the operation, `marks` are attributes of other dialects.
        """
        many = not isinstance(out, ShapedArray)
        outs: Sequence[ShapedArray] = out if many else [out]  # type: ignore[assignment, list-item]
        name = self.fresh()
        properties = f" <{{{attributes}}}>" if attributes else ""
        bodies = f" ({', '.join(regions)})" if regions else ""
        marked = f" {{{marks}}}" if marks else ""
        left = name if len(outs) == 1 else f"{name}:{len(outs)}"
        result = outs[0].text if len(outs) == 1 else "(" + ", ".join([a.text for a in outs]) + ")"
        self.line(
            f'{left + " = " if outs else ""}"{op}"({", ".join([x.name for x in operands])}){properties}{bodies}{marked}'
            f" : ({', '.join([x.aval.text for x in operands])}) -> {result}"
        )
        # A result that is alone is a value, so that rules need not unpack it.
        if not many:
            return Value(name, outs[0])
        return [Value(f"{name}#{i}" if len(outs) > 1 else name, aval) for i, aval in enumerate(outs)]

    def barrier(self, operands: Sequence[Value]) -> list[Value]:
        """The operands behind an optimization barrier, which the compiler does not optimize across."""
        name = self.fresh()
        many = len(operands) > 1
        left, types = f"{name}:{len(operands)}" if many else name, ", ".join([x.aval.text for x in operands])
        self.line(f"{left} = stablehlo.optimization_barrier {', '.join([x.name for x in operands])} : {types}")
        return [Value(f"{name}#{i}" if many else name, x.aval) for i, x in enumerate(operands)]

    def constrain(self, x: Value, sharding: str) -> Value:
        """`x` with this sharding, in Shardy's syntax."""
        operand = x.name  # before `fresh`: reading the name of a `Number` may add its line
        name = self.fresh()
        self.line(f"{name} = sdy.sharding_constraint {operand} <{sharding}> : {x.aval.text}")
        return Value(name, x.aval)

    def call(
        self, symbol: str, operands: Sequence[Value], outs: Sequence[ShapedArray], attributes: str = ""
    ) -> list[Value]:
        """A call of another function of the module."""
        return self.typed(f"func.call @{symbol}({', '.join([x.name for x in operands])}){attributes}", operands, outs)

    def typed(self, text: str, operands: Sequence[Value], outs: Sequence[ShapedArray]) -> list[Value]:
        """An operation written as `text`; its results and types are added."""
        name = self.fresh()
        left = f"{name} = " if len(outs) == 1 else f"{name}:{len(outs)} = " if outs else ""
        result = outs[0].text if len(outs) == 1 else "(" + ", ".join([a.text for a in outs]) + ")"
        self.line(f"{left}{text} : ({', '.join([x.aval.text for x in operands])}) -> {result}")
        return [Value(f"{name}#{i}" if len(outs) > 1 else name, aval) for i, aval in enumerate(outs)]

    def function(self, name: str, in_avals: Sequence[ShapedArray], body: Callable[..., Sequence[Value]]) -> str:
        """The symbol of a new private function of the module, which `body(g, *arguments)` fills."""
        symbol = self.module.fresh_name(name)
        # With a counter of its own: functions of a module do not see each other's values.
        inner = Function(self.module)
        arguments = [Value(f"%arg{i}", aval) for i, aval in enumerate(in_avals)]
        results = body(inner, *arguments)
        head = ", ".join(f"{x}: {x.aval.text}" for x in arguments)
        types = ", ".join(x.aval.text for x in results)
        last = f"    return {', '.join(map(str, results))} : {types}"
        whole = types if len(results) == 1 else f"({types})"
        lines = [f"  func.func private @{symbol}({head}) -> {whole} {{", *inner.lines, last, "  }"]
        self.module.functions.append("\n".join(lines))
        return symbol

    def order(self) -> Value:
        """The token for the next operation with an ordered effect."""
        # The first ordered operation of a function makes the token.
        return self.token or self.op("stablehlo.create_token", [], [TOKEN])[0]

    # -- operations that many rules use

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """A constant of type `aval`: all elements are the number `value`, or are those of the array `value`."""
        name = self.fresh()
        self.lines.append(f"{self.indent}{name} = stablehlo.constant {dense(value, aval)} : {aval.text}")
        return Value(name, aval)

    def number(self, value: Any, aval: ShapedArray) -> Value:
        """A constant whose elements are all `value`; equal ones share one line in this function."""
        # Arrays with axes are not shared: comparing their elements would cost more than a second constant.
        if type(value) is np.ndarray:
            if value.ndim:
                return self.constant(value, aval)
            value = value[()]
        # By repr for what may contain a zero: 0.0 == -0.0, but they are different constants.
        exact = value if value and dtypes.kind(aval.dtype) != "c" else repr(value)
        key = (exact, type(value), aval)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = Number(self, value, aval)
        return number

    def broadcast(self, x: Value, shape: tuple[int, ...], dims: Sequence[int] = ()) -> Value:
        """`x` with its axes at positions `dims` of `shape`, repeated along the others."""
        if x.aval.shape == shape:
            return x
        if type(x) is Number:
            # A number stays a number in the new shape, which rules may look at, and the text has no broadcast.
            return self.number(x.value, shaped(shape, x.aval.dtype))
        aval = shaped(shape, x.aval.dtype)
        return self.ending("stablehlo.broadcast_in_dim", x.name, _broadcast_end(tuple(dims), x.aval, aval), aval)

    def convert(self, x: Value, dtype: Any) -> Value:
        """`x` with another element type."""
        if x.aval.dtype == dtype:
            return x
        return self.unlike("stablehlo.convert", x, shaped(x.aval.shape, dtype))

    def unlike(self, op: str, x: Value, out: ShapedArray, extra: str = "") -> Value:
        """``op`` on one operand, with a result of type `out`."""
        return self.ending(op, x.name, f"{extra} : ({x.aval.text}) -> {out.text}", out)

    def slice_in_dim(self, x: Value, start: int, limit: int, axis: int) -> Value:
        """``x[start:limit]`` along `axis`."""
        lows, highs = [0] * x.aval.ndim, list(x.aval.shape)
        lows[axis], highs[axis] = start, limit
        out = shaped(tuple(high - low for low, high in zip(lows, highs, strict=True)), x.aval.dtype)
        bounds = f"start_indices = {i64_array(lows)}, limit_indices = {i64_array(highs)}"
        return self.op("stablehlo.slice", [x], out, f"{bounds}, strides = {i64_array([1] * x.aval.ndim)}")

    def compare(self, direction: str, x: Value, y: Value, total: bool = False) -> Value:
        """``x <direction> y`` elementwise: EQ, NE, LT, LE, GT or GE."""
        letter = dtypes.kind(x.aval.dtype)
        # Comparing floats by total order puts -0 before 0 and nan last, as sorting does.
        how = {"f": "TOTALORDER" if total else "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(letter, "UNSIGNED")
        name = self.fresh()
        out = shaped(x.aval.shape, dtypes.bool_)
        self.line(
            f"{name} = stablehlo.compare {direction}, {x.name}, {y.name}, {how}"
            f" : ({x.aval.text}, {y.aval.text}) -> {out.text}"
        )
        return Value(name, out)

    def select(self, which: Value, yes: Value, no: Value) -> Value:
        """`yes` where `which`, else `no`; `which` has no axes, or the shape of `yes` and `no`."""
        name = self.fresh()
        names = f"{which.name}, {yes.name}, {no.name}"
        self.line(f"{name} = stablehlo.select {names} : {which.aval.text}, {yes.aval.text}")
        return Value(name, yes.aval)

    def region(
        self,
        in_avals: Sequence[ShapedArray],
        body: Callable[..., Sequence[Value]],
        end: str = "stablehlo.return",
        names: tuple[str, ...] = (),
    ) -> str:
        """The text of a region whose block takes `in_avals`; `body(g, *arguments)` fills it and returns results.

        `names` are added to the name scopes of the lines inside.
        """
        label = self.label_inside(*names) if names else self.label
        # The counter is shared with the region: names in MLIR are visible in inner regions, and must not repeat.
        inner = Function(self.module, self.axes, self.counter, self.indent + "  ", label, self.auto)
        arguments = [Value(inner.fresh(), aval) for aval in in_avals]
        results = body(inner, *arguments)
        head = ", ".join(f"{x}: {x.aval.text}" for x in arguments)
        types = ", ".join(x.aval.text for x in results)
        last = f"{inner.indent}{end}" + (f" {', '.join(map(str, results))} : {types}" if results else "")
        block = f"{self.indent}^bb0({head}):\n" if arguments else ""
        return "{\n" + block + "\n".join([*inner.lines, last]) + f"\n{self.indent}}}"


@functools.lru_cache(4096)
def _broadcast_end(dims: tuple[int, ...], x: ShapedArray, out: ShapedArray) -> str:
    return f", dims = {ints(dims)} : ({x.text}) -> {out.text}"


def ints(values: Iterable[int]) -> str:
    """``[1, 2]``"""
    # `index` refuses floats, which would be written as ``2.0`` and not parse.
    return f"[{', '.join([str(index(value)) for value in values])}]"


def i64_array(values: Iterable[int]) -> str:
    """``array<i64: 1, 2>``, an attribute"""
    listed = ", ".join([str(index(value)) for value in values])
    return f"array<i64: {listed}>" if listed else "array<i64>"


def flag(value: bool) -> str:
    """``true`` or ``false``"""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"a flag must be True or False, not {value!r}")
    return "true" if value else "false"


#: what a string of MLIR writes in another way: quotes, backslashes and control characters, such as line breaks
_ESCAPES = {code: f"\\{code:02X}" for code in range(32)} | {ord(c): "\\" + c for c in '"\\'}


def quoted(text: str) -> str:
    """`text` as an MLIR string."""
    return f'"{text.translate(_ESCAPES)}"'


def symbol_text(name: str) -> str:
    """`name` as it is written after ``@``: in quotes, unless it consists of letters and digits of ASCII, _ and dots."""
    plain = name.replace("_", "a").replace(".", "a")
    return name if plain.isascii() and plain.isalnum() and not name[0].isdigit() else quoted(name)


def axis_text(axis: Any) -> str:
    """The name of a mesh axis as an MLIR string."""
    # Shardy reads names back from a text of its own. At other characters, and backslashes, it ends the process.
    return quoted(re.sub(r"[^ \w.-]", lambda match: f"_{ord(match[0]):x}", str(axis), flags=re.ASCII))


def dense(value: Any, aval: ShapedArray) -> str:
    """The elements of a constant of this type, as an MLIR attribute."""
    array = np.asarray(value, aval.dtype)
    if array.ndim == 0:
        # One element stands for all: MLIR calls it a splat.
        return f"dense<{number(array[()], aval.dtype)}>"
    if array.size == 0:
        return "dense<>"
    letter = dtypes.kind(aval.dtype)
    if letter == "b" or dtypes.bits(aval.dtype) < 8:
        return f"dense<{_nested(array.tolist(), aval.dtype)}>"
    # Raw bytes in hexadecimal: shorter and exact. MLIR has no such form for bools and elements below a byte.
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}">'


def _nested(value: Any, dtype: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_nested(item, dtype) for item in value)}]"
    return number(value, dtype)


def number(value: Any, dtype: Any) -> str:
    """One element in MLIR's syntax; finite floats in the shortest decimal form that reads back exactly."""
    letter = dtypes.kind(dtype)
    if letter == "b":
        return "true" if value else "false"
    if letter in "iu":
        return str(int(value))
    if letter == "c":
        part = dtypes.real_part(dtype)
        return f"({number(value.real, part)}, {number(value.imag, part)})"
    real = float(value)
    if not np.isfinite(real):
        # MLIR has no words for inf and nan: the bits, most significant byte first.
        return "0x" + np.asarray(value, dtype).tobytes()[::-1].hex().upper()
    text = repr(real)
    if "e" in text and "." not in text:
        # ``1e-05`` is no float in MLIR, which demands a point.
        text = text.replace("e", ".0e")
    return text
