"""Shardings in types: how an array is split over the explicit axes of a mesh, ``f32[8@x,4@y]``.

A type has a `Spec` only if the array is split along an explicit axis, or has `Reductions`. All other types, also those
of arrays that every device holds as a whole, have None there. So an operand without a spec gives way to one with a
spec, and programs without explicit meshes never come here.

The rule `sharding` of a primitive says how its results are split. It works with entries: for each axis of an array, the
tuple of the mesh axes that it is split over. This file has what many of these rules share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .._base.errors import ShapeError, ShardingTypeError
from .._base.interning import Interned

if TYPE_CHECKING:
    from .avals import ShapedArray

Entry = tuple[Any, ...]
Entries = tuple[Entry, ...]
_interned: Interned[Spec] = Interned()
_any = False


def entry_of(names: tuple[Any, ...]) -> Any:
    """The entry of a `PartitionSpec` for an axis that is split over the mesh axes of these names."""
    return names[0] if len(names) == 1 else names or None


class Reductions(NamedTuple):
    """The mesh axes over which an array, or its cotangent, is still to be reduced; printed as ``f32[4]{U:x}``.

    Attributes:
      unreduced: axes along which the array is the sum of what the devices hold.
      reduced: axes along which all devices hold the array, and its cotangent is `unreduced`.
      kind: "sum", or "max" or "min" if the array is the maximum or minimum instead; a name of `UnreducedKind`.
    """

    unreduced: frozenset[Any] = frozenset()
    reduced: frozenset[Any] = frozenset()
    kind: str = "sum"

    def cotangent(self) -> Reductions:
        """The reductions of cotangents."""
        return Reductions(self.reduced, self.unreduced)

    def texts(self, mesh: Any) -> list[str]:
        """The parts of a printed type, with axes in the order of the mesh: ``U:x``, ``R:(x,y)``."""
        letters = {"U" if self.kind == "sum" else f"U_{self.kind}": self.unreduced, "R": self.reduced}
        return [
            axes_text(letter, [n for n in mesh.axis_names if n in axes]) for letter, axes in letters.items() if axes
        ]


NO_REDUCTIONS = Reductions()


class Spec:
    """How an array is split over the explicit axes of a mesh. Equal specs are the same object; see `spec_over`.

    Attributes:
      mesh: the `AbstractMesh`.
      entries: for each axis of the array, the mesh axes that it is split over.
      reductions: the mesh axes over which the array or its cotangent is to be reduced.
    """

    __slots__ = ("__weakref__", "entries", "mesh", "reductions")

    mesh: Any
    entries: Entries
    reductions: Reductions

    def pieces(self, axis: int) -> int:
        """The number of parts into which this axis of the array is split."""
        sizes = self.mesh.shape
        return math.prod(sizes[name] for name in self.entries[axis])

    @property
    def partitions(self) -> tuple[Any, ...]:
        """The entries as those of a `PartitionSpec`."""
        return tuple(map(entry_of, self.entries))

    def __reduce__(self) -> Any:
        return spec_over, (self.mesh, self.entries, self.reductions)

    def __repr__(self) -> str:
        return f"Spec{self.partitions}{''.join(self.reductions.texts(self.mesh))}"


def spec_over(mesh: Any, entries: Iterable[Entry], reductions: Reductions = NO_REDUCTIONS) -> Spec | None:
    """The unique `Spec` of these entries and reductions; None if they split nothing and there are none."""
    entries = tuple(entries)
    if not any(entries) and reductions == NO_REDUCTIONS:
        return None
    key = (mesh, entries, reductions)
    cached = _interned.get(key)
    if cached is None:

        def make() -> Spec:
            global _any
            _any = True
            spec = object.__new__(Spec)
            spec.mesh, spec.entries, spec.reductions = key
            return spec

        cached = _interned.add(key, make)
    return cached


def any_specs() -> bool:
    """Whether some type has ever had a spec: without any, transformations need not compare those of cotangents and
    primals."""
    return _any


def axis_text(size: int, entry: Entry) -> str:
    """One axis of a printed type: ``8``, ``8@x`` or ``8@(x,y)``."""
    if not entry:
        return str(size)
    return f"{size}@{entry[0]}" if len(entry) == 1 else f"{size}@({','.join(map(str, entry))})"


def axes_text(letter: str, names: Sequence[Any]) -> str:
    """Mesh axes in a printed type: ``V:i`` or ``V:(i,j)``."""
    return f"{letter}:{names[0] if len(names) == 1 else '(' + ','.join(map(str, names)) + ')'}"


def mesh_text(aval: ShapedArray) -> str:
    """``{V:i}``, ``{V:(i,j)}`` or ``{V:i, U:j}``, as JAX prints it; nothing for values that do not vary and have no
    reductions."""
    if not aval.annotated:
        return ""
    parts = [axes_text("V", sorted(map(str, aval.vma)))] if aval.vma else []
    parts += aval.spec.reductions.texts(aval.spec.mesh) if aval.spec is not None else []
    return f"{{{', '.join(parts)}}}" if parts else ""


# --- what rules share -----------------------------------------------------------------------------------


def entries_of(aval: ShapedArray) -> Entries:
    """The entries of a type; empty ones for a type without a spec."""
    return aval.spec.entries if aval.spec is not None else ((),) * aval.ndim


def over(entry: Entry, axes: frozenset[Any]) -> Entry:
    """The part of an entry that splits over `axes`."""
    return tuple(name for name in entry if name in axes)


def reductions_of(aval: ShapedArray) -> Reductions:
    """The reductions of a type; empty ones for a type without a spec."""
    return aval.spec.reductions if aval.spec is not None else NO_REDUCTIONS


def manual_reductions(aval: ShapedArray) -> tuple[frozenset[Any], frozenset[Any]]:
    """The manual axes along which a type is unreduced, and those along which it is reduced, inside of `shard_map`."""
    if aval.spec is None:
        return frozenset(), frozenset()
    unreduced, reduced, _ = aval.spec.reductions
    return unreduced.intersection(aval.spec.mesh.manual_axes), reduced.intersection(aval.spec.mesh.manual_axes)


def without_manual(spec: Spec | None) -> Spec | None:
    """The spec without reductions over manual axes."""
    if spec is None or not (manual := spec.mesh.manual_axes):
        return spec
    unreduced, reduced, kind = spec.reductions
    return spec_over(
        spec.mesh, spec.entries, Reductions(unreduced.difference(manual), reduced.difference(manual), kind)
    )


def partial_axes(aval: ShapedArray) -> frozenset[Any]:
    """The explicit axes along which a type is unreduced."""
    return reductions_of(aval).unreduced - manual_reductions(aval)[0]


def listed(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.short for a in avals)


def refuse(name: str, what: str, avals: Sequence[ShapedArray], instead: str) -> NoReturn:
    """Raises the `ShardingTypeError` of the operation `name` on operands of these types."""
    raise ShardingTypeError(f"{name} of {listed(avals)}: {what}", instead=instead, avals=list(avals), primitive=name)


RESHARD = "phlox.reshard(x, phlox.P(...)) of an operand first"
OUT_SHARDING = "out_sharding=phlox.P(...)"


def join(name: str, avals: Sequence[ShapedArray], entries: Iterable[Entry], what: str = "") -> Entry:
    """The one entry that is not empty among those of an axis which operands share; empty if all are.

    Raises `ShardingTypeError` if there are two.
    """
    result: Entry = ()
    for entry in entries:
        if entry and result and entry != result:
            axes = f"{_quoted(result)} and {_quoted(entry)}"
            refuse(name, f"{what or 'incompatible shardings'}: one axis is split over {axes}", avals, RESHARD)
        result = result or entry
    return result


def _quoted(entry: Entry) -> str:
    return repr(entry[0]) if len(entry) == 1 else repr(entry)


def elementwise(name: str, out: ShapedArray, avals: Sequence[ShapedArray], what: str = "") -> Entries:
    """The entries of an elementwise result. Scalars and axes of length one are broadcast. `what` is for `join`."""
    whole = [a for a in avals if a.ndim]
    if any(a.ndim != out.ndim for a in whole):
        refuse(name, "it has no rule that says how its result is split", avals, RESHARD)
    return tuple(
        join(name, avals, [entries_of(a)[i] for a in whole if a.shape[i] == size], what)
        for i, size in enumerate(out.shape)
    )


def check_whole(name: str, aval: ShapedArray, axes: Iterable[int], avals: Sequence[ShapedArray] = ()) -> None:
    """Raises `ShardingTypeError` if one of these axes of an operand is split."""
    for axis in axes:
        if entry := entries_of(aval)[axis]:
            what = f"axis {axis}, along which it works, is split over {_quoted(entry)}"
            refuse(name, what, avals or (aval,), "phlox.reshard(x, phlox.P(...)) with None for this axis first")


_RESIZING = {"slice": "slicing", "dynamic_slice": "slicing", "pad": "padding"}


def resized(name: str, aval: ShapedArray, out: ShapedArray) -> Entries:
    """The entries of a result that is cut out of the operand, or padded: split as the operand is. One element is whole.

    Raises `ShardingTypeError` if a split axis gets a length that does not divide.
    """
    if all(size == 1 for size in out.shape):
        return ((),) * out.ndim
    for axis, (size, entry) in enumerate(zip(out.shape, entries_of(aval), strict=True)):
        if entry and aval.shape[axis] != size and size % aval.spec.pieces(axis):  # type: ignore[union-attr]
            verb = _RESIZING.get(name, name)
            what = (
                f"axis {axis}, split over {_quoted(entry)}, would get length {size}, and {verb} on sharded dims needs "
                "a length that can be split"
            )
            refuse(name, what, (aval,), RESHARD)
    return entries_of(aval)


def check_divisible(aval: ShapedArray) -> ShapedArray:
    """`aval`. Raises `ShapeError` if the explicit axes of its spec do not split an axis evenly."""
    for axis, size in enumerate(aval.shape if aval.spec is not None else ()):
        pieces = aval.spec.pieces(axis)  # type: ignore[union-attr]
        if isinstance(size, int) and size % pieces:
            raise ShapeError(
                f"{aval.short}: axis {axis} is split into {pieces} parts, which does not evenly divide the dimension "
                f"size {size}",
                instead=f"a length that is a multiple of {pieces}",
                shapes=[aval.shape],
            )
    return aval


def each(outs: Sequence[ShapedArray], *avals: ShapedArray, **params: Any) -> list[Entries]:
    """The rule `sharding` of operations with one result for each operand, of its shape."""
    return [entries_of(a) for a in avals]


def whole(outs: Any, *avals: ShapedArray, **params: Any) -> Any:
    """The rule `sharding` of operations whose results are split over nothing."""
    return [((),) * a.ndim for a in outs] if isinstance(outs, list | tuple) else ((),) * outs.ndim


def batches(outs: Any, *avals: ShapedArray, **params: Any) -> Any:
    """The rule `sharding` of operations on PRNG keys: results have the axes of the first operand, then others."""
    return (*entries_of(avals[0]), *((),) * outs.ndim)[: outs.ndim]


def checked(
    name: str, avals: Sequence[ShapedArray], out: ShapedArray, mesh: Any, entries: Entries, reductions: Reductions
) -> ShapedArray:
    """`out` with these entries and reductions. Raises `ShardingTypeError` if a mesh axis occurs twice."""
    used = [axis for entry in entries for axis in entry]
    if len(set(used)) < len(used):
        twice = next(axis for axis in used if used.count(axis) > 1)
        refuse(name, f"two axes of the result would be split over {twice!r}", avals, RESHARD)
    # A result that is split over an axis differs between the devices along it, so that it is not reduced there.
    return out.with_spec(spec_over(mesh, entries, reductions._replace(reduced=reductions.reduced.difference(used))))


def mesh_of(name: str, avals: Sequence[ShapedArray]) -> Any:
    """The mesh of the operands. Raises `ShardingTypeError` if they are on two."""
    meshes = [a.spec.mesh for a in avals if a.spec is not None]
    # Meshes of equal axes count as one: those of a context and of an array may be two objects.
    for other in meshes[1:]:
        if other is not meshes[0] and other.shape_tuple != meshes[0].shape_tuple:
            refuse(name, f"the operands are split over two meshes, {meshes[0]} and {other}", avals, RESHARD)
    return meshes[0]
