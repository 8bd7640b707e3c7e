"""The methods of arrays and tracers. Each calls the function of `phlox.numpy` that has its name and is documented."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import UnsupportedError
from . import numpy_functions as fn
from .array_operators import ArrayOperators

if TYPE_CHECKING:
    from .._api.devices.out_sharding import OutSharding
    from .._ops.linalg.dot import PrecisionLike
    from .._xla.devices import Device
    from .._xla.sharding import Sharding
    from ..numpy._indexing.at import At
    from ..numpy._statistics.reductions import Axis
    from ..typing import Array, ArrayLike, DTypeLike, Shape


class ArrayMethods(ArrayOperators):
    """The methods and computed attributes of arrays and tracers. `self` is an `Array` or a `Tracer`."""

    __slots__ = ()

    # -- reductions

    def all(
        self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether all elements over `axis` are true. See `numpy.all`."""
        return fn.all(self, axis, out, keepdims, where=where)

    def any(
        self: Any, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
    ) -> Array:
        """Whether any element over `axis` is true. See `numpy.any`."""
        return fn.any(self, axis, out, keepdims, where=where)

    def argmax(self: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first maximum along `axis`, or of the first nan. See `numpy.argmax`."""
        return fn.argmax(self, axis, out, keepdims)

    def argmin(self: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
        """The index of the first minimum along `axis`, or of the first nan. See `numpy.argmin`."""
        return fn.argmin(self, axis, out, keepdims)

    def cumprod(self: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Cumulative products along `axis`, or of the flattened array. See `numpy.cumprod`."""
        return fn.cumprod(self, axis, dtype, out)

    def cumsum(self: Any, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Cumulative sums along `axis`, or of the flattened array. See `numpy.cumsum`."""
        return fn.cumsum(self, axis, dtype, out)

    def max(
        self: Any,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The largest element over `axis`; nan if any element is nan. See `numpy.max`."""
        return fn.max(self, axis, out, keepdims, initial, where)

    def mean(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        """The arithmetic mean over `axis`. See `numpy.mean`."""
        return fn.mean(self, axis, dtype, out, keepdims, where=where)

    def min(
        self: Any,
        axis: Axis = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The smallest element over `axis`; nan if any element is nan. See `numpy.min`."""
        return fn.min(self, axis, out, keepdims, initial, where)

    def prod(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The product of the elements over `axis`. See `numpy.prod`."""
        return fn.prod(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def ptp(self: Any, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
        """The largest minus the smallest element over `axis`. See `numpy.ptp`."""
        return fn.ptp(self, axis, out, keepdims)

    def std(
        self: Any,
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
        """The standard deviation over `axis`: the square root of `var`. See `numpy.std`."""
        return fn.std(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def sum(
        self: Any,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        """The sum of the elements over `axis`. See `numpy.sum`."""
        return fn.sum(self, axis, dtype, out, keepdims, initial, where, promote_integers)

    def trace(
        self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The sum of the elements on a diagonal of two axes. See `numpy.trace`."""
        return fn.trace(self, offset, axis1, axis2, dtype, out)

    def var(
        self: Any,
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
        """The variance over `axis`: the mean square distance from the mean. See `numpy.var`."""
        return fn.var(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    # -- shapes

    @property
    def T(self: Any) -> Array:
        """The array with its axes reversed."""
        return fn.transpose(self)

    @property
    def mT(self: Any) -> Array:
        """The array with its last two axes exchanged."""
        return fn.matrix_transpose(self)

    def flatten(self: Any, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """The elements as a vector. See `numpy.ravel`."""
        return self.ravel(order, out_sharding=out_sharding)

    def ravel(self: Any, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
        """The elements as a vector. See `numpy.ravel`."""
        if out_sharding is None:
            return fn.ravel(self, order)
        return fn.with_out_sharding.ravel(self, order, out_sharding=out_sharding)

    def repeat(
        self: Any,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Each element repeated. See `numpy.repeat`."""
        return fn.repeat(self, repeats, axis, total_repeat_length=total_repeat_length, out_sharding=out_sharding)

    def reshape(
        self: Any, *args: Shape, order: str = "C", copy: bool | None = None, out_sharding: OutSharding = None
    ) -> Array:
        """The array with another shape, which is one tuple or several numbers. See `numpy.reshape`."""
        shape: Any = args[0] if len(args) == 1 else args
        if out_sharding is None:  # the function without the option costs less
            return fn.reshape(self, shape, order)
        return fn.with_out_sharding.reshape(self, shape, order, out_sharding=out_sharding)

    def squeeze(self: Any, axis: int | Sequence[int] | None = None) -> Array:
        """The array without axes of length one. See `numpy.squeeze`."""
        return fn.squeeze(self, axis)

    def swapaxes(self: Any, axis1: int, axis2: int) -> Array:
        """The array with two axes exchanged. See `numpy.swapaxes`."""
        return fn.swapaxes(self, axis1, axis2)

    def transpose(self: Any, *args: int | Sequence[int] | None) -> Array:
        """The array with its axes in another order, which is one tuple or several numbers. See `numpy.transpose`."""
        is_number = len(args) == 1 and isinstance(args[0], int | np.integer)
        axes: Any = None if not args else args if is_number or len(args) > 1 else args[0]
        return fn.transpose(self, axes)

    # -- elements

    @property
    def at(self: Any) -> At:
        """``x.at[index]`` has the methods set, add, multiply, min, max, get …, which return changed arrays."""
        return fn.At(self)

    # Type checkers do not see it, and report its use; see `ArrayOperators.__setitem__`.
    if not TYPE_CHECKING:

        @property
        def flat(self):
            """Not supported: `flatten` gives the elements in one axis."""
            raise UnsupportedError("x.flat is not supported", instead="x.flatten()")

    def argpartition(self: Any, kth: int, axis: int = -1) -> Array:
        """The indices that put the `kth` smallest element at its place along `axis`. See `numpy.argpartition`."""
        return fn.argpartition(self, kth, axis)

    def argsort(
        self: Any,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The indices that sort the elements along `axis`. See `numpy.argsort`."""
        return fn.argsort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def choose(self: Any, choices: Array | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
        """Elements of `choices`, of which the array has the numbers. See `numpy.choose`."""
        return fn.choose(self, choices, out, mode)

    def compress(
        self: Any,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array:
        """The slices along `axis` for which `condition` is true. See `numpy.compress`."""
        return fn.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)

    def diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The elements on a diagonal of two axes. See `numpy.diagonal`."""
        return fn.diagonal(self, offset, axis1, axis2)

    def nonzero(
        self: Any, *, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None, size: int | None = None
    ) -> tuple[Array, ...]:
        """The indices of the elements that are not zero, an array for each axis. See `numpy.nonzero`."""
        return fn.nonzero(self, size=size, fill_value=fill_value)

    def searchsorted(
        self: Any, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *, method: str = "scan"
    ) -> Array:
        """The positions in the sorted array at which the elements of `v` can be inserted. See `numpy.searchsorted`."""
        return fn.searchsorted(self, v, side, sorter, method=method)

    def sort(
        self: Any,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array:
        """The array with the elements sorted along `axis`. See `numpy.sort`."""
        return fn.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)

    def take(
        self: Any,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array:
        """The elements at `indices` along `axis`, or of the flattened array. See `numpy.take`."""
        return fn.take(self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)

    # -- elementwise functions and products

    @property
    def real(self: Any) -> Array:
        """The real part."""
        return fn.real(self)

    @property
    def imag(self: Any) -> Array:
        """The imaginary part."""
        return fn.imag(self)

    def clip(self: Any, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """The array with elements below `min` raised to it and elements above `max` lowered to it. See `numpy.clip`."""
        return fn.clip(self, min, max)

    def conj(self: Any) -> Array:
        """The complex conjugate of each element. See `numpy.conjugate`."""
        return fn.conjugate(self)

    def conjugate(self: Any) -> Array:
        """The complex conjugate of each element. See `numpy.conjugate`."""
        return fn.conjugate(self)

    def dot(
        self: Any,
        b: ArrayLike,
        *,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        """The sum of products over the last axis and the second to last axis of `b`. See `numpy.dot`."""
        return fn.dot(
            self, b, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
        )

    def round(self: Any, decimals: int = 0, out: None = None) -> Array:
        """Each element rounded to `decimals` decimal places, halves to the even neighbour. See `numpy.round`."""
        return fn.round(self, decimals, out)

    # -- conversions

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module `phlox.numpy`, for code that is written for the array API standard."""
        return fn.array_namespace(api_version)

    def astype(
        self: Any, dtype: DTypeLike | None = None, copy: bool = False, device: Device | Sharding | None = None
    ) -> Array:
        """The array with its elements converted to `dtype`. See `numpy.astype`."""
        return fn.astype(self, dtype, copy=copy, device=device)

    def byteswap(self: Any) -> Array:
        """The array with the bytes of each element in the opposite order."""
        return fn.byteswap(self)

    def copy(self: Any) -> Array:
        """A copy of the array."""
        return fn.asarray(self, copy=True)

    def to_device(self: Any, device: Device | Sharding, *, stream: Any = None) -> Array:
        """The array on another device or with another sharding."""
        return fn.to_device(self, device)

    def view(self: Any, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """The array with the bits of its elements as elements of `dtype`."""
        return fn.view(self, dtype, type)
