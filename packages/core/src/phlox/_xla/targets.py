"""Registration of foreign functions: compiled functions that programs call by name, through XLA's FFI."""

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
    """jaxlib's module that keeps registrations by platform; from now on it registers those for the CPU with XLA."""
    import jaxlib.xla_client as xla_client  # slow to import, so `native` avoids it

    # Handlers are kept until the platform has a client, so registering needs none.
    xla_client.register_custom_call_handler("cpu", native.register_custom_call_target)
    xla_client.register_custom_type_handler("cpu", native.register_custom_type)
    return xla_client


class TypeRegistration(TypedDict):
    """The argument of `register_ffi_type`: capsules with pointers to ``XLA_FFI_TypeId`` and ``XLA_FFI_TypeInfo``."""

    type_id: Any
    type_info: NotRequired[Any]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Registers a foreign function, so that `ffi_call` can call it by name.

    Args:
      name: the name of the target.
      fn: a capsule with a pointer to the handler (see `pycapsule`), or a dict of capsules by stage (``"execute"`` …).
      platform: where the function runs.
      api_version: 1 for handlers of XLA's typed FFI, 0 for the older interface.
      **kwargs: passed on to jaxlib.

    Raises:
      JaxRuntimeError: XLA refuses `fn`.

    >>> import jaxlib.cpu._lapack as lapack  # doctest: +SKIP
    >>> register_ffi_target("lapack_spotrf_ffi", lapack.registrations()["lapack_spotrf_ffi"])  # doctest: +SKIP
    """
    _registry().register_custom_call_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: TypeRegistration, platform: str = "cpu") -> None:
    """Registers a type of user data that handlers of foreign functions keep between their stages.

    Args:
      name: the name of the type.
      type_registration: a dict with a capsule for the type's id, and optionally a capsule for its type info.
      platform: where the handlers run.

    Raises:
      JaxRuntimeError: XLA refuses the registration.

    >>> state_type = ctypes.CDLL("./handlers.so")  # doctest: +SKIP
    >>> register_ffi_type("state", {"type_id": pycapsule(state_type.id)})  # doctest: +SKIP
    """
    _registry().register_custom_type(name, type_registration, platform=platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Not supported: jaxlib registers the id of a type together with the type, see `register_ffi_type`.

    Args:
      name: the name of the type.
      obj: a capsule with the id.
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
    """Tells the compiler that a target computes each example of a batch independently, so that the batch axes of its
    operands can be sharded.

    Args:
      name: the name under which the target is registered.

    >>> register_ffi_target_as_batch_partitionable("documentation_half")
    """
    native.register_custom_call_as_batch_partitionable(name)


def pycapsule(funcptr: Any) -> Any:
    """A capsule, as `register_ffi_target` takes it, of a function of a library that was loaded with `ctypes`.

    Args:
      funcptr: a function of a ``ctypes.CDLL``.

    Returns:
      A capsule with the address of the function.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    destructor = ctypes.CFUNCTYPE(None, ctypes.py_object)
    build = ctypes.pythonapi.PyCapsule_New
    build.restype = ctypes.py_object
    build.argtypes = (ctypes.c_void_p, ctypes.c_char_p, destructor)
    # No destructor: the function belongs to its library, and nothing is freed with the capsule.
    return build(funcptr, None, destructor(0))


def include_dir() -> str:
    """The folder with the C++ headers of XLA's FFI, which are part of jaxlib.

    Returns:
      A path.

    Raises:
      DeviceError: jaxlib is not installed in a folder.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    folders = list(jaxlib.__path__)
    if not folders:
        raise DeviceError("jaxlib lies in no folder, so its headers cannot be found")
    return os.path.join(folders[0], "include")
