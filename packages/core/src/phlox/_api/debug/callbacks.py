"""`pure_callback` and `io_callback`: Python functions that compiled programs call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ArgumentError, DtypeError, OptionError, UnsupportedError
from ..._base.pytree import PyTreeDef, flatten, tree_structure
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped, typeof_value
from ..._ops.host import callbacks as ops
from ..._xla.sharding import SingleDeviceSharding
from ..jit import arguments

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None)


def result_types(function: str, tree: Any) -> tuple[tuple[ShapedArray, ...], PyTreeDef]:
    """The types in a user's `result_shape_dtypes`, a tree of objects with shape and dtype, and its treedef."""
    leaves, treedef = flatten(tree)
    avals = []
    for x in leaves:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ArgumentError(
                f"{function}: result_shape_dtypes has a leaf {x!r} without shape and dtype",
                instead="phlox.ShapeDtypeStruct(shape, dtype) for each result",
                argument="result_shape_dtypes",
                value=x,
            )
        # The dtype is not narrowed silently: the function would return what the program does not expect.
        dtype = host_dtype(function, x)
        if dtypes.canonical(dtype) != dtype:
            raise DtypeError(
                f"{function}: result_shape_dtypes asks for {dtype.name} while 64-bit types are disabled",
                instead=f"{dtypes.canonical(dtype).name}, or phlox.config.update('enable_x64', True)",
                dtype=dtype,
            )
        avals.append(shaped(tuple(x.shape), dtype))
    return tuple(avals), treedef


def host_dtype(function: str, struct: Any) -> Any:
    """The dtype of a result. Raises `DtypeError` for keys, which exist inside of programs only."""
    dtype = dtypes.as_dtype(struct.dtype)
    if dtypes.is_extended(dtype):
        raise DtypeError(
            f"{function}: result_shape_dtypes asks for {dtype}",
            instead="uint32 for the words of keys, and phlox.random.wrap_key_data of the result",
            dtype=dtype,
        )
    return dtype


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a pure Python function from inside of a program.

    To differentiate it, wrap the call in custom_jvp or custom_vjp.

    Args:
      callback: function of arrays, which returns arrays or NumPy arrays. It should have no side effects: the program
        may call it more than once, or not at all when its result is not needed.
      result_shape_dtypes: the result as a tree of objects with `shape` and `dtype` (`phlox.ShapeDtypeStruct`).
      *args, **kwargs: the arguments of `callback`, trees of arrays.
      sharding: a `SingleDeviceSharding` of the device that calls; None: the first device of the program, and each
        device inside of `shard_map` and `pmap`.
      vmap_method: how vmap calls it. ``'sequential'``: once for each example, in a loop. ``'sequential_unrolled'``: the
        same without a loop. ``'expand_dims'``: once, with the batch as first axis, which has length one for arguments
        without a batch. ``'broadcast_all'``: once, with all arguments repeated along the batch axis. None: vmap raises
        `MissingRuleError`.

    Returns:
      The result of `callback`: a tree of arrays of the shapes and dtypes of `result_shape_dtypes`.

    Raises:
      CallbackError: `callback` returned other types than `result_shape_dtypes`. In a compiled program this error is the
        cause of a `JaxRuntimeError`.
      JaxRuntimeError: `callback` raised an error, which is its cause.
      DerivativeError: the call is differentiated.
      DtypeError: `result_shape_dtypes` has a 64-bit dtype while these are disabled, or a dtype of keys.
      OptionError: there is no such `vmap_method`.
      UnsupportedError: `sharding` is of another class, or given inside of `shard_map` or `pmap`.
      DeviceError: the program does not run on the device of `sharding`.

    >>> import numpy as np
    >>> phlox.jit(lambda x: pure_callback(lambda a: np.sort(a), phlox.ShapeDtypeStruct((3,), "int32"), x))(
    ...     jnp.array([3, 1, 2])
    ... )
    Array([1, 2, 3], dtype=int32)
    """
    _check(callback, "pure_callback", sharding)
    if vmap_method not in VMAP_METHODS:
        raise OptionError(
            f"pure_callback: vmap_method is {vmap_method!r}", instead=f"one of {', '.join(map(repr, VMAP_METHODS))}"
        )
    avals, out_tree = result_types("pure_callback", result_shape_dtypes)
    leaves, in_tree = _operands("pure_callback", callback, args, kwargs)
    outs = ops.pure_callback.bind(
        *leaves,
        callback=ops.Callback(callback, in_tree),
        result_avals=avals,
        sharding=sharding,
        vmap_method=vmap_method,
    )
    return out_tree.unflatten(outs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects from inside of a program, once for each time the program reaches it.

    Args:
      callback: function of arrays, which returns arrays or NumPy arrays.
      result_shape_dtypes: the result as a tree of objects with `shape` and `dtype` (`phlox.ShapeDtypeStruct`). None for
        a function without results.
      *args, **kwargs: the arguments of `callback`, trees of arrays.
      sharding: a `SingleDeviceSharding` of the device that calls; None: the first device of the program, and each
        device inside of `shard_map` and `pmap`.
      ordered: make calls in program order. Ordered calls cannot be mapped by vmap. Inside of `shard_map` and `pmap`
        each device has an order of its own.

    Returns:
      The result of `callback`: a tree of arrays of the shapes and dtypes of `result_shape_dtypes`.

    Raises:
      CallbackError: `callback` returned other types than `result_shape_dtypes`. In a compiled program this error is the
        cause of a `JaxRuntimeError`.
      JaxRuntimeError: `callback` raised an error, which is its cause.
      DerivativeError: the call is differentiated.
      EffectError: vmap of an ordered call.
      UnsupportedError: `sharding` is of another class, or given inside of `shard_map` or `pmap`.
      DeviceError: the program does not run on the device of `sharding`.

    >>> from phlox.experimental import io_callback
    >>> seen = []
    >>> phlox.jit(lambda x: io_callback(lambda a: seen.append(int(a)), None, x, ordered=True))(5)
    >>> phlox.effects_barrier()
    >>> seen
    [5]
    """
    _check(callback, "io_callback", sharding)
    avals, out_tree = result_types("io_callback", result_shape_dtypes)
    leaves, in_tree = _operands("io_callback", callback, args, kwargs)
    called = ops.Callback(callback, in_tree)
    # As in JAX: None promises nothing, so whatever is returned is dropped.
    if out_tree == _NOTHING:
        called = dataclasses.replace(called, fun=_silent(callback))
    outs = ops.io_callback.bind(*leaves, callback=called, result_avals=avals, sharding=sharding, ordered=ordered)
    return out_tree.unflatten(outs)


_NOTHING = tree_structure(None)


def _silent(callback: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> None:
        callback(*args, **kwargs)

    return called


def _check(callback: Any, function: str, sharding: Any) -> None:
    if not callable(callback):
        raise ArgumentError(f"{function} takes a function first, got {callback!r}", argument="callback", value=callback)
    if not isinstance(sharding, SingleDeviceSharding | None):
        raise UnsupportedError(
            f"{function} only supports SingleDeviceSharding, but got {sharding!r}",
            instead="SingleDeviceSharding(device)",
        )


def _operands(function: str, fun: Any, args: Any, kwargs: Any) -> tuple[list[Any], PyTreeDef]:
    leaves, in_tree = flatten((args, kwargs))
    arguments.check_arrays(function, fun, args, kwargs, leaves)
    return leaves, in_tree


def split_leaves(leaves: Sequence[Any]) -> tuple[list[Any], tuple[tuple[int, Any], ...]]:
    """The leaves that are arrays or numbers, and the others with their positions."""
    arrays, fixed = [], []
    for i, x in enumerate(leaves):
        if typeof_value(x) is None:
            fixed.append((i, x))
        else:
            arrays.append(x)
    return arrays, tuple(fixed)
