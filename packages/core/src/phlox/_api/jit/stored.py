"""Compiled programs as bytes: `serialize` and `deserialize_and_load`, as in ``jax.experimental.serialize_executable``.

The bytes are a checksum and a pickle of the parts of a `Compiled`. Devices are stored as their positions among the
devices of the program, so that a program can be loaded for others.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._base.errors import ArgumentError, ExportError
from ..._base.pytree import PyTreeDef
from ..._ir.avals import ShapedArray
from ..._xla.array import Array, put
from ..._xla.compile import JAXLIB_VERSION, JaxRuntimeError, load_serialized
from ..._xla.device_assignment import DeviceAssignment
from ..._xla.devices import Device, devices
from ..._xla.placement import Placement, aval_of, is_committed, placement_for, sharding_of
from ..._xla.program import Program
from .entry import NUMBERS, Consts, Entry
from .references import ReferenceEntry
from .stages import Compiled, Signature


class _Arguments(NamedTuple):
    """The parts of a `BoundCall` that a `Signature` reads."""

    tree: PyTreeDef
    types: Sequence[Any]
    keys: Sequence[Any]
    paths: Sequence[str]

    def names(self) -> Sequence[str]:
        """The path of each leaf in the user's terms."""
        return self.paths


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """The bytes of a compiled program, which `deserialize_and_load` loads in another process without compiling it.

    Arrays that the function closes over are stored too. `phlox.export` writes bytes that other versions and platforms
    can read.

    Args:
      compiled: a compiled function, ``jit(f).lower(...).compile()``.

    Returns:
      (bytes, structure of (args, kwargs), structure of the result). The structures can be pickled if their classes can.

    Raises:
      ExportError: the program calls Python functions or uses references.

    Source: jax.experimental.serialize_executable.

    >>> compiled = phlox.jit(lambda x: 2 * x).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    if type(compiled) is not Compiled:
        raise ArgumentError(
            f"serialize: {type(compiled).__name__} is no compiled program", instead="jit(f).lower(...).compile()"
        )
    program, entry, call = compiled._program, compiled._entry, compiled._call
    if program.is_private or isinstance(entry, ReferenceEntry):
        raise ExportError(
            "serialize: the program calls Python functions or uses references, which other processes do not have",
            instead="a function without callbacks, phlox.debug.print and references",
        )
    executable = program.serialized()
    if executable is None:
        raise ExportError(
            "serialize: the program was read from the cache on disk, where it is no longer",
            instead="phlox.clear_caches(), and jit(f).lower(...).compile() again",
        )
    fields = {
        "jaxlib": JAXLIB_VERSION,
        "executable": executable,
        "assignment": compiled._assignment,
        "placements": [_described(placement) for placement in compiled._placements],
        "leaf_keys": [_described(key) for key in entry.keys],
        "consts": [(np.asarray(x), _described(x._placement)) for x in entry.consts.arrays],
        "in_avals": call.in_avals,
        "names": list(call.names()),
        "out_avals": program.out_avals,
        "results": list(call.out_avals),
        "out_shardings": program.out_shardings,
        "used_indices": list(call.used_indices),
        "donated": (call.donated, program.donated, entry.donated),
        "integer_dtypes": dict(entry.integer_dtypes),
    }
    file = io.BytesIO()
    _Pickler(file, compiled._assignment.devices).dump(fields)
    content = file.getvalue()
    return _checksum(content) + content, call.in_tree, call.out_tree


def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """A compiled program from the bytes that `serialize` returned.

    The bytes can run any code when they are read: load only what you trust.

    Args:
      serialized: the bytes.
      in_tree: the structure of (args, kwargs) that `serialize` returned.
      out_tree: the structure of the result that it returned.
      backend: name of the platform; None for the default one.
      execution_devices: devices to run on, in the order of those of the program; None for the first ones.

    Returns:
      A `Compiled`.

    Raises:
      ExportError: the bytes are of another version of jaxlib, of another platform, or damaged; or there are too few
        devices.

    Source: jax.experimental.serialize_executable.

    >>> saved = serialize(phlox.jit(lambda x: x + 1).lower(1.0).compile())
    >>> deserialize_and_load(*saved).in_avals
    ((ShapedArray(float32[], weak_type=True),), {})
    """
    available = tuple(devices(backend) if execution_devices is None else execution_devices)
    # Machine code with a wrong bit would end the process.
    content = serialized[_CHECKSUM_SIZE:]
    if serialized[:_CHECKSUM_SIZE] != _checksum(content):
        raise ExportError("these are no bytes of serialize, or damaged ones", instead="what serialize returned")
    try:
        fields = _Unpickler(io.BytesIO(content), available).load()
    except IndexError:
        raise ExportError(
            f"the program runs on more than {len(available)} devices", instead="execution_devices with as many"
        ) from None
    if fields["jaxlib"] != JAXLIB_VERSION:
        raise ExportError(
            f"the program was compiled by jaxlib {fields['jaxlib']}, and this is {JAXLIB_VERSION}",
            instead="phlox.export, whose bytes are for all versions",
        )
    assignment: DeviceAssignment = fields["assignment"]
    placements = [_key(parts) for parts in fields["placements"]]
    try:
        loaded = load_serialized(fields["executable"], assignment.devices, len(fields["out_avals"]))
    except JaxRuntimeError as error:
        raise ExportError(
            f"the program cannot be loaded: {error}", instead="the platform it was compiled for"
        ) from None
    donated, donated_arguments, donated_leaves = fields["donated"]
    out_shardings = fields["out_shardings"]
    program = Program(loaded, "", assignment, placements, fields["out_avals"], out_shardings, donated=donated_arguments)
    consts = [_array(*parts) for parts in fields["consts"]]
    leaf_keys = [_key(parts) for parts in fields["leaf_keys"]]
    arguments: Any = _Arguments(in_tree, fields["in_avals"], leaf_keys, fields["names"])
    used_indices = fields["used_indices"]
    call = Signature(arguments, donated, out_tree, fields["results"], None, used_indices, len(consts))
    entry = Entry(program, Consts(consts), used_indices, leaf_keys, out_tree, donated_leaves, fields["integer_dtypes"])
    return Compiled(call, assignment, placements, entry)


_CHECKSUM_SIZE = 32


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _described(key: Any) -> Any:
    """A key in a form that can be pickled: keys are compared by address."""
    return key if key in NUMBERS or type(key) is ShapedArray else (key.aval, key.sharding, key.committed)


def _key(parts: Any) -> Any:
    return placement_for(*parts) if isinstance(parts, tuple) else parts


def _array(value: np.ndarray[Any, Any], parts: Any) -> Array:
    """An array that a function closes over."""
    placement: Placement = _key(parts)
    return put(value, aval_of(placement), sharding_of(placement), committed=is_committed(placement))


class _Pickler(pickle.Pickler):
    """Writes each device as its position among the devices of the program."""

    def __init__(self, file: io.BytesIO, devices: Sequence[Device]):
        super().__init__(file)
        self._devices = list(devices)

    def persistent_id(self, obj: Any) -> int | None:
        """The position of a device; None for other objects."""
        # Devices are objects of a runtime and cannot be pickled; their positions mean the same in other processes.
        return self._devices.index(obj) if type(obj) is type(self._devices[0]) else None


class _Unpickler(pickle.Unpickler):
    """Reads the position of a device as one of the devices to run on."""

    def __init__(self, file: io.BytesIO, devices: Sequence[Device]):
        super().__init__(file)
        self._devices = devices

    def persistent_load(self, pid: Any) -> Device:
        """The device at this position."""
        return self._devices[pid]
