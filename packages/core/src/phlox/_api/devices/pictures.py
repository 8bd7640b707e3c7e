"""`debug.inspect_array_sharding`, and pictures of shardings in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base import pytree
from ..._base.errors import ShapeError
from ..._ops.host.inspect_sharding import inspect_sharding
from ..._trace.trace import typeof
from ..._xla.sharding import Sharding

# Neighbours in this list differ clearly, and dark text is readable on all of them.
_COLORS = ("#8dd3c7", "#fdb462", "#bebada", "#b3de69", "#fb8072", "#80b1d3", "#fccde5", "#d9d9d9")


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls `callback` with the sharding of each array of a tree.

    Inside of a jitted function it is called once, while the function is lowered or compiled.

    Args:
      value: a tree of arrays.
      callback: function of one `Sharding`.

    >>> phlox.debug.inspect_array_sharding(jnp.ones(3), callback=lambda s: print(type(s).__name__))
    SingleDeviceSharding
    """
    for x in pytree.tree_leaves(value):
        inspect_sharding.bind(x, callback=callback)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Draws in the terminal which device holds which part of an array. It needs the package rich.

    Args:
      arr: an array with one or two axes, which may be traced.
      **kwargs: options of `visualize_sharding`.

    Raises:
      ShapeError: `arr` has another number of axes, or no elements.

    >>> phlox.debug.visualize_array_sharding(jnp.ones(4), use_color=False)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = typeof(arr).shape
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[float], Any] | None = None,
) -> None:
    """Draws in the terminal which device holds which part of an array of this shape. It needs the package rich.

    Args:
      shape: a shape with one or two axes.
      sharding: the sharding of the array.
      use_color: colour the parts, if the terminal supports it.
      scale: size of the picture; at 1 the first axis takes about ten lines.
      min_width, max_width: bounds of the width of a part and of the picture, in characters.
      color_map: function from [0, 1] to (red, green, blue), each in [0, 1], such as matplotlib's; None for the default.

    Raises:
      ShapeError: `shape` has another number of axes, or an axis of length 0.

    >>> phlox.debug.visualize_sharding((4,), jnp.ones(4).sharding, use_color=False)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = tuple(shape)
    if len(shape) not in (1, 2) or 0 in shape:
        what = "arrays with elements and one or two axes"
        raise ShapeError(f"visualize_sharding draws {what}, got shape {shape}", shapes=[shape])
    import rich.align
    import rich.box
    import rich.console
    import rich.padding
    import rich.table

    console = rich.console.Console(width=max_width)
    colored = use_color and console.color_system is not None
    parts: dict[tuple[int, ...], list[str]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        # The first index of a part along each axis tells parts apart; devices with the same part share a field.
        corner = tuple(s.indices(n)[0] for s, n in zip(index, shape, strict=True))
        parts.setdefault(corner, []).append(str(device.id))
        kind = device.platform.upper()
    rows = sorted({c[0] for c in parts}) if len(shape) == 2 else [0]
    columns = sorted({c[-1] for c in parts})
    part = sharding.shard_shape(shape)
    whole = int(10 * scale)
    height = int(whole * part[0] / shape[0]) if len(shape) == 2 else 1
    # A character is about two and a half times as high as it is wide.
    wide = int(whole * (shape[1] if len(shape) == 2 else 1) / shape[0])
    width = min(max(int(wide * part[-1] / shape[-1] * 2.5), min_width), max_width)
    table = rich.table.Table(
        show_header=False, show_lines=not colored, padding=0, pad_edge=False, box=None if colored else rich.box.SQUARE
    )
    for i, row in enumerate(rows):
        cells = []
        for j, column in enumerate(columns):
            holders = parts[(row, column) if len(shape) == 2 else (column,)]
            text = f"{kind} {','.join(sorted(holders, key=int))}"
            around = [*_halves(height - 2), *_halves(width - len(text) - 2)]  # above, below, left and right
            above, below, left, right = (max(0, n + 1 if colored else n) for n in around)
            style = _style(i * len(columns) + j, len(parts), color_map) if colored else ""
            centered = rich.align.Align(text, "center", vertical="middle")
            cells.append(rich.padding.Padding(centered, (above, right, below, left), style=style))
        table.add_row(*cells)
    console.print(table)


def _halves(number: int) -> tuple[int, int]:
    return number // 2, number - number // 2


def _style(number: int, count: int, color_map: Callable[[float], Any] | None) -> str:
    if color_map is None:
        return f"black on {_COLORS[number % len(_COLORS)]}"
    red, green, blue = (int(255 * part) for part in color_map(number / max(1, count - 1))[:3])
    # The usual weights of colours for brightness: green counts most.
    light = 0.299 * red + 0.587 * green + 0.114 * blue > 150
    return f"{'black' if light else 'white'} on #{red:02x}{green:02x}{blue:02x}"
