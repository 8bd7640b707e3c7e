"""Classes and tables of JAX's inside that libraries name: in annotations, ``isinstance``, or to add an entry."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from phlox import Ref as Ref, devices, effects_barrier, typeof
from phlox.dtypes import issubdtype, result_type
from phlox.errors import TypePromotionError as TypePromotionError
from phlox.export import is_symbolic_dim
from phlox.extend import Primitive, ShapedArray
from phlox.extend.core import Literal, Var
from phlox.lax import ConvDimensionNumbers, Precision
from phlox.sharding import Mesh, NamedSharding, PartitionSpec, get_abstract_mesh

from .._core import (
    AbstractRef as AbstractRef,
    ArrayImpl as ArrayImpl,
    client as _client,
    clients as _clients,
    config,
    native,
)

#: an operand of an equation
Atom = Var | Literal
AbstractValue = ShapedArray
DType = np.dtype
AxisSize = int
#: a value of a variable, and the parameters of an equation
Value = Any
ParamDict = dict[str, Any]
wait_for_tokens = effects_barrier
XlaRuntimeError = native.JaxRuntimeError if hasattr(native, "JaxRuntimeError") else RuntimeError

#: how classes become arrays; libraries copy the entry of one class to a class of their own
pytype_aval_mappings: dict[type, Any] = defaultdict(lambda: typeof)
canonicalize_dtype_handlers: dict[type, Any] = defaultdict(lambda: lambda x: x)


class DropVar(Var):
    """The variable of a result that is not used. phlox's Jaxprs use plain variables, so nothing is an instance."""


class TypedFloat(float):
    """A float with a dtype of its own in JAX; phlox's literals are arrays."""


class TypedInt(int):
    """An int with a dtype of its own in JAX."""


class TypedComplex(complex):
    """A complex number with a dtype of its own in JAX."""


class TypedNdArray:
    """A constant of a Jaxpr in JAX; phlox's are arrays."""


class GlobalAsyncCheckpointManagerBase:
    """The base of JAX's own writers of checkpoints, which phlox does not have, so nothing is an instance."""


class CallPrimitive(Primitive):
    """A call of the Jaxpr in the parameter ``call_jaxpr``."""

    call_primitive = True


#: calls of Jaxprs as older JAX had them; no Jaxpr contains them
call_p = CallPrimitive("compat_call", multiple_results=True)
core_call_p = call_p
closed_call_p = CallPrimitive("compat_closed_call", multiple_results=True)
xla_pmap_p = Primitive("compat_pmap", multiple_results=True)

_EMPTY_MESH = Mesh(np.empty((), object), ())


class _ResourceEnvironment:
    """The mesh of ``with mesh:``, which libraries read before they constrain a sharding."""

    @property
    def physical_mesh(self) -> Mesh:
        """A mesh without axes outside of ``with mesh:``. That of `set_mesh` is not shown, as in JAX."""
        entered = config.current().entered_mesh
        return _EMPTY_MESH if entered is None else entered


thread_resources = SimpleNamespace(env=_ResourceEnvironment())
global_state = SimpleNamespace(client=None, process_id=0, num_processes=1, coordinator_address=None)

#: XLA's clients by platform, those that have started
_backends = _clients


#: how products take their precision
PrecisionLike = None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
#: how `conv_general_dilated` takes the order of axes
ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """`aval` itself: phlox has no types with values."""
    return aval


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of an array in memory."""
    return aval.physical


def get_backend(platform: str | None = None) -> Any:
    """XLA's client of a platform."""
    return _client(platform)


def backends() -> dict[str, Any]:
    """XLA's clients by platform."""
    return {devices()[0].platform: _client()}


def backend_compile(*_args: Any, **_kwargs: Any) -> None:
    """Not used by phlox: libraries put a function of their own in its place in order to observe compilation."""


backend_compile_and_load = backend_compile


def gensym(*_args: Any) -> type[Var]:
    """A function that makes a variable of a type."""
    return Var


def supports_inf(dtype: Any) -> bool:
    """Whether a dtype has an infinity."""
    return bool(issubdtype(dtype, np.inexact) and np.isinf(np.array(np.inf).astype(dtype)))


def dtype(x: Any) -> np.dtype[Any]:
    """The dtype that an array, a number or a scalar type has as an array."""
    if x is None:
        raise ValueError("None has no dtype")
    result: np.dtype[Any] = result_type(x)
    return result


_dtype = dtype


def to_complex_dtype(dtype: Any) -> np.dtype[Any]:
    """The complex dtype of numbers of a dtype: complex128 for those of 64 bits."""
    is_wide = np.dtype(dtype) in (np.float64, np.complex128, np.int64, np.uint64)
    return np.dtype(np.complex128 if is_wide else np.complex64)


def canonicalize_sharding(sharding: Any, api_name: str, check_mesh_consistency: bool = True) -> NamedSharding | None:
    """A spec as a `NamedSharding` over the mesh of the context; a sharding without a mesh is None."""
    if isinstance(sharding, PartitionSpec):
        return NamedSharding(get_abstract_mesh(), sharding)
    if sharding is not None and not isinstance(sharding, NamedSharding):
        raise TypeError(f"`out_sharding` of {api_name} is {sharding!r}, neither a NamedSharding nor a PartitionSpec")
    return None if sharding is None or sharding.mesh.empty else sharding


@runtime_checkable
class SupportsDType(Protocol):
    """Anything with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


def is_constant_dim(d: Any) -> bool:
    """Whether a length is a number."""
    return not is_symbolic_dim(d)
