"""How the arrays of a kernel are cut into blocks, and the types of its scratch memory."""

from __future__ import annotations

import contextvars
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phlox.errors import OptionError
from phlox.numpy import full, iinfo, integer, issubdtype, nan, result_type
from phlox.ref import Ref, new_ref
from phlox.tree_util import register_static

#: whether kernels are interpreted although their call does not say so: `pltpu.force_tpu_interpret_mode`
interprets_all: contextvars.ContextVar[bool] = contextvars.ContextVar("interprets all", default=False)


class MemorySpace(enum.Enum):
    """Memories of the hardware. In interpret mode all are one."""

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return MemoryRef(tuple(shape), np.dtype(dtype), self)

    def __str__(self) -> str:
        return str(self.value)


ANY, HOST = MemorySpace.ANY, MemorySpace.HOST


def is_floating(dtype: np.dtype) -> bool:
    """Whether the elements may be nan; the narrow floats of ml_dtypes have the kind "V" for NumPy."""
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name)


def unspecified(shape: Sequence[int], dtype: Any) -> Any:
    """An array that stands for memory to which nothing has been written: nan, or the smallest integers, as in JAX."""
    dtype = np.dtype(dtype)
    if is_floating(dtype):
        return full(shape, nan, dtype)
    return full(shape, False if dtype == np.bool_ else iinfo(dtype).min, dtype)


@register_static
@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The type of a reference: shape, dtype and memory."""

    shape: tuple[int, ...]
    dtype: np.dtype
    memory_space: Any = None

    def new(self) -> Ref:
        """A reference of this type."""
        return new_ref(unspecified(self.shape, self.dtype))


@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis that is cut into blocks of `block_size`; the index map gives the number of the block."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """An axis of which `block_size` elements are read; the index map gives the first element.

    `padding` is the number of elements that are added in front of the array and behind it.
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis of which the index map gives the slice, at most `block_size` long. Not there in interpret mode."""

    block_size: int


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis of which one element is read, and which the kernel does not see."""


squeezed = Squeezed()
BlockDim = Blocked | Element | BoundedSlice | Squeezed


class RevisitMode(enum.Enum):
    """When a block may be read again; no meaning in interpret mode."""

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many blocks the hardware holds at once; no meaning in interpret mode."""

    buffer_count: Any
    use_lookahead: bool = False
    revisit: Any = None
    prefetched_count: int = 0


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the hardware's compiler; no meaning in interpret mode."""


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for the scheduler of the hardware; no meaning in interpret mode."""

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """The fields as JSON."""
        import json

        return json.dumps(dataclasses.asdict(self)).encode("ascii")


class _NoBlockSpec:
    def __repr__(self) -> str:
        return "no_block_spec"


no_block_spec = _NoBlockSpec()


@dataclasses.dataclass
class BlockSpec:
    """The block of an array that the kernel sees at a point of the grid.

    Args:
      block_shape: for each axis the length of the block, None or `Squeezed` for an axis that the kernel does not see,
        or an `Element`. None: the whole array.
      index_map: ``index_map(*grid indices)`` returns the number of the block along each axis. None: 0 for each.
      pipeline_mode, memory_space: no meaning in interpret mode.
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: Any = dataclasses.field(default=None, kw_only=True)

    def replace(self, **changes: Any) -> BlockSpec:
        """A copy with some fields replaced."""
        return dataclasses.replace(self, **changes)


class GridSpec:
    """The grid of a kernel, and how its arrays are cut; an argument of `pallas_call`."""

    #: number of leading arguments that index maps receive too
    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: int | Sequence[Any] = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        if in_specs is not no_block_spec and not isinstance(in_specs, tuple | list):
            raise OptionError(f"in_specs must be a tuple or a list, got {in_specs!r:.80}", instead="[spec]")
        sizes = (grid,) if isinstance(grid, int) else tuple(grid)
        self.grid: tuple[Any, ...] = tuple(size[1] if isinstance(size, tuple) else size for size in sizes)
        #: (name, length) of each axis that has a name, in the form of `axis_env`
        self.named_axes: tuple[tuple[Any, int], ...] = tuple(size for size in sizes if isinstance(size, tuple))
        self.in_specs, self.out_specs, self.scratch_shapes = in_specs, out_specs, scratch_shapes


@dataclasses.dataclass(frozen=True)
class Block:
    """A `BlockSpec` with what it means for one array: for each axis its length in the block, and its padding."""

    array_shape: tuple[int, ...]
    dims: tuple[BlockDim, ...]
    index_map: Callable[..., Any] | None
    origin: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The lengths of the block along all axes of the array."""
        return tuple(1 if isinstance(d, Squeezed) else d.block_size for d in self.dims)

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """The shape that the kernel sees."""
        return tuple(d.block_size for d in self.dims if not isinstance(d, Squeezed))

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Elements to add to the array, so that each block lies inside of it."""
        return tuple(
            dim.padding if isinstance(dim, Element) else (0, -length % max(size, 1))
            for dim, size, length in zip(self.dims, self.sizes, self.array_shape, strict=True)
        )

    def starts(self, indices: Sequence[Any], extra: Sequence[Any] = ()) -> list[Any]:
        """The first element of the block along each axis, at a point of the grid."""
        if self.index_map is None:
            return [0] * len(self.dims)
        numbers = self.index_map(*indices, *extra)
        numbers = tuple(numbers) if isinstance(numbers, tuple | list) else (numbers,)
        if len(numbers) != len(self.dims):
            raise OptionError(
                f"the index_map of {self.origin} must return {len(self.dims)} values to match the block shape, got "
                f"{len(numbers)}"
            )
        for number in numbers:
            if np.shape(number) or not issubdtype(result_type(number), integer):
                raise OptionError(f"the index_map of {self.origin} must return integer scalars, got {number!r:.60}")
        return [
            number if isinstance(dim, Element | Squeezed) else number * dim.block_size
            for number, dim in zip(numbers, self.dims, strict=True)
        ]


def block_of(spec: Any, shape: tuple[int, ...], origin: str) -> Block:
    """The block that a `BlockSpec` (None: the whole array) means for an array of this shape."""
    if spec is None or spec is no_block_spec or spec.block_shape is None:
        return Block(shape, tuple(map(Blocked, shape)), None, origin)
    if len(spec.block_shape) != len(shape):
        raise OptionError(
            f"the block shape of {origin} must have the same number of dimensions as the array: "
            f"{tuple(spec.block_shape)} for shape {list(shape)}"
        )
    if any(isinstance(d, BoundedSlice) for d in spec.block_shape):
        raise OptionError(f"{origin}: BoundedSlice is not there in interpret mode", instead="pl.Element")
    dims = tuple(
        squeezed if d is None else Blocked(int(d)) if isinstance(d, int | np.integer) else d for d in spec.block_shape
    )
    return Block(shape, dims, spec.index_map, origin)
