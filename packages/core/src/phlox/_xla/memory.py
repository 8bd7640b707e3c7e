"""The use of memory: live arrays by size and origin, and the sizes of a program that ran out of memory.

Each buffer knows the Python lines that made it, as jaxlib notes them; each compiled program knows its own sizes. Both
are asked only when somebody wants to know, or when an allocation has failed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from .._base import source
from .._base.errors import OutOfMemoryError
from .._base.native import native
from .devices import client
from .placement import sharding_of_buffer
from .sharding import type_with_sharding

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
#: how many groups of arrays an error names
_SHOWN = 5
_SIZES = ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes", "alias_size_in_bytes")


@dataclasses.dataclass(frozen=True)
class LiveArrays:
    """Live arrays of one type that the same line of the user's program made.

    Attributes:
      bytes: their size on the devices of this process, in sum.
      count: how many there are.
      type: their type, such as ``f32[3,4]``.
      origin: the line, as ``file:line (function)``; "" if it is not known.
      devices: names of the devices of this process that hold them.

    >>> x = jnp.zeros((100, 7))
    >>> [group.bytes for group in live_memory() if group.type == "f32[100,7]"]
    [2800]
    """

    bytes: int
    count: int
    type: str
    origin: str
    devices: tuple[str, ...]

    def __str__(self) -> str:
        many = f"{self.count} × " if self.count > 1 else ""
        where = f", made at {self.origin}" if self.origin else ""
        return f"{readable(self.bytes)}: {many}{self.type} on {', '.join(self.devices)}{where}"


def live_memory(platform: str | None = None) -> list[LiveArrays]:
    """The live arrays of this process, grouped by their type and the line that made them, the largest first.

    Args:
      platform: name of a platform, such as ``'cpu'``; None for the default one.

    Returns:
      A list of `LiveArrays`. Arrays that share a buffer count once; those of the real jax are not among them.

    >>> x = jnp.zeros((50, 3))
    >>> any(group.type == "f32[50,3]" for group in live_memory())
    True
    """
    groups: dict[Any, list[int]] = {}
    seen = set()
    for buf in client(platform).live_arrays():
        # An array may be listed once for each of its devices.
        sharding = sharding_of_buffer(buf)
        if sharding is None or id(buf) in seen or buf.is_deleted():
            continue
        seen.add(id(buf))
        devices = tuple(str(d) for d in sharding.devices if d in sharding.addressable_devices)
        held = groups.setdefault((type_with_sharding(buf.aval, sharding).short, origin(buf), devices), [0, 0])
        # Bytes on this process's devices: replicated arrays count once for each device.
        held[0] += math.prod(sharding.shard_shape(buf.aval.shape)) * buf.aval.dtype.itemsize * len(devices)
        held[1] += 1
    live_groups = [LiveArrays(size, count, *key) for key, (size, count) in groups.items()]
    return sorted(live_groups, key=lambda group: (-group.bytes, group.type, group.origin))


def origin(buf: Any) -> str:
    """The user's line that made a buffer, as ``file:line (function)``; "" if jaxlib was told not to note it."""
    trace = buf.traceback
    # The traceback has the innermost frame first, so the first one outside of phlox is the user's line.
    for frame in () if trace is None else trace.frames:
        if not source.is_internal(frame.file_name):
            return f"{frame.file_name}:{frame.line_num} ({frame.function_name})"
    return ""


def readable(size: float) -> str:
    """A number of bytes with a unit: ``3.8 MiB``."""
    power = 0
    while size >= 1024 and power + 1 < len(_UNITS):
        size /= 1024
        power += 1
    return f"{size:.4g} {_UNITS[power]}"


def explain(error: BaseException, maker: str = "") -> None:
    """Raises an `OutOfMemoryError` in place of `error`, if XLA found no memory; else does nothing.

    `maker` is the line that asked for the computation, if it is not the current one.
    """
    import re  # only where an error is raised

    text = str(error)
    if not isinstance(error, native.JaxRuntimeError) or isinstance(error, OutOfMemoryError):
        return
    # The second is of a computation that reads what the first one could not allocate.
    if not text.startswith("RESOURCE_EXHAUSTED") and "Out of memory allocating" not in text:
        return
    # XLA words this differently by platform ("allocating", "allocate"), so that the number is searched for.
    match = re.search(r"allocat\w*\s+([\d.]+)\s*(bytes|[KMGTP]iB)", text)
    requested_bytes = int(float(match[1]) * 1024 ** _UNITS.index(match[2])) if match else None
    # The program that failed is not known here: the error comes from a run that was started earlier.
    program = None if requested_bytes is None else _program_that_needs(requested_bytes, client().live_executables())
    largest = live_memory()
    what = (
        f"there is no memory for {readable(requested_bytes)}" if requested_bytes is not None else "there is no memory"
    )
    lines = [f"{what}{f', for the computation at {maker}' if maker else ''}. XLA: {text.splitlines()[0]}"]
    if program is not None:
        sizes = ", ".join(f"{name} {readable(size)}" for name, size in program.items() if name != "name")
        lines.append(f"The program {program['name']} needs on each device: {sizes}")
    if largest:
        total = sum(group.bytes for group in largest)
        lines.append(f"Live arrays have {readable(total)} in sum; the largest are")
        lines += [f"  {group}" for group in largest[:_SHOWN]]
    raise OutOfMemoryError(
        "\n".join(lines),
        instead="smaller parts, donated arguments, or `del` of arrays that are not needed any more",
        requested=requested_bytes,
        program=program,
        largest=largest,
        # `from None`, as the message repeats the first line of XLA's.
    ) from None


def _program_that_needs(min_bytes: int, executables: Iterable[Any]) -> dict[str, Any] | None:
    """Name and sizes of the smallest loaded program one of whose parts is at least `min_bytes` large."""
    programs = []
    for executable in executables:
        try:
            stats = executable.get_compiled_memory_stats()
            name = executable.hlo_modules()[0].name
        except native.JaxRuntimeError:  # not all platforms have these figures
            continue
        sizes = [getattr(stats, size) for size in _SIZES]
        if max(sizes) >= min_bytes or stats.peak_memory_in_bytes >= min_bytes:
            parts = dict(
                zip(("arguments", "results", "temporary", "shared by arguments and results"), sizes, strict=True)
            )
            programs.append({"name": name, **parts, "at most at once": stats.peak_memory_in_bytes})
    return min(programs, key=lambda program: program["at most at once"], default=None)
