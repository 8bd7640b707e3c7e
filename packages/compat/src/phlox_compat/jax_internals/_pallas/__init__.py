"""``jax.experimental.pallas``: kernels written in Python, in interpret mode.

`pallas_call` runs the kernel once for each point of the grid, in a loop of ordinary operations, so kernels can be
tested, differentiated and mapped on every platform. Kernels are not compiled for the hardware: without
``interpret=True`` the call raises an error.
"""

from __future__ import annotations

from phlox.lax import broadcast as broadcast

from ..._core import Slice, ds
from ._call import pallas_call
from ._control import empty, empty_like, empty_ref_like, loop, num_programs, program_id, run_scoped, when, with_scoped
from ._cost import estimate_cost
from ._helpers import (
    align_to,
    broadcast_to,
    cdiv,
    debug_check,
    debug_print,
    delay,
    enable_debug_checks,
    enable_poison_buffers,
    multiple_of,
    next_power_of_2,
    reciprocal,
    strides_from_shape,
)
from ._kernel import kernel, run_state
from ._semaphores import semaphore_read, semaphore_signal, semaphore_wait
from ._specs import (
    ANY,
    HOST,
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    Element,
    GridSpec,
    MemoryRef,
    MemorySpace,
    RevisitMode,
    Squeezed,
    no_block_spec,
    squeezed,
)

__all__ = [
    "ANY",
    "HOST",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "Element",
    "GridSpec",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Slice",
    "Squeezed",
    "align_to",
    "broadcast_to",
    "cdiv",
    "debug_check",
    "debug_print",
    "delay",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "empty_ref_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "estimate_cost",
    "kernel",
    "loop",
    "multiple_of",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "program_id",
    "reciprocal",
    "run_scoped",
    "run_state",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "squeezed",
    "strides_from_shape",
    "when",
    "with_scoped",
]

dslice = ds
