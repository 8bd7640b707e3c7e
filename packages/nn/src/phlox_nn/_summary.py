"""`summary`: a table of a model's layers with paths, shapes, numbers of parameters and FLOPs, by abstract tracing."""

from __future__ import annotations

import dataclasses
import html
import io
import math
from collections.abc import Iterator
from typing import Any

import phlox
import phlox.numpy as jnp
from phlox.extend import core

from . import _paths
from ._binding import short_code
from ._layer import Layer
from ._paths import Path

_HEAD = ("path", "layer", "output", "parameters", "bytes", "FLOPs")


@dataclasses.dataclass(frozen=True)
class Row:
    """A layer in a `Summary`. Numbers include its parts; FLOPs of blocks in a `Stack` are those of one block."""

    path: str
    layer: str
    output: str
    parameters: int
    bytes: int
    flops: float | None


@dataclasses.dataclass(frozen=True)
class Summary:
    """The result of `summary`: `rows`, of which the first is the model. Printed, and in notebooks, it is a table."""

    rows: tuple[Row, ...]

    @property
    def parameters(self) -> int:
        """The number of elements of all parameters."""
        return self.rows[0].parameters

    @property
    def bytes(self) -> int:
        """The size of all parameters in bytes."""
        return self.rows[0].bytes

    @property
    def flops(self) -> float | None:
        """Floating-point operations of one call, by XLA's cost analysis."""
        return self.rows[0].flops

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in (*self.rows[1:], self.rows[0]):
            flops = "" if row.flops is None else f"{row.flops:,.0f}"
            yield row.path or "total", row.layer, row.output, f"{row.parameters:,}", f"{row.bytes:,}", flops

    def __str__(self) -> str:
        lines = [_HEAD, *self._cells()]
        widths = [max(len(line[n]) for line in lines) for n in range(len(_HEAD))]
        pad = [str.ljust] * 3 + [str.rjust] * 3
        return "\n".join(
            "  ".join(f(cell, w) for f, cell, w in zip(pad, line, widths, strict=True)).rstrip() for line in lines
        )

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(*_HEAD[:3])
        for name in _HEAD[3:]:
            table.add_column(name, justify="right")
        *body, total = self._cells()
        for line in body:
            table.add_row(*line)
        table.add_section()
        table.add_row(*total, style="bold")
        return table

    def _repr_html_(self) -> str:
        def row(tag: str, cells: tuple[str, ...]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        return "<table>" + row("th", _HEAD) + "".join(row("td", line) for line in self._cells()) + "</table>"

    def show(self) -> None:
        """Prints the table, with rich if it is installed (``phlox-nn[rich]``), else as plain text."""
        try:
            from rich.console import Console
        except ImportError:
            print(self)
        else:
            text = io.StringIO()
            console = Console()
            Console(file=text, force_terminal=console.is_terminal, width=max(console.width, 40)).print(self)
            print(text.getvalue(), end="")


def summary(
    model: Layer,
    *args: Any,
    state: Any = None,
    key: Any = None,
    train: bool = False,
    dtype: Any = None,
    method: str = "__call__",
    **kwargs: Any,
) -> Summary:
    """The layers of a model and their sizes, for these inputs. Nothing is computed: the model is traced with types.

    Args:
      model: a layer.
      args, kwargs: inputs of the model, arrays or ``phlox.ShapeDtypeStruct``.
      state: by default that of ``init_state()``; needed where it depends on the number of examples.
      key: not needed; layers that draw numbers get one.
      train, dtype, method: as for `Layer.apply`.

    Returns:
      A `Summary` with a row for each layer that was called: path, code, types of the output, number and bytes of
      parameters, and floating-point operations by XLA's cost analysis, before it optimises. A layer counts its parts.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> summary(nn.Sequential(nn.Linear(4, 8), nn.relu), phlox.ShapeDtypeStruct((2, 4), "float32"))
    path   layer                           output    parameters  bytes  FLOPs
    0      Linear(4, 8)                    f32[2,8]          40    160    144
    total  Sequential(Linear(4, 8), relu)  f32[2,8]          40    160    160
    """
    params = phlox.eval_shape(model.init, _KEY)
    state = phlox.eval_shape(model.init_state) if state is None else state
    options = {"train": train, "dtype": dtype}
    rows: dict[Path, Row] = {}
    costs: dict[Any, float] = {}

    def record(path: Path, bound: Layer, inputs: Any, out: Any, method: str = "__call__") -> None:
        if path in rows:
            return
        layer, around = _part(model, path)
        own = phlox.tree.leaves(_paths.get(params, path))
        numbers = sum(math.prod(x.shape) for x in own)
        size = sum(math.prod(x.shape) * jnp.dtype(x.dtype).itemsize for x in own)
        arrays = phlox.tree.map(_typed, inputs)
        leaves, tree = phlox.tree.flatten(arrays)
        seen = (layer, method, tree, tuple((x.shape, str(x.dtype)) if hasattr(x, "dtype") else repr(x) for x in leaves))
        if seen not in costs:
            inside = [phlox.tree.map(lambda x: _without(x, around), _paths.get(tree, path)) for tree in (params, state)]
            costs[seen] = _flops(layer, method, inside, arrays, options)
        rows[path] = Row(_paths.text(path), short_code(layer), _types(out), numbers, size, costs[seen])

    def run(params: Any, state: Any, key: Any, args: Any, kwargs: Any) -> Any:
        bound = model.bind(params, state=state, key=key, **options)
        bound._bound_by.watch = record
        args, (kwargs,) = bound.cast(*args), bound.cast(kwargs)
        out = getattr(bound, method)(*args, **kwargs)
        record((), bound, (args, kwargs), out, method)
        return out

    _abstractly(run, (params, state, _KEY, args, kwargs))
    return Summary(tuple(rows[path] for path in sorted(rows, key=lambda path: path != ())))


_KEY = phlox.ShapeDtypeStruct((2,), jnp.uint32)


def _typed(x: Any) -> Any:
    """The type of an array; everything else unchanged."""
    return phlox.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "dtype") else x


def _abstractly(function: Any, inputs: Any) -> Any:
    """Traces a function; inputs that are not arrays are passed unchanged."""
    leaves, tree = phlox.tree.flatten(phlox.tree.map(_typed, inputs))
    positions = [n for n, x in enumerate(leaves) if isinstance(x, phlox.ShapeDtypeStruct)]

    def staged(*arrays: Any) -> Any:
        whole = list(leaves)
        for n, x in zip(positions, arrays, strict=True):
            whole[n] = x
        return function(*phlox.tree.unflatten(tree, whole))

    return phlox.make_jaxpr(staged)(*(leaves[n] for n in positions))


def _part(layer: Layer, path: Path) -> tuple[Layer, int]:
    """The layer at a path of a model, and the number of leading axes that enclosing layers add to its parameters."""
    around = 0
    while path:
        below, inner = next((below, inner) for below, inner in layer._plan().parts if path[: len(below)] == below)
        around += len(layer._copies)
        layer, path = inner, path[len(below) :]
    return layer, around


def _without(x: Any, axes: int) -> Any:
    return phlox.ShapeDtypeStruct(jnp.shape(x)[axes:], jnp.result_type(x))


def _flops(layer: Layer, method: str, arrays: Any, inputs: Any, options: Any) -> float:
    """Floating-point operations of a call of a layer."""

    def run(params: Any, state: Any, key: Any, inputs: Any) -> Any:
        return layer.apply(params, *inputs[0], state=state, key=key, method=method, **options, **inputs[1])

    return _of_program(_abstractly(run, (*arrays, _KEY, inputs)))


def _of_program(program: Any) -> float:
    """XLA's count, which counts the body of a loop once, corrected for the number of steps of scans."""
    types = [phlox.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in program.in_avals]
    counted = phlox.jit(core.jaxpr_as_fun(program)).lower(*types).cost_analysis().get("flops", 0.0)
    return counted + _repeated(program.jaxpr)


def _repeated(jaxpr: Any) -> float:
    """Operations of the steps of scans after the first, which XLA does not count."""
    total = 0.0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "scan":
            length, unroll = eqn.params["length"], eqn.params["unroll"]
            body = eqn.params["jaxpr"]
            counted = unroll + length % unroll if length >= 2 * unroll else length
            once = _of_program(body)
            total += (length - counted) * once + counted * _repeated(body.jaxpr)
        else:
            total += sum(_repeated(inner) for inner in core.jaxprs_in_params(eqn.params))
    return total


def _types(out: Any) -> str:
    """The types of a layer's results, as text."""
    kinds = phlox.tree.map(lambda x: phlox.typeof(x).short if hasattr(x, "dtype") else repr(x), out)
    return str(kinds).replace("'", "")
