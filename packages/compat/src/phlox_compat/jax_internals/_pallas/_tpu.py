"""``jax.experimental.pallas.tpu``: what of it has a meaning in interpret mode.

Memory is of one kind, copies between memories are made at once, and waiting for them does nothing. Names that need the
hardware are not there, so that reading them raises an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phlox import lax, numpy as jnp, tree_util
from phlox.ref import Ref

from ._call import run_grid
from ._control import when
from ._helpers import reciprocal as reciprocal
from ._semaphores import Semaphores
from ._specs import CompilerParams as _CompilerParams, GridSpec, MemoryRef, block_of, interprets_all, no_block_spec

PARALLEL, ARBITRARY, CORE_PARALLEL, SUBCORE_PARALLEL = "parallel", "arbitrary", "core_parallel", "subcore_parallel"


class MemorySpace(enum.Enum):
    """Memories of a TPU. In interpret mode all are one."""

    ANY = "any"
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    HBM = "hbm"
    SEMAPHORE = "semaphore_mem"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return MemoryRef(tuple(shape), np.dtype(dtype), self)

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return self.name


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, HBM, SEMAPHORE = MemorySpace.CMEM, MemorySpace.HBM, MemorySpace.SEMAPHORE


class SemaphoreType(enum.Enum):
    """Kinds of semaphores; also the type of a memory with one."""

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int]) -> Semaphores:
        return Semaphores(tuple(shape))

    def new(self) -> Ref:
        """A reference to one semaphore."""
        return Semaphores(()).new()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorCoreMesh:
    """The cores of a TPU, over which `kernel` runs."""

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> dict[str, int]:
        """The number of cores by the name of the axis."""
        return {self.axis_name: self.num_cores}

    @property
    def size(self) -> int:
        """The number of cores."""
        return self.num_cores


def create_tensorcore_mesh(axis_name: str, devices: Any = None, num_cores: int | None = None) -> TensorCoreMesh:
    """A `TensorCoreMesh`; of one core, unless `num_cores` is given."""
    return TensorCoreMesh(axis_name=axis_name, num_cores=num_cores or 1)


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], Any]], None]:
    """Decorator that runs a function without arguments at once, on the first core along an axis of the mesh."""
    return when(lax.axis_index(core_axis_name) == 0)


def core_barrier(sem: Any, *, core_axis_name: str) -> None:
    """Waits for the other cores. In interpret mode they run one after the other, and it does nothing."""


class GridDimensionSemantics(enum.Enum):
    """Whether the points along an axis of the grid may run in any order."""

    PARALLEL = "parallel"
    ARBITRARY = "arbitrary"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"


@dataclasses.dataclass(frozen=True)
class CompilerParams(_CompilerParams):
    """Options of the TPU's compiler; no meaning in interpret mode."""

    dimension_semantics: Any = None
    allow_input_fusion: Any = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False
    opt_level: Any = None


TPUCompilerParams = CompilerParams


@dataclasses.dataclass(frozen=True)
class InterpretParams:
    """Options of JAX's interpreter of TPU kernels: an argument `interpret` of `pallas_call` that counts as True."""

    detect_races: bool = False
    on_race: str = "raise"
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


class PrefetchScalarGridSpec(GridSpec):
    """A `GridSpec` whose index maps receive the leading arguments too, as references after the indices."""

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: int | Sequence[Any] = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@contextlib.contextmanager
def force_tpu_interpret_mode(params: Any = None) -> Iterator[None]:
    """A context in which `pallas_call` interprets kernels although its arguments do not say so."""
    token = interprets_all.set(True)
    try:
        yield
    finally:
        interprets_all.reset(token)


def set_tpu_interpret_mode(params: Any = None) -> None:
    """Interprets all kernels from now on, or none with None."""
    interprets_all.set(params is not None)


def reset_tpu_interpret_mode_state() -> None:
    """Forgets the state of the interpreter, which has none here."""


def _is_ref(x: Any) -> bool:
    return hasattr(x, "swap")


def _value(source: Any) -> Any:
    return source[...] if _is_ref(source) else source


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies an array or the elements of a reference, or of a part of one, to another; with `add` it adds them.

    Both may be trees of references.
    """
    pairs = zip(*(tree_util.tree_leaves(x, is_leaf=_is_ref) for x in (src_ref, dst_ref)), strict=True)
    for source, target in pairs:
        target[...] = target[...] + _value(source) if add else _value(source)


class AsyncCopyDescriptor:
    """A copy, which `start` makes at once."""

    def __init__(self, src_ref: Any, dst_ref: Any, add: bool = False):
        self.src_ref, self.dst_ref, self.add = src_ref, dst_ref, add

    def start(self, priority: int = 0) -> None:
        """Copies."""
        sync_copy(self.src_ref, self.dst_ref, add=self.add)

    def wait(self) -> None:
        """Does nothing: the copy has been made."""

    wait_send = wait_recv = wait


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any = None, *, src_sem: Any = None) -> AsyncCopyDescriptor:
    """A copy between memories of the same core, which `start` makes."""
    return AsyncCopyDescriptor(src_ref, dst_ref)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any = None, *, src_sem: Any = None, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """As `make_async_copy`, already started; with `add` it adds to the target."""
    copy = AsyncCopyDescriptor(src_ref, dst_ref, add)
    copy.start()
    return copy


def emit_pipeline(
    body: Callable[..., None],
    *,
    grid: Sequence[Any],
    in_specs: Any = (),
    out_specs: Any = (),
    scratch_shapes: Any = (),
    tiling: Any = None,
    core_axis: Any = None,
    core_axis_name: Any = None,
    dimension_semantics: Any = None,
    trace_scopes: bool = True,
    no_pipelining: bool = False,
    output_wait_read_only: bool = False,
    _explicit_indices: bool = False,
) -> Callable[..., None]:
    """A function of references that runs `body` on their blocks at each point of an inner grid.

    Args:
      body: function of references to blocks of the inputs, then of the outputs.
      grid: lengths of the axes of the inner grid.
      in_specs, out_specs: a `BlockSpec` for each reference.
      scratch_shapes: types of memory, which `body` receives after the blocks.
      tiling, core_axis, core_axis_name, dimension_semantics, trace_scopes, no_pipelining, output_wait_read_only: how
        the hardware overlaps copies and operations; no meaning in interpret mode.
      _explicit_indices: `body` receives the indices of the grid as its first argument.
    """
    specs = [tree_util.tree_leaves(s, is_leaf=lambda x: hasattr(x, "block_shape")) for s in (in_specs, out_specs)]

    def pipeline(*refs: Any, scratches: Any = ()) -> None:
        count = len(specs[0])
        arrays = [_value(ref) for ref in refs]
        blocks = [block_of(s, x.shape, "emit_pipeline") for s, x in zip([*specs[0], *specs[1]], arrays, strict=True)]
        results = run_grid(
            lambda indices, block_refs, scratch, _scalars: body(
                *([indices] if _explicit_indices else []), *block_refs, *scratch, *scratches
            ),
            GridSpec(grid, scratch_shapes=scratch_shapes),
            arrays[:count],
            arrays[count:],
            blocks[:count],
            blocks[count:],
            (),
            {},
        )
        for ref, result in zip(refs[count:], results, strict=True):
            ref[...] = result

    return pipeline


def load(ref: Any, *, mask: Any = None) -> Any:
    """The elements of a reference; those that `mask` leaves out are not specified."""
    return _value(ref)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes the elements of `val`, those that `mask` selects."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """`x` rotated along an axis by `shift`, and by `stride` more from index to index of `stride_axis`."""
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    parts = [
        jnp.roll(lax.index_in_dim(x, i, stride_axis), shift + i * stride, axis) for i in range(x.shape[stride_axis])
    ]
    return jnp.concatenate(parts, stride_axis)


def repeat(x: Any, repeats: int, axis: int) -> Any:
    """`x` several times, one after the other along an axis (as ``numpy.tile``)."""
    return jnp.concatenate([x] * repeats, axis)


def bitcast(x: Any, ty: Any, dim: int = -2) -> Any:
    """The bits of `x` as another dtype; where widths differ, axis `dim` becomes longer or shorter."""
    if dim % x.ndim != x.ndim - 2:
        return jnp.swapaxes(bitcast(jnp.swapaxes(x, dim, -2), ty), dim, -2)
    old, new = np.dtype(x.dtype).itemsize, np.dtype(ty).itemsize
    if old == new:
        return lax.bitcast_convert_type(x, ty)
    if old < new:
        *lead, rows, columns = x.shape
        groups = x.reshape(*lead, rows * old // new, new // old, columns)
        return lax.bitcast_convert_type(jnp.moveaxis(groups, -2, -1), ty)
    parts = jnp.moveaxis(lax.bitcast_convert_type(x, ty), -1, -2)
    return parts.reshape(*x.shape[:-2], x.shape[-2] * old // new, x.shape[-1])


def is_tpu_device() -> bool:
    """Whether the default device is a TPU; False in interpret mode."""
    return False


def touch(ref: Any) -> None:
    """Declares that a reference is used; no meaning in interpret mode."""


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """`x`: there is one memory in interpret mode."""
    return x
