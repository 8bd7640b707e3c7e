"""Traces and tracers: how a transformation intercepts the operations of a Python function.

A transformation makes a `Trace`, makes it current, and calls the user's function on `Tracer`s that belong to the
trace. Each operation reaches `Trace.process` through `Primitive.bind`. While it processes an operation, the `parent`
trace is current. Each trace knows its `parent` only: nothing else stores the stack of traces, and there are no levels.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

import numpy as np

from .._base import errors, source
from .._base.beside_jax import is_of_jax, of_jax, offered_to_jax
from .._ir import dtypes
from .._ir.avals import ShapedArray, Typed, is_masked, typeof_value
from .._ir.primitive import Primitive, current_trace
from .array_methods import ArrayMethods

_T = TypeVar("_T")
#: while tracer leaks are checked (see `leaks.py`): the traces that have ended
ended_traces: ContextVar[list[weakref.ref[Trace]] | None] = ContextVar("phlox_ended_traces", default=None)


class Trace:
    """One running transformation. `live` becomes False when the transformed function has returned."""

    __slots__ = ("__weakref__", "live", "parent")

    parent: Trace | None
    #: whether only operations on tangents are recorded
    separates_tangents = False

    def __init__(self) -> None:
        # The trace that is current where the transformation begins. What this trace does not record or transform goes
        # there.
        self.parent = current_trace.get()
        self.live = True

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interprets one operation; `args` are tracers of this trace, tracers of outer traces, arrays or numbers."""
        raise NotImplementedError

    def explain(self, tracer: Tracer) -> str:
        """The origin of `tracer` in the user's terms, for error messages; may be empty."""
        return ""

    def creation_site(self, tracer: Tracer) -> source.Location | None:
        """The user's line that created `tracer`; None if it is not known."""
        return None

    def recorder(self) -> Any:
        """The trace that records operations on constants; None if they are executed at once."""
        return None if self.parent is None else self.parent.recorder()

    def read_ref(self, ref: Any) -> Any:
        """The value of a reference that was made outside of this trace, see `refs.py`."""
        return ref.read(self.parent)

    def write_ref(self, ref: Any, value: Any) -> None:
        """Writes to a reference that was made outside of this trace."""
        ref.write(self.parent, value)

    def run(self, fun: Callable[..., _T], *args: Any) -> _T:
        """``fun(*args)`` with this trace current; afterwards the trace is not live any more.

        This is a function and no context manager, because a KeyboardInterrupt at the start of `__exit__` would leave
        the trace current for ever. Python handles no signals between `finally` and the first call after it.
        """
        token = current_trace.set(self)
        try:
            return fun(*args)
        finally:
            current_trace.reset(token)
            self.live = False
            if (ended := ended_traces.get()) is not None:
                ended.append(weakref.ref(self))


def bind_under(trace: Trace | None, primitive: Primitive, args: Any, params: dict[str, Any]) -> Any:
    """`primitive.bind(*args, **params)` with `trace` current."""
    token = current_trace.set(trace)
    try:
        return primitive.bind(*args, **params)
    finally:
        current_trace.reset(token)


def recorder() -> Any:
    """The trace that records operations on constants at this moment; None if they are executed at once."""
    trace = current_trace.get()
    return None if trace is None else trace.recorder()


class ArrayBase(Typed, ArrayMethods):
    """The base class of concrete arrays and tracers."""

    __slots__ = ()

    @property
    def __jax_array__(self) -> Any:
        """Nothing. If the real jax asks for it, the error says that this is no array of jax."""
        kind = "a tracer" if isinstance(self, Tracer) else "an array"
        what = f"{kind} of type {self.aval.short}"
        # For anybody but jax, `hasattr` is false.
        raise offered_to_jax(what, self, sys._getframe(1)) or AttributeError("__jax_array__")

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        if not self.aval.shape:
            raise errors.ShapeError("len() of an array without axes", shapes=[()])
        n = self.aval.shape[0]
        if type(n) is not int:  # Python takes no other result of len
            raise errors.InconclusiveDimensionOperation(
                f"len() of {self.aval.short} is one number for all lengths, which x.shape[0] need not be",
                instead="x.shape[0]",
                dimension=n,
            )
        return n


def _refused_method(name: str) -> Callable[..., NoReturn]:
    def refuse(self: Tracer, *args: Any) -> NoReturn:
        """Raises `ConcretizationTypeError`: a tracer has no buffer."""
        use = f"The {name}() method was called on traced array: it"
        self._refuse(errors.ConcretizationTypeError, use, f"x.{name}() of what the function returns")

    return refuse


def _refused_property(name: str) -> property:
    def refuse(self: Tracer) -> NoReturn:
        """Raises `ConcretizationTypeError`: a tracer has no buffer."""
        self._refuse(errors.ConcretizationTypeError, f"x.{name}", f"x.{name} of what the function returns")

    return property(refuse)


class Tracer(ArrayBase):
    """Stands for an array inside a transformed function. It has a type but, in general, no value."""

    __slots__ = ("__weakref__", "owner")
    # NumPy's operators leave operations with an object of higher priority to that object.
    __array_priority__ = 1000

    owner: Any

    def _refuse(self, error: type[errors.ConcretizationTypeError], use: str, instead: str) -> NoReturn:
        # A tracer that has leaked gets the error that says so, and not one about its value.
        check_live(self)
        origin = self.owner.explain(self)
        use = use.format(type=self.aval.str_short(False))
        what = f"{use} needs the value of {self.aval.short}, which is traced and has none yet"
        raise error(what + (f" ({origin})" if origin else ""), instead=instead, aval=self.aval)

    def _refuse_number(self, kind: str) -> NoReturn:
        check_number(self.aval, f"{kind}()")
        self._refuse(
            errors.ConcretizationTypeError,
            f"Abstract tracer value encountered where concrete value is expected: {kind}()",
            f"try using `x.astype({kind})`; or mark the argument static",
        )

    def concrete(self) -> Any:
        """The value if the tracer has one, as under eager differentiation (`JVPTracer`); else None."""
        return None

    def __bool__(self) -> bool:
        # Arrays of several elements have no truth value, traced or not: their error comes first.
        check_truth(self.aval)
        if (value := self.concrete()) is not None:
            return bool(value)
        from . import conditions  # only this error needs it

        self._refuse(
            errors.TracerBoolConversionError,
            "Attempted boolean conversion of traced array with shape {type}. A Python condition (if, while, and, or, "
            "not)",
            conditions.instead_of(source.user_location(2)),
        )

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if (value := self.concrete()) is not None:
            return format(value, spec)
        self._refuse(
            errors.ConcretizationTypeError,
            f"Formatting by {spec!r}",
            "phlox.debug.print('{x}', x=x), which prints when the program runs; or '{}', which shows the type",
        )

    def __int__(self) -> int:
        if (value := self.concrete()) is not None:
            return int(value)
        self._refuse_number("int")

    def __float__(self) -> float:
        self._refuse_number("float")

    def __complex__(self) -> complex:
        self._refuse_number("complex")

    def __index__(self) -> int:
        check_index(self.aval)
        if (value := self.concrete()) is not None:
            return operator.index(value)
        from . import conditions  # only this error needs it

        self._refuse(
            errors.TracerIntegerConversionError,
            "The __index__() method was called on traced array with shape {type}. A Python index or range",
            conditions.instead_of_integer(source.user_location(2)),
        )

    def __array__(self, *_args: Any, **_kwargs: Any) -> np.ndarray:
        self._refuse(
            errors.TracerArrayConversionError,
            "The numpy.ndarray conversion method __array__() was called on traced array with shape {type}. A NumPy "
            "function",
            "the function of the same name in phlox.numpy",
        )

    def item(self, *args: Any) -> Any:
        if (value := self.concrete()) is not None:
            return np.asarray(value).item(*args)
        self._refuse(
            errors.ConcretizationTypeError,
            "Abstract tracer value encountered where concrete value is expected: item()",
            "keep the array, or return it",
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval.short}>"

    # A tracer stands for a value, which never changes.
    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, _memo: Any) -> Tracer:
        return self

    def __reduce__(self) -> NoReturn:
        self._refuse(errors.ConcretizationTypeError, "Pickling", "pickle what the function returns")

    @property
    def sharding(self) -> NoReturn:
        """Raises `AttributeError`: a tracer has no sharding, which is decided at compilation."""
        raise AttributeError(
            f"{type(self).__name__} has no attribute 'sharding': the sharding of a traced array is decided when it is "
            "compiled; what its type says of it is phlox.typeof(x).sharding"
        )

    @property
    def device(self) -> None:
        """None: the device of a traced array is decided when it is compiled, and ``device=None`` leaves it open.

        The array API standard demands the attribute. Libraries read it to create further arrays on the same device.
        """

    # Methods that need a buffer exist and raise when they are called, so that `hasattr` is true as for arrays.
    addressable_data = _refused_method("addressable_data")
    delete = _refused_method("delete")
    devices = _refused_method("devices")
    is_deleted = _refused_method("is_deleted")
    tobytes = _refused_method("tobytes")
    tolist = _refused_method("tolist")
    unsafe_buffer_pointer = _refused_method("unsafe_buffer_pointer")
    addressable_shards = _refused_property("addressable_shards")
    committed = _refused_property("committed")
    global_shards = _refused_property("global_shards")
    is_fully_addressable = _refused_property("is_fully_addressable")
    is_fully_replicated = _refused_property("is_fully_replicated")


def check_number(aval: ShapedArray, use: str) -> None:
    """Raises unless arrays of this type have no axes; `use` names the conversion in the message, as ``int()``."""
    if aval.shape:
        raise errors.ShapeError(
            f"Only scalar arrays can be converted to Python scalars: {use} of an array of type {aval.short}",
            instead="x.item(), or an index",
            shapes=[aval.shape],
        )


def check_truth(aval: ShapedArray) -> None:
    """Raises unless arrays of this type have exactly one element, so that they have a truth value."""
    if aval.size != 1:
        which = "an array with more than one element" if aval.size else "an empty array"
        raise errors.ShapeError(
            f"The truth value of {which} is ambiguous: an array of type {aval.short}",
            instead="x.any() or x.all()" if aval.size else "x.size > 0",
            shapes=[aval.shape],
        )


def check_index(aval: ShapedArray) -> None:
    """Raises unless arrays of this type are a single integer without axes."""
    if aval.shape or dtypes.kind(aval.dtype) not in "iu":
        raise errors.ArgumentError(
            f"Only integer scalar arrays can be converted to a scalar index. This is one of type {aval.short}",
            instead="an index of x, or x.astype(int)",
        )


def check_live(tracer: Tracer) -> None:
    """Raises `UnexpectedTracerError` if the transformation that created `tracer` has ended."""
    if not tracer.owner.live:
        raise errors.UnexpectedTracerError(
            f"Encountered an unexpected tracer: a traced value of type {tracer.aval.str_short(False)} was used after "
            "its transformation had ended"
            + (f" ({origin})" if (origin := tracer.owner.explain(tracer)) else "")
            + (f"; it was created on line {site}" if (site := tracer.owner.creation_site(tracer)) is not None else "")
            + "; transformed functions cannot save intermediate values to global state",
            instead="return the value from the transformed function; do not store it in a global, a list or self",
            aval=tracer.aval,
        )


def leaked(ref: Any) -> errors.UnexpectedTracerError:
    """The error for a reference that is used outside of the transformation in which it was made."""
    return errors.UnexpectedTracerError(
        f"a reference of type {ref.aval} was used outside of the transformation in which it was made"
        + (f"; it was created on line {ref.location}" if ref.location is not None else ""),
        instead="return the value, ref[...], from the transformed function",
    )


def typeof(x: Any) -> ShapedArray:
    """The type of `x` as an array: shape, dtype and weak type.

    Args:
      x: array or number, or a tracer.

    Returns:
      A `ShapedArray`.

    Raises:
      ArgumentError: `x` is nothing that can become an array.

    >>> typeof(np.zeros((2, 3), np.float32))
    ShapedArray(float32[2,3])
    """
    aval = typeof_value(x)
    if aval is None:
        raise not_an_array(x)
    return aval


def not_an_array(x: Any, argument: str = "a value") -> errors.ArgumentError:
    """The error for an `x` that cannot become an array; the message calls it `argument`."""
    text = repr(x)
    shown = text if len(text) <= 60 else text[:57] + "..."
    if is_masked(x):
        return errors.ArgumentError(
            f"numpy masked arrays are not supported as direct inputs: {argument} is {shown}",
            instead="x.filled(value), or phlox.numpy.where(mask, value, x)",
            argument=argument,
            value=x,
        )
    if is_of_jax(x):
        return of_jax(argument, x)
    return errors.ArgumentError(
        f"{argument} is {shown} of type {type(x).__name__}, which is no array",
        instead=array_advice(x),
        argument=argument,
        value=x,
    )


def array_advice(x: Any) -> str:
    """How to make an array of `x`, which is none."""
    kind = type(x)
    if advice := getattr(kind, "array_advice", ""):
        return str(advice)
    if isinstance(x, np.ndarray | np.generic) and x.dtype.kind not in "mM":
        return "x.astype(float), if its elements are numbers"
    if isinstance(x, str | bytes):
        return "float(x), if it is a number; arrays hold no text"
    if isinstance(x, list | tuple | range):
        return "phlox.numpy.array(...) makes an array of a list or tuple"
    if isinstance(x, dict):
        return "phlox.tree.map of the function; or phlox.numpy.array([*x.values()])"
    if isinstance(x, set | frozenset):
        return "phlox.numpy.array(sorted(x)): a set has no order"
    if kind.__module__ == "datetime" or isinstance(x, np.ndarray | np.generic):
        return "a number of seconds or days, as np.datetime64(x, 's').astype(int)"
    if hasattr(kind, "__array__") or hasattr(kind, "__dlpack__"):
        return "phlox.numpy.asarray(x)"
    if hasattr(kind, "__iter__"):
        return "phlox.numpy.array(list(x))"
    if hasattr(kind, "__float__"):
        return "float(x)"
    return "what the function returns, f(x)" if callable(x) and not isinstance(x, type) else "a number or an array"
