"""Custom calls of NVIDIA's libraries on stacks of matrices, and of the kernels that jaxlib's plugin for CUDA has.

The plugin registers the targets when the client of the GPU starts (`gpu.register_targets`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from .._ir.avals import ShapedArray
from .matrix_calls import Attribute, matrix_call
from .platforms import platform_of
from .text import Function, Value


def is_cuda(f: Function) -> bool:
    """Whether the program is compiled for NVIDIA GPUs."""
    return platform_of(f) == "cuda"


def cuda_call(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    *,
    aliases: Mapping[int, int] | None = None,
    column_major: bool = True,
    **attributes: Attribute,
) -> list[Value]:
    """Adds the call of a target of the plugin, such as ``cusolver_getrf_ffi``; see `matrix_call`."""
    if target.startswith("cuhybrid_"):
        _load_hybrid()
    return matrix_call(f, target, operands, outs, aliases=aliases, attributes=attributes, column_major=column_major)


@functools.cache
def _load_hybrid() -> None:
    """Prepares the routines that compute on the CPU for arrays on the GPU: they take LAPACK from SciPy."""
    import importlib

    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()
