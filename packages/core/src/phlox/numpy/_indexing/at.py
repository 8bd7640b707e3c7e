"""``x.at[index].set(y)`` and the other methods of ``x.at[index]``: new arrays with some elements changed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import numpy as np

from ..._api.devices.out_sharding import OutSharding, compute_with_sharding, lay_out, operands_for
from ..._api.jit.bodies import program_of_element
from ..._api.jit.jit import jit
from ..._base.errors import ArgumentError, DtypeError, NonConcreteBooleanIndexError, OptionError
from ..._base.source import warn
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, typeof_value
from ..._ir.promotion import promote
from ..._operands.checks import becomes_array, check, check_one, type_of, warn_of_lost_parts
from ..._operands.index_bounds import READ, WRITE
from ..._operands.promotion import common_dtype, to_dtype
from ..._ops.elementwise import arithmetic as e
from ..._ops.structure import scatter as ops
from ..._ops.structure.dimension_numbers import GatherScatterMode, ScatterDimensionNumbers
from ..._ops.structure.numbers import large_integer
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike
from .._creation.from_data import asarray
from .._elementwise.choose import where
from .._manipulation.broadcasting import broadcast_to
from .._manipulation.shapes import reshape
from .ds import Slice, is_window, window
from .plan import Plan, parse
from .reading import How, layout_of, read

if TYPE_CHECKING:
    from .plan import Index

_SCATTERS = {
    "set": ops.scatter,
    "add": ops.scatter_add,
    "subtract": ops.scatter_add,
    "multiply": ops.scatter_mul,
    "min": ops.scatter_min,
    "max": ops.scatter_max,
}


_ENTRIES = """\
Args:
  values: array, number or list that broadcasts to the shape of ``x[index]``.
  indices_are_sorted, unique_indices: promises that the index arrays are in ascending order and that no index occurs
    twice, which allow faster code.
  mode: treatment of out-of-bounds indices: 'drop', the default, skips their updates, 'clip' moves them to the nearest
    element; 'promise_in_bounds' promises that there are none.
  out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result.
  wrap_negative_indices: False treats negative indices as out of bounds; by default they count from the end.
"""


class Update(Protocol):
    """A method of ``x.at[index]`` that returns the array with changed elements."""

    def __call__(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...


def _update(kind: str, what: str, example: str, result: str) -> Update:
    """Makes a method of `AtIndex` that changes elements; all have the same arguments."""

    def write(
        self: AtIndex,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        how = How(indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        x, index, values = operands_for(out_sharding, self.array, self.index, values)
        return lay_out(f"at.{kind}", AtIndex(x, index)._write(kind, values, how), out_sharding)

    write.__name__, write.__qualname__ = kind, f"AtIndex.{kind}"
    write.__doc__ = (
        f"{what}\n\n{_ENTRIES}\nReturns:\n  An array of the shape and dtype of `x`.\n\n>>> {example}\n{result}\n"
    )
    return cast(Update, write)


class At:
    """``x.at``: index it to get the methods that change elements, as in ``x.at[0].set(1.0)``."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Index) -> AtIndex:
        return AtIndex(self.array, index)

    def __setitem__(self, index: Index, value: Any) -> NoReturn:
        raise ArgumentError("x.at[index] = value changes nothing in place", instead="x = x.at[index].set(value)")

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class AtIndex:
    """``x.at[index]``. Each method returns a new array; `x` stays as it is.

    >>> jnp.zeros(3).at[jnp.array([1, 9])].set(5.0)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array = array
        self.index = index

    def __iadd__(self, value: Any) -> NoReturn:
        raise ArgumentError("x.at[index] += value changes nothing in place", instead="x = x.at[index].add(value)")

    def __repr__(self) -> str:
        return f"AtIndex({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
        strategy: str = "auto",
    ) -> Array:
        """The elements at the index, as ``x[index]``, with a choice of `mode`.

        Args:
          indices_are_sorted, unique_indices: promises that the index arrays are in ascending order and that no index
            occurs twice, which allow faster code.
          mode: treatment of out-of-bounds indices: 'fill' (or 'drop') returns `fill_value`, 'clip' takes the nearest
            element, 'one_hot' returns zero; 'promise_in_bounds', the default, promises that there are none.
          fill_value: value returned for out-of-bounds indices with mode 'fill'; None is nan for floats, the smallest
            value of signed and the largest of unsigned integers, or True.
          out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, for the result.
          wrap_negative_indices: False treats negative indices as out of bounds; by default they count from the end.
          strategy: "static_slice" and "dynamic_slice" refuse indices that no such operation can read. The operation is
            chosen by the index, as with "auto" (default) and "gather".

        Returns:
          An array of the shape of ``x[index]``, of the dtype of `x`.

        Raises:
          ArgumentError: the index does not suit the `strategy`.

        >>> jnp.arange(3).at[jnp.array([1, 9])].get(mode="fill", fill_value=-1)
        Array([ 1, -1], dtype=int32)
        """
        x, index, how = self.array, self.index, How(indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if strategy != "auto":
            _check_strategy(strategy, index)
        if out_sharding is not None:
            options: dict[str, Any] = {"how": how, "fill_value": fill_value}
            combines = "sum" if hasattr(index, "dtype") else None
            return compute_with_sharding("at.get", _get, (x, index), out_sharding, combines, **options)
        return _get(x, index, how, fill_value)

    set = _update(
        "set",
        "The array with the elements at the index replaced by `values`. A boolean mask works under `jit` too.",
        "jnp.zeros(3).at[1].set(5.0)",
        "Array([0., 5., 0.], dtype=float32)",
    )

    add = _update(
        "add",
        "The array with `values` added to the elements at the index, as often as an index occurs.",
        "jnp.zeros(2).at[jnp.array([0, 0])].add(1.0)",
        "Array([2., 0.], dtype=float32)",
    )

    subtract = _update(
        "subtract",
        "The array with `values` subtracted from the elements at the index.",
        "jnp.zeros(2).at[0].subtract(1.0)",
        "Array([-1.,  0.], dtype=float32)",
    )

    multiply = _update(
        "multiply",
        "The array with the elements at the index multiplied by `values`.",
        "jnp.ones(2).at[0].multiply(3.0)",
        "Array([3., 1.], dtype=float32)",
    )

    mul = multiply

    divide = _update(
        "divide",
        "The array with the elements at the index divided by `values`.",
        "jnp.ones(2).at[0].divide(2.0)",
        "Array([0.5, 1. ], dtype=float32)",
    )

    power = _update(
        "power",
        "The array with the elements at the index raised to the power `values`.",
        "jnp.array([2.0, 3.0]).at[0].power(2.0)",
        "Array([4., 3.], dtype=float32)",
    )

    min = _update(
        "min",
        "The array with the elements at the index replaced by their minimum with `values`.",
        "jnp.array([1.0, 5.0]).at[1].min(3.0)",
        "Array([1., 3.], dtype=float32)",
    )

    max = _update(
        "max",
        "The array with the elements at the index replaced by their maximum with `values`.",
        "jnp.array([1.0, 5.0]).at[0].max(3.0)",
        "Array([3., 5.], dtype=float32)",
    )

    def apply(
        self,
        func: Callable[[Array], ArrayLike],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `func` applied to the elements at the index, as often as an index occurs.

        With index arrays it has no derivative, unless `unique_indices` promises that no index occurs twice.

        Args:
          func: function of an array of shape () that returns such an array of the same dtype. Where no index can occur
            twice, it is called with all elements at once, and must work elementwise.
          indices_are_sorted, unique_indices: promises that the index arrays are in ascending order and that no index
            occurs twice, which allow faster code.
          mode: treatment of out-of-bounds indices: 'drop', the default, skips their updates, 'clip' moves them to the
            nearest element; 'promise_in_bounds' promises that there are none.
          wrap_negative_indices: False treats negative indices as out of bounds; by default they count from the end.

        Returns:
          An array of the shape and dtype of `x`.

        Raises:
          DtypeError: `func` returns an array with axes or of another dtype.
          UnsupportedError: `func` uses arrays that are not its argument.

        >>> jnp.array([1.0, 4.0]).at[1].apply(jnp.sqrt)
        Array([1., 2.], dtype=float32)
        >>> jnp.array([1.0, 2.0]).at[jnp.array([1, 1])].apply(lambda x: x * 10)
        Array([  1., 200.], dtype=float32)
        """
        how = How(indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        if not unique_indices and not is_window(self.index):
            access = WRITE if mode is None else None
            plan, dynamic = parse(self.index, type_of(self.array).shape, wrap_negative_indices, access)
            if "array" in plan.items:
                return _apply(self.array, dynamic, func, plan, how)
        # No index can occur twice here, so `func` gets all elements at once and runs once.
        return self._write("set", func(_get(self.array, self.index, how, None)), how)

    def _write(self, kind: str, values: Any, how: How) -> Any:
        if kind in ("divide", "power"):  # by an array of ones, multiplied by `values` at the (repeated) indices
            aval = type_of(self.array)
            ones = broadcast_to(to_dtype(1, aval.dtype, aval.weak_type), aval.shape)
            other = AtIndex(ones, self.index)._write("multiply", values, how)
            return self.array / other if kind == "divide" else self.array**other
        if not becomes_array(values) and typeof_value(values) is None:
            values = asarray(values)  # lists are allowed
        values = large_integer(values, type_of(self.array).dtype)
        x, y = check(f"at.{kind}", self.array, values)
        if is_window(self.index):
            part = window(self.index, type_of(x).shape)
            changed = AtIndex(part.read(x), part.rest)
            clip = GatherScatterMode.from_any(how.mode) is GatherScatterMode.CLIP
            return part.write(x, changed._write(kind, y, how), clip)
        _warn_of_loss(kind, type_of(x), type_of(y))
        mask = self.index
        # The positions in a traced mask are not known, but writing one value needs none.
        if isinstance(mask, Tracer) and mask.aval.dtype == dtypes.bool_ and kind == "set":
            return _set_where(x, mask, y)
        plan, dynamic = parse(self.index, type_of(x).shape, how.wraps, WRITE if how.mode is None else None)
        if "array" not in plan.items and "mask" not in plan.items:
            how = How(True, True, how.mode)  # integers and slices select one region, and each position of it once
        return _scatter(x, dynamic, y, kind=kind, plan=plan, how=how)


def _warn_of_loss(kind: str, x: ShapedArray, y: ShapedArray) -> None:
    """Warns, in words for which programs filter, where an array of type `x` does not hold elements of type `y`."""
    if x.dtype != y.dtype and promote(((x.dtype, False), (y.dtype, y.weak_type)))[0] != x.dtype:
        warn(
            f"scatter inputs have incompatible types: cannot safely cast value from dtype={y.dtype} to dtype={x.dtype}"
            f": x.at[...].{kind}(y) converts y; instead: y.astype(x.dtype), or an x of the dtype of y",
            FutureWarning,
        )
        warn_of_lost_parts(y.dtype, x.dtype)


def _check_strategy(strategy: str, index: Any) -> None:
    """Raises unless a strategy of `AtIndex.get` can read all parts of an index."""
    if strategy not in ("auto", "gather", "static_slice", "dynamic_slice"):
        raise OptionError(
            f"at.get: unknown indexing strategy {strategy!r}",
            instead="'auto', 'gather', 'static_slice' or 'dynamic_slice'",
        )
    for i, part in enumerate(index if isinstance(index, tuple) else (index,)):
        if part is None or part is Ellipsis or isinstance(part, Slice) or strategy == "gather":
            continue
        if isinstance(part, slice):
            suits = strategy == "static_slice" or part.step in (None, 1, -1)
            kind = "slices of step 1 or -1"
        elif strategy == "static_slice":
            suits = isinstance(part, int | np.integer) and not isinstance(part, bool)
            kind = "static integers and slices"
        else:
            aval = typeof_value(part)
            suits = aval is not None and not aval.shape and dtypes.kind(aval.dtype) in "iu"
            kind = "integers and slices"
        if not suits:
            raise ArgumentError(
                f"at.get: strategy={strategy!r} reads {kind}, got {part!r:.60} at position {i}",
                instead="strategy='gather'",
            )


def _get(x: Any, index: Any, how: How, fill_value: Any) -> Any:
    if is_window(index):
        part = window(index, type_of(x).shape)
        x, index = part.read(x), part.rest
    # With a mode that says what happens out of bounds, an index there is no mistake.
    checked = how.mode is None or GatherScatterMode.from_any(how.mode) is GatherScatterMode.PROMISE_IN_BOUNDS
    plan, dynamic = parse(index, type_of(x).shape, how.wraps, READ if checked else None)
    return read(x, *dynamic, plan=plan, how=how, fill_value=fill_value)


def _apply(x: Any, dynamic: list[Any], func: Any, plan: Plan, how: How) -> Any:
    """``x.at[index].apply(func)``; repeated indices apply `func` repeatedly."""
    x = check_one("at.apply", x)
    aval = type_of(x)
    layout = layout_of(aval.shape, plan, dynamic)
    return ops.scatter_apply(
        x,
        layout.indices,
        broadcast_to(to_dtype(0, aval.dtype), layout.shape),
        func=program_of_element("at.apply", func, aval),
        dimension_numbers=ScatterDimensionNumbers(layout.window, layout.collapsed, layout.axes),
        indices_are_sorted=how.sorted,
        unique_indices=False,
        mode=GatherScatterMode.from_any(how.mode),
    )


def _set_where(x: Any, mask: Any, y: Any) -> Any:
    """``x.at[mask].set(y)`` for a traced mask, by `where`; `y` must not have an axis of the selected elements."""
    inner = type_of(x).ndim - mask.ndim
    if type_of(y).ndim > inner:
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {type_of(mask).str_short(False)}, which is traced. Then y of "
            f"x.at[mask].set(y) must fit one element of the mask, got {type_of(y).short}",
            instead="phlox.numpy.where(mask, y, x) with a y of the shape of x",
        )
    out = where(reshape(mask, (*mask.shape, *(1,) * inner)), y, x)
    return to_dtype(out, type_of(x).dtype, type_of(x).weak_type, warns=False)


@functools.partial(jit, inline=True, static_argnames=("kind", "plan", "how"))
def _scatter(x: Any, dynamic: list[Any], y: Any, *, kind: str, plan: Plan, how: How) -> Any:
    aval, update = type_of(x), type_of(y)
    # Computed in the promoted dtype and converted back, as in JAX: two additions of 0.5 add 1 to an integer.
    dtype, _ = common_dtype(x, y)
    if dtype == dtypes.bool_ and kind in ("add", "subtract", "multiply"):
        raise DtypeError(f"x.at[...].{kind}(y) does not accept {aval.short}", instead="x.astype(int)")
    layout = layout_of(aval.shape, plan, dynamic)
    y = to_dtype(y, dtype)
    y = e.neg(y) if kind == "subtract" else y
    # Updates have the shape of ``x[index]``, without new axes.
    lengths = iter(layout.shape)
    full = tuple(1 if kind == "new" else next(lengths) for kind in layout.kinds)
    if update.shape != layout.shape:
        y = reshape(broadcast_to(y, full), layout.shape)
    numbers = ScatterDimensionNumbers(layout.window, layout.collapsed, layout.axes)
    out = _SCATTERS[kind](
        to_dtype(x, dtype),
        layout.indices,
        y,
        dimension_numbers=numbers,
        indices_are_sorted=how.sorted,
        unique_indices=how.unique or 0 in layout.shape,  # without updates no index can occur twice
        mode=GatherScatterMode.from_any(how.mode),
    )
    return to_dtype(out, aval.dtype, aval.weak_type, warns=False)  # see `_warn_of_loss`
