"""The class `ufunc`: an elementwise function with NumPy's methods reduce, accumulate, at, reduceat, outer.

A call runs a jitted function; the keywords `out` and `where` are refused.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._api.batching.vmap import vmap
from ..._api.jit.jit import jit
from ..._api.jit.programs import eval_shape
from ..._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, UnsupportedError
from ..._ir import dtypes
from ..._ir.promotion import promote
from ..._operands.checks import canonical_axis, check, check_one, refuse_out, type_of
from ..._operands.promotion import promote_dtypes, to_dtype
from ...typing import Array, ArrayLike, DTypeLike
from .._creation.fill import full
from .._creation.from_data import asarray
from .._functions.vectorize import vectorize
from .._indexing.reading import take
from .._manipulation.broadcasting import broadcast_shapes, broadcast_to
from .._manipulation.joining import concatenate
from .._manipulation.shapes import expand_dims, moveaxis, ravel, reshape
from .choose import where as select_elements

_SIGNATURE = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None),
        inspect.Parameter("where", inspect.Parameter.KEYWORD_ONLY, default=None),
    ]
)


#: options of NumPy's ufuncs, and what to write instead; {} is the call without them
_OPTIONS = {
    "out": "y = {}, as arrays cannot be changed in place",
    "where": "phlox.numpy.where(condition, {}, value)",
    "dtype": "{} of operands converted by x.astype(dtype)",
    "casting": "{} of operands converted by x.astype(dtype)",
    "signature": "{} of operands converted by x.astype(dtype)",
    "order": "{}, as arrays have no memory order",
    "subok": "{}, as arrays have no subclasses",
}


class _Declaration(NamedTuple):
    func: Callable[..., Any]
    nin: int
    nout: int
    nargs: int
    identity: Any


class ufunc:
    """A function of single numbers that works elementwise on arrays, broadcast against each other (as ``numpy.ufunc``).

    Args:
      func: function of scalars.
      nin, nout: numbers of arguments and of results of `func`.
      name: name of the ufunc, by default the name of `func`.
      nargs: declared number of arguments; by default `nin`.
      identity: identity element of the operation, as 0 is for addition; None if it has none.
      call: function that computes the results for arrays; by default `func` is mapped over the elements.
      reduce, accumulate, at, reduceat: functions that implement the methods of these names; by default, loops that call
        `func`.

    The keywords `out` and `where` of calls raise `UnsupportedError` for all but None.

    >>> jnp.add.nin, jnp.add.nout, jnp.add.identity
    (2, 1, 0)
    >>> isinstance(jnp.maximum, jnp.ufunc)
    True
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: ArrayLike | None = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        if not callable(func):
            raise ArgumentError(f"ufunc takes a function, got {func!r} of type {type(func).__name__}", argument="func")
        #: the jitted function that calls run; a function that is jitted already keeps its cache
        self._computes: Any = call if hasattr(call, "lower") else jit(call or vectorize(func), inline=True)
        self.__name__ = name or func.__name__
        self.__doc__, self.__module__ = func.__doc__, func.__module__
        self.__signature__ = _SIGNATURE
        counts = operator.index(nin), operator.index(nout), operator.index(nargs or nin)
        self._declaration = _Declaration(func, *counts, identity)
        self._methods = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    # -- properties: read-only, because a ufunc is part of cache keys

    @property
    def nin(self) -> int:
        """The number of operands."""
        return self._declaration.nin

    @property
    def nout(self) -> int:
        """The number of results."""
        return self._declaration.nout

    @property
    def nargs(self) -> int:
        """The number of operands, as declared."""
        return self._declaration.nargs

    @property
    def identity(self) -> Any:
        """The identity element of the operation, or None."""
        return self._declaration.identity

    # -- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            self._check_options(kwargs)
        return self._computes(*args)

    def _check_options(self, kwargs: dict[str, Any]) -> None:
        for name, value in kwargs.items():
            instead = _OPTIONS.get(name, "arguments by position").format(f"phlox.numpy.{self.__name__}(...)")
            if name not in ("out", "where"):
                raise ArgumentError(f"{self.__name__} has no argument {name!r}", instead=instead)
            if value is not None:
                raise UnsupportedError(f"{self.__name__}: {name}= is not supported", instead=instead)

    # -- methods

    def reduce(
        self,
        a: ArrayLike,
        axis: int | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """The elements along `axis` combined into one by repeated application (as ``numpy.ufunc.reduce``).

        Args:
          a: array of any shape.
          axis: axis to reduce over; None flattens `a`.
          dtype: dtype of the computation and of the result; None is the dtype that the function returns for two
            elements.
          out: not supported, must be None: arrays cannot be changed in place.
          keepdims: True keeps the reduced axis, with length one.
          initial: initial value of the reduction; None is the identity or, if there is none, the first element.
          where: array of bools that broadcasts to `a`, True for the elements to include; requires an identity or
            `initial`.

        Returns:
          An array without the axis.

        Raises:
          OptionError: the function does not have two arguments and one result, or `where` is given without an identity
            or `initial`.
          ShapeError: there are no elements, and neither an identity nor `initial`.
          DtypeError: `where` is not of bools.
          UnsupportedError: `out` is given, or several axes where a loop reduces.

        >>> jnp.add.reduce(np.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
        >>> jnp.bitwise_or.reduce(np.array([1, 2, 4]))
        Array(7, dtype=int32)
        """
        name = self._folds("reduce", out)
        a = check_one(name, a)
        if initial is not None:
            initial = check_one(name, initial)
        if where is not None:
            where = check_one(name, where)
            if self.identity is None and initial is None:
                raise OptionError(f"{name}: where= without an identity", instead="initial=, to begin with")
            if type_of(where).dtype != dtypes.bool_:
                raise DtypeError(f"{name}: where= must be bools, got {type_of(where).short}", instead="where != 0")
        method = self._methods["reduce"]
        if method is not None:
            return method(a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where)
        if isinstance(axis, tuple | list):
            raise UnsupportedError(f"{name}: axis={axis}", instead="one axis, or None for all")
        out_dtype = dtypes.optional_dtype(dtype, name)
        return _reduce(a, where, initial, function=self, axis=axis, dtype=out_dtype, keepdims=keepdims)

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Partial results of `reduce`: for each element, the reduction of all up to it (as ``numpy.ufunc.accumulate``).

        Args:
          a: array with at least one axis.
          axis: axis along which results accumulate.
          dtype: dtype of the computation and of the result; None is the dtype that the function returns for two
            elements.
          out: not supported, must be None: arrays cannot be changed in place.

        Returns:
          An array of the shape of `a`.

        Raises:
          OptionError: the function does not have two arguments and one result, or `axis` is not one axis.
          ShapeError: `a` has no axis.

        >>> jnp.maximum.accumulate(np.array([1, 3, 2, 5]))
        Array([1, 3, 3, 5], dtype=int32)
        """
        name = self._folds("accumulate", out)
        a = check_one(name, a)
        if not type_of(a).shape:
            raise ShapeError(f"{name}: cannot accumulate along an axis of a scalar, got {type_of(a).short}")
        method = self._methods["accumulate"]
        if method is not None:
            return method(a, axis=axis, dtype=dtype)
        if axis is None or isinstance(axis, tuple | list):
            raise OptionError(f"{name}: axis={axis}", instead="one axis")
        out_dtype = dtypes.optional_dtype(dtype, name)
        return _accumulate(a, function=self, axis=axis, dtype=out_dtype)

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """`a` with the function applied to the elements at `indices` (as ``numpy.ufunc.at``, which changes `a`).

        If an index occurs twice, the function is applied twice to its element.

        Args:
          a: array of any shape.
          indices: index as in ``a[indices]``: an integer, a slice, an array of integers, or a tuple of these.
          b: second argument of the function, an array that broadcasts to ``a[indices]``; None for a function of one
            argument.
          inplace: must be False, because arrays cannot be changed in place.

        Returns:
          A changed copy of `a`, of the dtype of the function's result.

        Raises:
          UnsupportedError: `inplace` is true.

        >>> jnp.add.at(jnp.zeros(3), jnp.array([0, 2, 2]), 1.0, inplace=False)
        Array([1., 0., 2.], dtype=float32)
        """
        if inplace:
            raise UnsupportedError(
                f"{self.__name__}.at: arrays cannot be changed in place", instead="x = f.at(x, ..., inplace=False)"
            )
        name = f"{self.__name__}.at"
        values = check(name, a) if b is None else check(name, a, b)
        method = self._methods["at"]
        if method is not None:
            return method(*map(asarray, values[:1]), indices, *values[1:])
        parts = indices if isinstance(indices, tuple) else (indices,)
        if not parts:
            return asarray(values[0])
        arrays = check(name, *[i for i in parts if not isinstance(i, slice)])
        # Slices cannot be operands: they are static arguments.
        slices = tuple((i.start, i.stop, i.step) if isinstance(i, slice) else None for i in parts)
        return _at(arrays, *values, function=self, slices=slices)

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """The runs of elements that begin at `indices`, each reduced to one (as ``numpy.ufunc.reduceat``).

        The run from ``indices[i]`` ends before ``indices[i + 1]``, the last at the end of the axis; one that would be
        empty is the element at ``indices[i]``.

        Args:
          a: array with at least one axis.
          indices: vector of integers, the indices along `axis` at which runs begin.
          axis: the axis to reduce along.
          dtype: dtype to which `a` is converted first; None keeps it.
          out: not supported, must be None: arrays cannot be changed in place.

        Returns:
          An array as long along `axis` as there are `indices`.

        Raises:
          OptionError: the function does not have two arguments and one result, or `axis` is not one axis.
          ShapeError: `a` has no axes, or `indices` is not a vector.

        >>> jnp.add.reduceat(jnp.arange(8), jnp.array([0, 4, 6]))
        Array([ 6,  9, 13], dtype=int32)
        """
        name = self._folds("reduceat", out)
        a, indices = check(name, a, indices)
        method = self._methods["reduceat"]
        if method is not None:
            return method(a, indices, axis=axis, dtype=dtype)
        out_dtype = dtypes.optional_dtype(dtype, name)
        if axis is None or isinstance(axis, tuple | list):
            raise OptionError(f"{name}: axis={axis}", instead="one axis")
        if not type_of(a).ndim or type_of(indices).ndim != 1:
            raise ShapeError(f"{name}: {type_of(a).short} in runs that begin at {type_of(indices).short}")
        return _reduceat(a, indices, function=self, axis=axis, dtype=out_dtype)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every element of `A` with every element of `B` (as ``numpy.ufunc.outer``).

        Args:
          A, B: arrays of any shape.

        Returns:
          An array of shape ``A.shape + B.shape``.

        Raises:
          OptionError: the function does not have two arguments and one result.

        >>> jnp.multiply.outer(jnp.arange(3), jnp.arange(2))
        Array([[0, 0],
               [0, 1],
               [0, 2]], dtype=int32)
        """
        name = self._folds("outer", None)
        A, B = check(name, A, B)
        return _outer(A, B, function=self)

    def _folds(self, method: str, out: None) -> str:
        """The name of a method for error messages. Raises if the function cannot have this method."""
        name = f"{self.__name__}.{method}"
        if self.nin != 2 or self.nout != 1:
            raise OptionError(f"{name}: only for two arguments and one result, not {self.nin} and {self.nout}")
        refuse_out(name, out)
        return name

    # -- special methods

    def _identity(self) -> Any:
        return self.__name__, self._declaration

    def __reduce__(self) -> Any:
        # Those of `phlox.numpy` are stored by name, as functions are: their compiled programs cannot be.
        if getattr(sys.modules.get(self.__module__), self.__name__, None) is self:
            return self.__name__
        return super().__reduce__()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ufunc) and self._identity() == other._identity())

    def __repr__(self) -> str:
        return f"<jnp.ufunc {self.__name__!r}>"


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: ArrayLike | None = None) -> ufunc:
    """The `ufunc` of a function of single numbers, which phlox can trace (as ``numpy.frompyfunc``).

    Args:
      func: function of scalars.
      nin: number of arguments of `func`.
      nout: number of results of `func`; if there are several, `func` returns a tuple.
      identity: identity element of the operation, as 0 is for addition; None if it has none.

    Returns:
      A `ufunc`: called with arrays, it applies `func` elementwise and broadcasts.

    Raises:
      ArgumentError: `func` cannot be called.

    >>> add = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
    >>> add(jnp.arange(3), 10)
    Array([10, 11, 12], dtype=int32)
    >>> add.reduce(jnp.arange(4))
    Array(6, dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


# --- the methods as loops -------------------------------------------------------------------------------


def _loop_dtype(function: ufunc, a: Any, *others: Any) -> Any:
    """The dtype of a loop that begins with elements of `a` and goes on with results of the function: it holds both.

    Logical functions take their operands as truth values, so that their results suffice.
    """
    ones = [to_dtype(1, type_of(x).dtype, type_of(x).weak_type) for x in (a, *others)]
    out = eval_shape(function._declaration.func, *ones)
    if type(function.identity) is bool:
        return out.dtype
    return promote(((out.dtype, out.weak_type), (type_of(a).dtype, type_of(a).weak_type)), lenient=True)[0]


@functools.partial(jit, static_argnames=("function", "axis", "dtype", "keepdims"))
def _reduce(a: Any, where: Any, initial: Any, function: ufunc, axis: Any, dtype: Any, keepdims: bool) -> Any:
    from ...lax import fori_loop  # here, as `phlox.numpy` does not wait for lax

    a = asarray(a)
    initial = function.identity if initial is None else initial
    dtype = _loop_dtype(function, a, a) if dtype is None else dtype
    where = None if where is None else broadcast_to(where, a.shape)
    if axis is None:
        keepdims_shape: tuple[int, ...] = (1,) * a.ndim
        a, where, axis = ravel(a), None if where is None else ravel(where), 0
    else:
        axis = canonical_axis(axis, a.ndim, function.__name__)
        keepdims_shape = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
        a, where = moveaxis(a, axis, 0), None if where is None else moveaxis(where, axis, 0)
    if not a.shape[0] and initial is None:
        raise ShapeError(f"{function.__name__}.reduce: no elements, and no identity", instead="initial=...")
    a = a.astype(dtype)
    if where is not None:
        # The derivative of the function at a masked nan is nan, even times 0.
        a = select_elements(where, a, to_dtype(1, dtype))

    def step(i: Any, so_far: Any) -> Any:
        result, _ = promote_dtypes(function(so_far, a[i]), so_far)  # the loop's dtype may be wider than the function's
        return result if where is None else select_elements(where[i], result, so_far)

    begin = 1 if initial is None else 0
    start = a[0] if initial is None else broadcast_to(to_dtype(initial, dtype), a.shape[1:])
    out = fori_loop(begin, a.shape[0], step, start) if a.shape[0] else start
    return reshape(out, keepdims_shape) if keepdims else out


@functools.partial(jit, static_argnames=("function", "axis", "dtype"))
def _accumulate(a: Any, function: ufunc, axis: int, dtype: Any) -> Any:
    from ...lax import scan  # here, as `phlox.numpy` does not wait for lax

    a = asarray(a)
    dtype = _loop_dtype(function, a, a) if dtype is None else dtype
    axis = canonical_axis(axis, a.ndim, function.__name__)
    if not a.size:
        return full(a.shape, 0, dtype)
    rows = moveaxis(a, axis, 0).astype(dtype)

    def step(so_far: Any, row: Any) -> Any:
        result, _ = promote_dtypes(function(so_far, row), row)  # a requested dtype is kept
        return result, result

    _, rest = scan(step, rows[0], rows[1:])
    return moveaxis(concatenate([rows[:1], rest]), 0, axis)


@functools.partial(jit, static_argnames=("function", "slices"))
def _at(arrays: Any, a: Any, *b: Any, function: ufunc, slices: Any) -> Any:
    from ...lax import fori_loop  # here, as `phlox.numpy` does not wait for lax

    dtype = _loop_dtype(function, a, *b)
    a, b = asarray(a).astype(dtype), tuple(asarray(x).astype(dtype) for x in b)
    shape = broadcast_shapes(*[type_of(x).shape for x in arrays])

    def index(bounds: Any) -> tuple[Any, ...]:
        rest = iter(bounds)
        return tuple(next(rest) if place is None else slice(*place) for place in slices)

    if not shape:
        where = index(arrays)
        return a.at[where].set(function(a.at[where].get(), *b))
    count = math.prod(shape)
    rows = [ravel(broadcast_to(x, shape)) for x in arrays]
    operands = [reshape(broadcast_to(x, (*shape, *x.shape[len(shape) :])), (count, *x.shape[len(shape) :])) for x in b]

    def step(i: Any, a: Any) -> Any:
        where = index([row[i] for row in rows])
        return a.at[where].set(function(a.at[where].get(), *[x[i] for x in operands]))

    # One index after the other: `at` applies the function once for each occurrence of an index.
    return fori_loop(0, count, step, a)


@functools.partial(jit, static_argnames=("function", "axis", "dtype"))
def _reduceat(a: Any, indices: Any, function: ufunc, axis: int, dtype: Any) -> Any:
    from ...lax import fori_loop  # here, as `phlox.numpy` does not wait for lax

    a, indices = asarray(a, dtype), asarray(indices)
    axis = canonical_axis(axis, a.ndim, function.__name__)
    length = a.shape[axis]
    ends = concatenate([indices[1:], asarray([length], indices.dtype)])
    others = tuple(i for i in range(a.ndim) if i != axis)
    begin, end = expand_dims(indices, others), expand_dims(ends, others)

    # All runs advance at once: element i is combined into the runs that have begun before it and not ended.
    def step(i: Any, so_far: Any) -> Any:
        result = function(so_far, take(a, expand_dims(i, 0), axis))
        return select_elements((i > begin) & (i < end), result, so_far)

    return fori_loop(0, length, step, take(a, indices, axis))


@functools.partial(jit, static_argnames=("function",))
def _outer(a: Any, b: Any, function: ufunc) -> Any:
    a, b = asarray(a), asarray(b)
    table = vmap(vmap(function, (None, 0)), (0, None))(ravel(a), ravel(b))
    return reshape(table, (*a.shape, *b.shape))
