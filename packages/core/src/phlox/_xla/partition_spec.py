"""`PartitionSpec`: how the axes of an array are split over the axes of a mesh (``jax.sharding``)."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from .._base.errors import ArgumentError, ShapeError
from .._ir.sharding_types import Reductions

if TYPE_CHECKING:
    from .mesh import Mesh


class _Unconstrained:
    """The class of `PartitionSpec.UNCONSTRAINED`, of which there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    # Pickled as a global name, so that it is the same object afterwards, as comparisons with `is` need.
    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class UnreducedKind(enum.Enum):
    """How the values of an axis that is not reduced yet are combined."""

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


class PartitionSpec:
    """For each axis of an array, the mesh axis (or tuple of mesh axes) that it is split over, or None.

    It is a sequence of its entries, but no tuple. The entry `UNCONSTRAINED` leaves the axis to the compiler, in
    constraints inside of programs.

    Args:
      *partitions: one entry for each axis of the array; axes without an entry are not split.
      unreduced, reduced: sets of the explicit mesh axes along which the values are partial results, which are still to
        be combined, and along which their cotangents are.
      unreduced_kind: how partial results are combined; None: by their sum.

    Raises:
      ShapeError: a mesh axis is in two of `partitions`, `unreduced` and `reduced`.
      ArgumentError: `unreduced` or `reduced` is no set, or `unreduced_kind` is no `UnreducedKind` or stands alone.

    >>> PartitionSpec("data", None)
    P('data', None)
    """

    __slots__ = ("partitions", "reduced", "unreduced", "unreduced_kind")

    UNCONSTRAINED = UNCONSTRAINED
    #: the entries as a plain tuple
    partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]
    unreduced_kind: UnreducedKind | None

    def __init__(
        self,
        *partitions: Any,
        unreduced: Set[Any] = frozenset(),
        reduced: Set[Any] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> None:
        self.partitions = tuple([_plain_entry(entry) for entry in partitions])
        self.unreduced = self.reduced = frozenset()
        self.unreduced_kind = None
        # Nearly all specs have none of these.
        if unreduced or reduced or unreduced_kind is not None:
            self._set_reductions(unreduced, reduced, unreduced_kind)

    def _set_reductions(self, unreduced: Any, reduced: Any, kind: Any) -> None:
        split = {axis for entry in self.partitions for axis in axes_of(entry)}
        for name, axes in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(axes, Set):
                raise ArgumentError(
                    f"P({name}={axes!r}): a {type(axes).__name__}", instead="a set of names of mesh axes"
                )
            if None in axes or split & axes:
                why = "None is no mesh axis" if None in axes else f"{sorted(map(str, split & axes))} are split over"
                raise ShapeError(f"P({name}={set(axes)}): {why}")
        if unreduced & reduced:
            raise ShapeError(f"P(unreduced={set(unreduced)}, reduced={set(reduced)}): they overlap")
        if kind is not None and not isinstance(kind, UnreducedKind):
            raise ArgumentError(f"P(unreduced_kind={kind!r})", instead="phlox.sharding.UnreducedKind.sum, max or min")
        if kind is not None and not unreduced:
            raise ArgumentError(f"P(unreduced_kind={kind}): there are no unreduced axes", instead="P(unreduced={...})")
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)
        self.unreduced_kind = (kind or UnreducedKind.sum) if unreduced else None

    def update(
        self, partitions: Any = None, unreduced: Any = None, reduced: Any = None, unreduced_kind: Any = None
    ) -> PartitionSpec:
        """A copy in which what is not None is replaced."""
        return PartitionSpec(
            *(self.partitions if partitions is None else partitions),
            unreduced=self.unreduced if unreduced is None else unreduced,
            reduced=self.reduced if reduced is None else reduced,
            unreduced_kind=self.unreduced_kind if unreduced_kind is None else unreduced_kind,
        )

    def __repr__(self) -> str:
        entries = [repr(entry) for entry in self.partitions]
        sets = {"unreduced": self.unreduced, "reduced": self.reduced}
        entries += [f"{name}={set(axes)}" for name, axes in sets.items() if axes]
        entries += [f"unreduced_kind={self.unreduced_kind.name}"] if self.unreduced_kind else []
        # A spec with one entry is shown with a comma, as a tuple is.
        only_one = len(entries) == 1 and len(self.partitions) == 1
        return f"P({', '.join(entries)}{',' * only_one})"

    def __reduce__(self) -> Any:
        return _spec, (self.partitions, self.unreduced, self.reduced, self.unreduced_kind)

    def _key(self) -> tuple[Any, ...]:
        return self.partitions, self.unreduced, self.reduced, self.unreduced_kind

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PartitionSpec) and self._key() == other._key())

    def __hash__(self) -> int:
        # Enough: specs with equal entries that differ elsewhere are rare.
        return hash(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __getitem__(self, index: Any) -> Any:
        return self.partitions[index]

    def __contains__(self, entry: object) -> bool:
        return entry in self.partitions

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            unreduced, reduced = self.unreduced | other.unreduced, self.reduced | other.reduced
            kind = self.unreduced_kind or other.unreduced_kind
            return self.update((*self, *other), unreduced, reduced, unreduced_kind=kind)
        return self.update((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def index(self, entry: Any) -> int:
        """The position of the first entry that equals `entry`."""
        return self.partitions.index(entry)

    def count(self, entry: Any) -> int:
        """The number of entries that equal `entry`."""
        return self.partitions.count(entry)


P = PartitionSpec


def _spec(partitions: Any, unreduced: Any, reduced: Any, kind: Any) -> PartitionSpec:
    """The constructor as pickle calls it."""
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=kind)


def _plain_entry(entry: Any) -> Any:
    """An entry in the form in which it is compared: a list as a tuple, one axis by itself, no axis as None."""
    if not isinstance(entry, list | tuple):
        return entry
    return tuple(entry) if len(entry) > 1 else entry[0] if entry else None


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes in one entry of a PartitionSpec, as a tuple."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def entries_for(spec: PartitionSpec, ndim: int) -> tuple[Any, ...]:
    """The entries of a PartitionSpec for each of `ndim` axes: those that it leaves out are not split."""
    return (*spec, *(None,) * (ndim - len(spec)))


def spec_along(axis: int | None, name: Any) -> PartitionSpec:
    """The spec of arrays that are split along `axis` over the mesh axis `name`; None: they are not split."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def reductions_in(spec: PartitionSpec) -> Reductions:
    """The reductions in the types of arrays that have this spec."""
    kind = spec.unreduced_kind or UnreducedKind.sum
    return Reductions(spec.unreduced, spec.reduced, kind.name)


def check_spec(mesh: Mesh, spec: PartitionSpec) -> None:
    """Raises `ShapeError` if `spec` names an axis twice, or one that `mesh` does not have, or partial results along one
    that is not explicit, or leaves a choice to the compiler where no axis of `mesh` is Auto."""
    named = [axis for entry in spec for axis in axes_of(entry)]
    if partial := spec.unreduced | spec.reduced:
        named += partial
        hidden = [axis for axis in mesh.axis_names if axis in partial and axis not in mesh.explicit_axes]
        if hidden:
            why = f"whose axis {hidden[0]!r} is not Explicit"
            raise ShapeError(f"{spec} does not fit {mesh}, {why}", mesh=mesh, spec=spec)
    if UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        why = "cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`"
        raise ShapeError(f"{spec} {why}: {mesh}", instead="None, or a mesh with an Auto axis", mesh=mesh, spec=spec)
    unknown = [axis for axis in named if axis not in mesh.axis_names]
    if unknown or len(set(named)) != len(named):
        why = f"has no axis {unknown[0]!r}" if unknown else "may use each axis once"
        raise ShapeError(f"{spec} does not fit {mesh}, which {why}", mesh=mesh, spec=spec)


def tiles(mesh: Mesh, spec: PartitionSpec, ndim: int) -> list[int]:
    """The number of pieces into which each of `ndim` axes is split."""
    sizes = mesh.shape
    return [math.prod(sizes[axis] for axis in axes_of(entry)) for entry in entries_for(spec, ndim)]
