"""Operators and methods of arrays, for those who read types. Written by scripts/array-stub.py."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._api.devices.out_sharding import OutSharding
from .._ops.linalg.dot import PrecisionLike
from .._ops.structure.gather import GatherScatterMode
from .._xla.devices import Device
from .._xla.sharding import Sharding
from ..numpy._indexing.plan import Index
from ..numpy._statistics.reductions import Axis
from ..typing import Array, ArrayLike, DTypeLike, Shape

class Operators:
    """What arrays and tracers have that `phlox.numpy` installs."""

    @property
    def T(self) -> Array:
        """The array with its axes reversed."""

    def __abs__(self, /) -> Array:
        """Absolute value; of complex numbers, a float, elementwise (as ``numpy.abs``)."""

    def __add__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `phlox.numpy`, for code that is written for the array API standard."""

    def __contains__(self, other: ArrayLike) -> Array:
        """Whether an element of a vector equals the scalar `other`. Raises for other shapes."""

    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __eq__(self, other: ArrayLike) -> Array:  # type: ignore[override]
        ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __getitem__(self, index: Index) -> Array:
        """Imports the indexing module at the first index in a process, and replaces itself with its `getitem`."""

    def __gt__(self, other: ArrayLike) -> Array: ...

    __hash__: None  # type: ignore[assignment]

    def __invert__(self, /) -> Array:
        """All bits flipped, elementwise (as ``numpy.invert``)."""

    def __iter__(self) -> Iterator[Array]: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __ne__(self, other: ArrayLike) -> Array:  # type: ignore[override]
        ...
    def __neg__(self, /) -> Array:
        """-x, elementwise (as ``numpy.negative``)."""

    def __or__(self, other: ArrayLike) -> Array: ...
    def __pos__(self, /) -> Array:
        """+x, elementwise (as ``numpy.positive``)."""

    def __pow__(self, other: ArrayLike) -> Array: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array:
        """Python's `round`: integers if `ndigits` is None, else numbers rounded to this many decimals."""

    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def all(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether all elements of `a` over `axis` are true (as ``numpy.all``)."""

    def any(
        self, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether any element of `a` over `axis` is true (as ``numpy.any``)."""

    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """Index of the first maximum along `axis`, or of the first nan if there is one (as ``numpy.argmax``)."""

    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """Index of the first minimum along `axis`, or of the first nan if there is one (as ``numpy.argmin``)."""

    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """See `numpy.argpartition`."""

    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """See `numpy.argsort`."""

    def astype(
        self, dtype: DTypeLike | None = None, copy: bool = False, device: Device | Sharding | None = None
    ) -> Array:
        """See `numpy.astype`."""

    @property
    def at(self) -> At:
        """``x.at[index]`` has the methods set, add, multiply, min, max, get …, which return changed arrays."""

    def byteswap(self) -> Array:
        """The array with the bytes of each element in the opposite order."""

    def choose(self, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
        """See `numpy.choose`."""

    def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """`arr` with values below `min` raised to it and values above `max` lowered to it (as ``numpy.clip``)."""

    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """See `numpy.compress`."""

    def conj(self, /) -> Array:
        """Complex conjugate, elementwise (as ``numpy.conjugate``)."""

    def conjugate(self, /) -> Array:
        """Complex conjugate, elementwise (as ``numpy.conjugate``)."""

    def copy(self) -> Array:
        """A copy of the array."""

    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Cumulative products along `axis`, or of the flattened array (as ``numpy.cumprod``)."""

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Cumulative sums along `axis`, or of the flattened array (as ``numpy.cumsum``)."""

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """See `numpy.diagonal`."""

    def dot(
        self,
        b: ArrayLike,
        *,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        """The dot product: a sum over the last axis of `a` and the second to last axis of `b` (as ``numpy.dot``)."""

    def flatten(self, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """`a` flattened to a vector (as ``numpy.ravel``)."""

    @property
    def imag(self, /) -> Array:
        """The imaginary part."""

    @property
    def mT(self, /) -> Array:
        """The array with its last two axes exchanged."""

    def max(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The largest element of `a` over `axis`; nan if any element is nan (as ``numpy.max``)."""

    def mean(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The arithmetic mean of `a` over `axis` (as ``numpy.mean``)."""

    def min(
        self,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The smallest element of `a` over `axis`; nan if any element is nan (as ``numpy.min``)."""

    def nonzero(
        self, *, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None, size: int | None = None
    ) -> tuple[Array, ...]:
        """See `numpy.nonzero`."""

    def prod(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product of the elements of `a` over `axis`, by default over all (as ``numpy.prod``)."""

    def ptp(self, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """The largest minus the smallest element of `a` over `axis` (as ``numpy.ptp``)."""

    def ravel(self, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """`a` flattened to a vector (as ``numpy.ravel``)."""

    @property
    def real(self, /) -> Array:
        """The real part."""

    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        """See `numpy.repeat`."""

    def reshape(
        self, *args: Shape, order: str = "C", copy: bool | None = None, out_sharding: OutSharding = None
    ) -> Array:
        """See `numpy.reshape`; the shape is one tuple or several numbers."""

    def round(self, decimals: int = 0, out: None = None) -> Array:
        """`a` rounded to `decimals` decimal places; halves go to the even neighbour (as ``numpy.round``)."""

    def searchsorted(
        self, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
    ) -> Array:
        """See `numpy.searchsorted`."""

    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """See `numpy.sort`."""

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """`a` without axes of length one (as ``numpy.squeeze``)."""

    def std(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | None = None,
    ) -> Array:
        """The standard deviation of `a` over `axis`: the square root of `var` (as ``numpy.std``)."""

    def sum(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum of the elements of `a` over `axis`, by default over all (as ``numpy.sum``)."""

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """`a` with two axes exchanged (as ``numpy.swapaxes``)."""

    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """See `numpy.take`."""

    def to_device(self, device: Device | Sharding, *, stream: Any = None) -> Array:
        """The array on another device or with another sharding."""

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The sum of the elements on a diagonal of two axes (as ``numpy.trace``)."""

    def transpose(self, *args: int | Sequence[int] | None) -> Array:
        """See `numpy.transpose`; the order is one tuple or several numbers."""

    def var(
        self,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | None = None,
    ) -> Array:
        """The variance of `a` over `axis`: the mean square distance from the mean (as ``numpy.var``)."""

    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """See `numpy.view`."""

class At:
    """``x.at``: index it to get the methods that change elements, as in ``x.at[0].set(1.0)``."""

    def __getitem__(self, index: Index) -> AtIndex: ...

class AtIndex:
    """``x.at[index]``. Each method returns a new array; `x` stays as it is."""

    def add(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `values` added to the elements at the index, as often as an index occurs."""

    def apply(
        self,
        func: Callable[[Array], ArrayLike],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `func` applied to the elements at the index, as often as an index occurs."""

    def divide(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index divided by `values`."""

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements at the index, as ``x[index]``, with a choice of `mode`."""

    def max(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index replaced by their maximum with `values`."""

    def min(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index replaced by their minimum with `values`."""

    def mul(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index multiplied by `values`."""

    def multiply(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index multiplied by `values`."""

    def power(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index raised to the power `values`."""

    def set(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with the elements at the index replaced by `values`. A boolean mask works under `jit` too."""

    def subtract(
        self,
        values: ArrayLike | Sequence[Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: OutSharding = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The array with `values` subtracted from the elements at the index."""
