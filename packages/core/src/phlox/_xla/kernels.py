"""Custom calls of the native kernels in phlox-kernels, an optional package, for what XLA is slow at on CPUs.

The package is looked for when the first program is lowered that could call one of them. A program that calls them is
written, and then found in the disk cache by its text, only where they are registered.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Mapping, Sequence

from .._base import config
from .._base.source import warn
from .._ir.avals import ShapedArray
from .foreign import foreign_call, row_majors, typed
from .platforms import cpu_only
from .targets import pycapsule, register_ffi_target
from .text import Function, Value

_PACKAGE = "phlox_kernels"


def has_kernel(f: Function, target: str) -> bool:
    """Whether the program may call the kernel: it runs on one CPU device of this machine, and the kernel is there."""
    # XLA does not know how to split the call of a kernel over devices.
    allowed = config.current().native_kernels and f.module.partitions == 1 and cpu_only(f)
    return allowed and target in registered()


def is_argument(f: Function, x: Value) -> bool:
    """Whether a value is an argument of the program, which is in memory for a kernel to read."""
    return x in f.module.inputs


@functools.cache
def registered() -> frozenset[str]:
    """The kernels of the package, registered with the runtime; none if it is not installed or does not work here."""
    if importlib.util.find_spec(_PACKAGE) is None:
        return frozenset()
    try:
        handlers = importlib.import_module(_PACKAGE).handlers()
        for name, function in handlers.items():
            register_ffi_target(name, pycapsule(function))
    except (OSError, AttributeError, RuntimeError) as error:  # not loaded, other names, refused by the runtime
        warn(f"phlox-kernels is installed but does not work here, so XLA's own forms are used: {error}", UserWarning)
        return frozenset()
    return frozenset(handlers)


def kernel(
    f: Function,
    target: str,
    xs: Sequence[Value],
    outs: Sequence[ShapedArray],
    *,
    aliases: Mapping[int, int] | None = None,
    **attributes: int,
) -> list[Value]:
    """Adds the call of a kernel.

    Args:
      aliases: index of an operand -> index of the result that takes over its memory.
      attributes: 64-bit integers.
    """
    typed_attributes = typed({name: f"{value} : i64" for name, value in attributes.items()})
    layouts = (row_majors([x.aval for x in xs]), row_majors(outs))
    return foreign_call(f, target, xs, outs, typed_attributes, layouts=layouts, aliases=aliases)
