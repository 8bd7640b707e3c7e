"""What other programs get of an array: elements by DLPack and Python's buffer protocol, their address and size."""

from __future__ import annotations

from typing import Any

from .._base.errors import DeviceError
from .._ir.dtypes import ExtendedDtype
from . import transfer


class Exchange:
    """Base class of `Array`, with the methods by which others reach its buffers without a copy."""

    __slots__ = ()

    def __buffer__(self: Any, flags: int) -> memoryview:
        # Python calls it since 3.12, for ``memoryview(x)`` and ``bytes(x)``; NumPy before it calls `__array__`.
        if self.aval.dtype.isbuiltin != 1:  # jaxlib's own error takes 15 us, which `numpy.asarray` would wait for
            raise BufferError(f"arrays of {self.aval.dtype} have no elements that other programs know")
        self.block_until_ready()  # as in `Array.__array__`
        return memoryview(self._buf)

    def __bytes__(self: Any) -> bytes:
        # Python before 3.12 does not call `__buffer__`: it would take the elements of an array of integers for bytes.
        return bytes(self.__buffer__(0))

    def __dlpack__(
        self: Any, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if isinstance(self.aval.dtype, ExtendedDtype):
            raise BufferError(f"arrays of {self.aval.dtype} have no elements that other programs know")
        here = self.__dlpack_device__()  # raises before anything is copied
        if dl_device is not None and tuple(dl_device) != here:
            raise BufferError(f"the array is on the DLPack device {here}, not on {tuple(dl_device)}")
        return transfer.to_dlpack(self.__deepcopy__({})._buf if copy else self._buf, max_version, bool(copy))

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        self._check_alive()
        try:
            return transfer.dlpack_device(self.sharding)
        except DeviceError as error:  # the class of the protocol
            raise BufferError(str(error)) from error

    def on_device_size_in_bytes(self: Any) -> int:
        """The bytes that the elements take on all devices, with the padding of the devices."""
        self._check_alive()
        return self._buf.on_device_size_in_bytes()

    def unsafe_buffer_pointer(self: Any) -> int:
        """The address of the elements on the one device that holds them."""
        self.block_until_ready()  # as in `Array.__array__`
        transfer.one_device(self.sharding)
        return transfer.pointer(self._buf)
