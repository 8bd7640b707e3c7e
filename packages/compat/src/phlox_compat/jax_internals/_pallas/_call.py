"""`pallas_call`: a kernel in a loop over its grid."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import phlox
from phlox import lax, numpy as jnp, tree_util
from phlox.errors import ArgumentError, OptionError
from phlox.ref import new_ref

from ._control import at_point, new_refs
from ._specs import Block, GridSpec, Squeezed, block_of, interprets_all, no_block_spec, unspecified


def pallas_call(
    kernel: Callable[..., Any],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: int | Sequence[Any] = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    backend: Any = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays that runs a kernel at each point of a grid.

    The kernel receives references: to the blocks of the inputs, of the outputs, and to scratch memory, which keeps its
    values from point to point. The last axis of the grid varies fastest.

    Args:
      kernel: function of references that writes to those of the outputs.
      out_shape: tree of arrays or `ShapeDtypeStruct`: the types of the outputs.
      grid_spec: the following four arguments, as one.
      grid: lengths of the axes of the grid, which may be traced.
      in_specs: tree of `BlockSpec`, a prefix of the tuple of the arguments; no blocks without it.
      out_specs: the same for the outputs.
      scratch_shapes: types of memory, a sequence or a dict by name of the kernel's parameters.
      input_output_aliases: for numbers of inputs (leaves), the number of the output that begins with their values.
      debug: whether to print the name of the kernel and its grid.
      interpret: True, or the parameters of an interpreter.
      name: name of the operations in profiles.
      compiler_params, cost_estimate, backend, metadata: no meaning in interpret mode.

    Returns:
      A function of arrays that returns a tree like `out_shape`, with a tuple in the place of a list.

    Raises:
      ArgumentError: in the call, the arguments do not match `in_specs`.
      OptionError: a spec or an alias does not match its array, the kernel returns a value, or it is not to be
        interpreted.
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    elif grid or in_specs is not no_block_spec or out_specs is not no_block_spec or scratch_shapes:
        raise OptionError("pallas_call: a grid_spec beside grid, in_specs, out_specs or scratch_shapes")
    kernel_name = name or str(getattr(kernel, "__name__", type(kernel).__name__))
    if debug:
        print(f"pallas_call: {kernel_name}, grid {grid_spec.grid}")
    run = phlox.jit(functools.partial(_run, kernel, out_shape, grid_spec, dict(input_output_aliases or {})))

    return interpreted("pallas_call", run, kernel_name, interpret)


def interpreted(function: str, run: Callable[..., Any], name: str, interpret: Any) -> Callable[..., Any]:
    """`run` in a scope of this name. Calls raise `OptionError` outside of interpret mode."""

    def call(*args: Any) -> Any:
        if not interpret and not interprets_all.get():
            raise OptionError(
                f"{function}: kernels are not compiled for the hardware. Only interpret mode is supported",
                instead=f"{function}(..., interpret=True), or operations of jax.numpy",
            )
        # `disable_jit` is for the user's program around the kernel: each point of the grid would be a step of Python.
        with phlox.named_scope(name), phlox.disable_jit(False):
            return run(*args)

    return call


def _specs(specs: Any, tree: Any, what: str) -> list[Any]:
    """One spec for each leaf of `tree`."""
    count = len(tree_util.tree_leaves(tree))
    if specs is no_block_spec or specs is None:
        return [None] * count
    if isinstance(specs, list) and isinstance(tree, tuple):
        specs = tuple(specs)
    if isinstance(specs, tuple) and isinstance(tree, list):
        specs = list(specs)
    if isinstance(specs, tuple | list) and isinstance(tree, tuple | list) and len(specs) != len(tree):
        raise ArgumentError(f"pallas_call: {what} has {len(specs)} entries, for {len(tree)} arrays")
    leaves: list[Any] = tree_util.tree_leaves(
        tree_util.tree_map(
            lambda spec, part: [spec] * len(tree_util.tree_leaves(part)),
            specs,
            tree,
            is_leaf=lambda x: x is None or x is no_block_spec or hasattr(x, "block_shape"),
        ),
        is_leaf=lambda x: x is None or x is no_block_spec or hasattr(x, "block_shape"),
    )
    return leaves


def _run(kernel: Callable[..., Any], out_shape: Any, grid_spec: GridSpec, aliases: dict[int, int], *args: Any) -> Any:
    """The outputs of a kernel."""
    count = grid_spec.num_scalar_prefetch
    scalars, operands = args[:count], args[count:]
    inputs, in_tree = tree_util.tree_flatten(operands)
    structs, out_tree = tree_util.tree_flatten(tuple(out_shape) if isinstance(out_shape, list) else out_shape)
    scalar_leaves, scalar_tree = tree_util.tree_flatten(scalars)
    in_specs = _specs(grid_spec.in_specs, operands, "in_specs")
    shapes = tuple(out_shape) if isinstance(out_shape, list) else out_shape
    out_specs = _specs(grid_spec.out_specs, shapes, "out_specs")
    arrays = [jnp.asarray(x) for x in inputs]
    in_blocks = [block_of(s, x.shape, f"input {i}") for i, (s, x) in enumerate(zip(in_specs, arrays, strict=True))]
    out_blocks = [
        block_of(s, tuple(x.shape), f"output {i}") for i, (s, x) in enumerate(zip(out_specs, structs, strict=True))
    ]
    outputs = [unspecified(x.shape, x.dtype) for x in structs]
    sources = [*map(jnp.asarray, scalar_leaves), *arrays]
    for source, target in aliases.items():
        _check_alias(source, target, sources, outputs)
        outputs[target] = sources[source]
    aliased = {source - len(scalar_leaves): target for source, target in aliases.items()}

    def body(indices: Sequence[Any], blocks: list[Any], scratch: Any, scalar_refs: Any) -> None:
        refs = [*scalar_refs, *in_tree.unflatten(blocks[: len(arrays)])]
        outs = out_tree.unflatten(blocks[len(arrays) :])
        refs += list(outs) if isinstance(outs, tuple | list) else [outs]
        by_name = scratch if isinstance(scratch, dict) else {}
        result = kernel(*refs, *(() if by_name else scratch), **by_name)
        if result is not None:
            raise OptionError(
                f"The kernel function {getattr(kernel, '__name__', kernel)} in a pallas_call should return None. "
                f"It returns {type(result).__name__}.",
                instead="out_ref[...] = result",
            )

    results = run_grid(
        body, grid_spec, arrays, outputs, in_blocks, out_blocks, scalar_tree.unflatten(scalar_leaves), aliased
    )
    return out_tree.unflatten(results)


def _check_alias(source: int, target: int, inputs: list[Any], outputs: list[Any]) -> None:
    """Raises `OptionError` unless an input and an output have these numbers, and the same shape and dtype."""
    pair = f"input_output_aliases={{{source}: {target}}}"
    if not 0 <= source < len(inputs):
        raise OptionError(f"pallas_call: {pair} of {len(inputs)} inputs")
    if not 0 <= target < len(outputs):
        raise OptionError(f"pallas_call: {pair} with {len(outputs)} outputs")
    x, out = inputs[source], outputs[target]
    if (x.shape, x.dtype) != (out.shape, out.dtype):
        raise OptionError(f"pallas_call: {pair} of types {phlox.typeof(x)} and {phlox.typeof(out)}, which differ")


def run_grid(
    body: Callable[..., None],
    grid_spec: GridSpec,
    arrays: list[Any],
    outputs: list[Any],
    in_blocks: list[Block],
    out_blocks: list[Block],
    scalars: Any,
    aliased: Mapping[int, int],
) -> list[Any]:
    """The outputs after ``body(indices, block refs, scratch refs, scalar refs)`` ran at each point of the grid."""
    sizes = grid_spec.grid
    blocks = [*in_blocks, *out_blocks]
    padded = [_pad(x, block) for x, block in zip([*arrays, *outputs], blocks, strict=True)]
    fixed, state = padded[: len(arrays)], padded[len(arrays) :]
    scratch_refs = new_refs(_as_list(grid_spec.scratch_shapes))
    scratch_leaves, scratch_tree = tree_util.tree_flatten(scratch_refs, is_leaf=_is_ref)

    def step(number: Any, carry: Any) -> Any:
        state, scratch = carry
        indices = _indices(number, sizes)
        scalar_refs = tree_util.tree_map(new_ref, scalars)
        # An input that an output aliases is the output's memory, so later points read what earlier ones wrote.
        values = [state[aliased[i]] if i in aliased else x for i, x in enumerate(fixed)] + list(state)
        starts = [block.starts(indices, scalar_refs) for block in blocks]
        refs = [_new_ref(_read(x, at, block)) for x, at, block in zip(values, starts, blocks, strict=True)]
        scratch_now = [_new_ref(x) for x in scratch]
        with at_point(indices, sizes, grid_spec.named_axes):
            body(indices, refs, scratch_tree.unflatten(scratch_now), scalar_refs)
        count = len(fixed)
        state = [
            _write(x, ref[...], at, block)
            for x, ref, at, block in zip(state, refs[count:], starts[count:], out_blocks, strict=True)
        ]
        return state, [ref[...] for ref in scratch_now]

    total = functools.reduce(lambda a, b: a * b, sizes, 1)
    carry = (state, [ref[...] for ref in scratch_leaves])
    if isinstance(total, int) and total <= 1:
        state, _ = step(jnp.int32(0), carry) if total else carry
    else:
        state, _ = lax.fori_loop(0, total, step, carry)
    return [_crop(x, block) for x, block in zip(state, out_blocks, strict=True)]


def _new_ref(x: Any) -> Any:
    """A reference; core installs the methods of its class when it is imported, so type checkers do not see them."""
    return new_ref(x)


def _is_ref(x: Any) -> bool:
    return hasattr(x, "swap")


def _as_list(types: Any) -> Any:
    return types if isinstance(types, dict) else list(types)


def _indices(number: Any, sizes: Sequence[Any]) -> list[Any]:
    """The indices of a point of the grid, the last of which varies fastest."""
    indices = []
    rest = jnp.asarray(number, jnp.int32)
    for size in reversed(sizes):
        indices.append(rest % size)
        rest = rest // size
    return indices[::-1]


def _pad(x: Any, block: Block) -> Any:
    """The array, with unspecified elements around it so that each block lies inside."""
    if not any(map(any, block.padding)):
        return x
    shape = [length + sum(pair) for length, pair in zip(x.shape, block.padding, strict=True)]
    return lax.dynamic_update_slice(unspecified(shape, x.dtype), x, [low for low, _ in block.padding])


def _crop(x: Any, block: Block) -> Any:
    if not any(map(any, block.padding)):
        return x
    return x[tuple(slice(p[0], p[0] + n) for p, n in zip(block.padding, block.array_shape, strict=True))]


def _read(x: Any, starts: Sequence[Any], block: Block) -> Any:
    if math.prod(block.sizes) == math.prod(x.shape) and block.index_map is None:
        return x.reshape(block.seen_shape)
    axes = tuple(i for i, dim in enumerate(block.dims) if isinstance(dim, Squeezed))
    return lax.squeeze(lax.dynamic_slice(x, starts, block.sizes), axes)


def _write(x: Any, part: Any, starts: Sequence[Any], block: Block) -> Any:
    return lax.dynamic_update_slice(x, part.reshape(block.sizes), starts)
