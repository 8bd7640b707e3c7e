"""The modules that classes of phlox name as theirs when phlox stands in the place of jax.

Libraries recognize arrays by the text of ``type(x).__module__``: autoray and PennyLane choose the module of functions
by it, Keras looks for a class ``jax.Array``, treescope for a class of jaxlib. Descriptions of layers show scalar types.
"""

from __future__ import annotations

from phlox import Array, Ref, ShapeDtypeStruct, custom_jvp, custom_vjp, errors, numpy
from phlox.core import Tracer

from .._core import ArrayImpl, BatchTracer, JaxprTrace, JaxprTracer, JVPTracer

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
)

#: the classes of `jax.errors`; all other errors are phlox's own
_ERRORS = """
    ConcretizationTypeError KeyReuseError NonConcreteBooleanIndexError TracerArrayConversionError
    TracerBoolConversionError TracerIntegerConversionError UnexpectedTracerError
"""


def take_jax_names() -> None:
    """Gives the classes that users of jax meet the module and the name that they have in jax."""
    for cls, module, name in _CLASSES:
        cls.__module__, cls.__qualname__, cls.__name__ = module, name, name
    scalar_type = type(numpy.float32)
    for cls in vars(numpy).values():
        if isinstance(cls, scalar_type):
            cls.__module__ = "jax.numpy"
    for name in _ERRORS.split():
        getattr(errors, name).__module__ = "jax.errors"
