"""Foreign functions: compiled code that programs call by name, registered with XLA's runtime."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, NotRequired, TypedDict

import jaxlib

from .._base.errors import DeviceError, UnsupportedError
from .._base.native import native


@functools.cache
def _registry() -> Any:
    """jaxlib's keeper of foreign functions by platform, who passes on those for the CPU from now on."""
    import jaxlib.xla_client as xla_client  # which `native` goes round

    xla_client.register_custom_call_handler("cpu", native.register_custom_call_target)
    xla_client.register_custom_type_handler("cpu", native.register_custom_type)
    return xla_client


class TypeRegistration(TypedDict):
    """What `register_ffi_type` takes: capsules with pointers to an ``XLA_FFI_TypeId`` and an ``XLA_FFI_TypeInfo``."""

    type_id: Any
    type_info: NotRequired[Any]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Registers a foreign function under a name that `ffi_call` can then call.

    Args:
      name: the name of the target.
      fn: a capsule with a pointer to the handler (see `pycapsule`), or a dict of them by stage (``"execute"`` …).
      platform: where the function runs.
      api_version: 1 for handlers of XLA's typed interface, 0 for the older kind.
      **kwargs: passed on to jaxlib.

    Returns:
      None.

    Raises:
      JaxRuntimeError: XLA does not take `fn`.

    >>> import jaxlib.cpu._lapack as lapack  # doctest: +SKIP
    >>> register_ffi_target("lapack_spotrf_ffi", lapack.registrations()["lapack_spotrf_ffi"])  # doctest: +SKIP
    """
    _registry().register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: TypeRegistration, platform: str = "cpu") -> None:
    """Registers a type of user data that handlers of foreign functions keep between their stages.

    Args:
      name: the name of the type.
      type_registration: a dict with a capsule for the type's id, and if need be one for what is known of it.
      platform: where the handlers run.

    Returns:
      None.

    Raises:
      JaxRuntimeError: XLA does not take it.

    >>> state_type = ctypes.CDLL("./handlers.so")  # doctest: +SKIP
    >>> register_ffi_type("state", {"type_id": pycapsule(state_type.id)})  # doctest: +SKIP
    """
    _registry().register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Refuses: jaxlib takes the id of a type together with the type, by `register_ffi_type`.

    Args:
      name: the name of the type.
      obj: a capsule with its id.
      platform: where the handlers run.

    Returns:
      Nothing: it always raises.

    Raises:
      UnsupportedError: always.

    >>> register_ffi_type_id("state", None)
    Traceback (most recent call last):
    UnsupportedError: register_ffi_type_id('state'): jaxlib has no registration of a type's id alone
    """
    raise UnsupportedError(
        f"register_ffi_type_id({name!r}): jaxlib has no registration of a type's id alone",
        instead=f"register_ffi_type({name!r}, {{'type_id': ...}})",
    )


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Tells the compiler that a target works on each example of a batch alone: devices can share the batch.

    Args:
      name: the name that it is registered under.

    Returns:
      None.

    >>> register_ffi_target_as_batch_partitionable("documentation_half")
    """
    native.register_custom_call_as_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """A function of a library that was loaded with `ctypes`, as the capsule that `register_ffi_target` takes.

    Args:
      funcptr: a function of a ``ctypes.CDLL``.

    Returns:
      A capsule with its address.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    build = ctypes.pythonapi.PyCapsule_New
    build.restype = ctypes.py_object
    build.argtypes = (ctypes.c_void_p, ctypes.c_char_p, destructor)
    return build(funcptr, None, destructor(0))


def include_dir() -> str:
    """The folder with the C++ headers of XLA's interface for foreign functions, which come with jaxlib.

    Returns:
      A path.

    Raises:
      DeviceError: jaxlib is not in a folder.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    places = list(jaxlib.__path__)
    if not places:
        raise DeviceError("jaxlib lies in no folder, so its headers cannot be found")
    return os.path.join(places[0], "include")
