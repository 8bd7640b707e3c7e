"""The modules and texts that classes of phlox have when phlox stands in the place of jax.

Libraries recognize arrays by the text of ``type(x).__module__``: autoray and PennyLane choose the module of functions
by it, Keras looks for a class ``jax.Array``, treescope for a class of jaxlib. Descriptions of layers show scalar types,
lessons print ``type(x.sharding)``. Programs print tracers, as jax's tutorials do: under `grad` and `jvp` that shows
their values. Programs that catch errors print ``type(error).__name__``; tracebacks show ``__qualname__``, which stays.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from phlox import Array, P, Ref, ShapeDtypeStruct, custom_jvp, custom_vjp, errors, numpy, typeof
from phlox.core import Tracer
from phlox.tree_util import Partial

# The module phlox.sharding would load shard_map at each start.
from .._core import (
    ArrayImpl,
    BatchTracer,
    JaxException,
    JaxprTrace,
    JaxprTracer,
    JVPTracer,
    NamedSharding,
    SingleDeviceSharding,
    TangentTrace,
)

#: class, module of JAX, name in it
_CLASSES = (
    (Array, "jax", "Array"),
    (ArrayImpl, "jaxlib._jax", "ArrayImpl"),
    (ShapeDtypeStruct, "jax", "ShapeDtypeStruct"),
    (Tracer, "jax._src.core", "Tracer"),
    (Ref, "jax._src.core", "Ref"),
    (JaxprTrace, "jax._src.interpreters.partial_eval", "DynamicJaxprTrace"),
    (JaxprTracer, "jax._src.interpreters.partial_eval", "DynamicJaxprTracer"),
    (JVPTracer, "jax._src.interpreters.ad", "JVPTracer"),
    (BatchTracer, "jax._src.interpreters.batching", "BatchTracer"),
    (type(numpy.float32), "jax._src.numpy.scalar_types", "_ScalarMeta"),
    (custom_jvp, "jax._src.custom_derivatives", "custom_jvp"),
    (custom_vjp, "jax._src.custom_derivatives", "custom_vjp"),
    (NamedSharding, "jax.sharding", "NamedSharding"),
    (SingleDeviceSharding, "jax.sharding", "SingleDeviceSharding"),
    (P, "jax", "P"),
    (Partial, "jax.tree_util", "Partial"),
)

#: the classes of `jax.errors`; all other errors are phlox's own, with the name of the class that jax raises
_ERRORS = """
    ConcretizationTypeError InconclusiveDimensionOperation JAXIndexError JAXTypeError JaxRuntimeError JaxprTypeError
    KeyReuseError NonConcreteBooleanIndexError TracerArrayConversionError TracerBoolConversionError
    TracerIntegerConversionError UnexpectedTracerError
"""

#: classes of other modules of jax, which keep their names
_OTHER_ERRORS = """
    ShardingTypeError SparseEfficiencyError TypePromotionError
"""

#: the class that jax raises most often, for errors whose first class of Python's is another
_RAISED_BY_JAX = {
    "AxisError": "ValueError",
    "CompilerOptionError": "JaxRuntimeError",
    "DeletedArrayError": "RuntimeError",
    "DeviceError": "ValueError",
    "FunctionTreeError": "TypeError",
    "IndexTypeError": "TypeError",
    "ShapeError": "ValueError",
    "ShardingAssertionError": "AssertionError",
    "TreeError": "ValueError",
    "UndefinedRuleError": "AttributeError",
}

#: error: class of jax: the functions of phlox where jax raises that class, which is not the one it raises most often
_RAISED_BY_FUNCTIONS = {
    "ArgumentError": {
        "ValueError": "_check_axis_count _parse _refuse_none _take choose concatenate delete diff pad piecewise select "
        "unique"
    },
    "AxisError": {"TypeError": "_concatenate_types _rev_types"},
    "ConcretizationTypeError": {"TypeError": "__format__"},
    "DerivativeError": {"ValueError": "_refuse_order refuse"},
    "DeviceError": {"IndivisibleError": "_devices"},
    "DtypeError": {"ValueError": "_check_arange _clip _float _inexact bits fft"},
    "ShapeError": {
        "TypeError": "__len__ _axes_lists _broadcast_types _check_types _clamp_types _concatenate_types _dot_types "
        "_dynamic_slice_types _fill_in _lengths _refuse_operands _select_types _slice_types _sort_types "
        "_transpose_types _truth _update_types as_b broadcast_shape check_carry check_number conv_dimension_numbers "
        "fold_in full polyfit product switch tensordot transpose unstack_rows",
        "IndivisibleError": "check_fit shard_shape",
    },
    "ShardingTypeError": {"ValueError": "_over_auto_axes"},
    "TracerIntegerConversionError": {"TypeError": "as_shape"},
}


def _jvp_tracer_text(x: JVPTracer) -> str:
    if isinstance(x.tangent, Tracer) and isinstance(x.tangent.owner, TangentTrace):
        return f"GradTracer(primal={x.primal}, typeof(tangent)={x.tangent.aval.str_short(True)})"
    return f"JVPTracer(primal={x.primal}, tangent={x.tangent})"


_TEXTS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (JaxprTracer, lambda x: f"JitTracer({x.aval})"),
    (BatchTracer, lambda x: f"VmapTracer(aval={x.aval}, batched={typeof(x.value)})"),
    (JVPTracer, _jvp_tracer_text),
)


def take_jax_names() -> None:
    """Gives the classes that users of jax meet the module, the name and the text that they have in jax."""
    for cls, module, name in _CLASSES:
        cls.__module__, cls.__qualname__, cls.__name__ = module, name, name
    scalar_type = type(numpy.float32)
    for cls in vars(numpy).values():
        if isinstance(cls, scalar_type):
            cls.__module__ = "jax.numpy"
    for tracer_class, text in _TEXTS:
        tracer_class.__repr__ = text  # type: ignore[assignment]
    # A tutorial of jax, and interpreters that users wrote, look at the batch.
    for name, of in (("val", "value"), ("batch_dim", "dim")):
        setattr(BatchTracer, name, property(operator.attrgetter(of)))
    # Programs print and compare the messages of `checkify`, in which jax has no source lines.
    JaxException.place = lambda self: ""  # type: ignore[method-assign]
    of_jax = _ERRORS.split()
    for name in of_jax:
        getattr(errors, name).__module__ = "jax.errors"
    for name in {*errors.__all__} - {*of_jax, *_OTHER_ERRORS.split(), "PhloxError"}:
        cls = getattr(errors, name)
        if issubclass(cls, errors.PhloxError):
            base = next(base for base in cls.__mro__ if not issubclass(base, errors.PhloxError))
            cls.__name__ = _RAISED_BY_JAX.get(name, base.__name__)
    for name, raised in _RAISED_BY_FUNCTIONS.items():
        cls = getattr(errors, name)
        _name_by_function(cls, {f: _namesake(cls, c) for c, functions in raised.items() for f in functions.split()})


def _namesake(cls: type, name: str) -> type:
    """A class that differs from its base `cls` in the name that programs print."""
    namesake = type(cls)(name, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    namesake.__qualname__ = cls.__qualname__
    return namesake


def _name_by_function(cls: type, namesakes: dict[str, type]) -> None:
    """Gives the errors of the class `cls` that are made in these functions other classes."""

    def __new__(error: type, *args: Any, **_data: Any) -> Any:
        if error is cls:
            frame = sys._getframe(1)
            # The method that refuses all uses of a traced value is called by the one that the user called.
            if frame.f_code.co_name == "_refuse" and frame.f_back is not None:
                frame = frame.f_back
            error = namesakes.get(frame.f_code.co_name, cls)
        return Exception.__new__(error, *args)

    cls.__new__ = __new__  # type: ignore[method-assign, assignment]
