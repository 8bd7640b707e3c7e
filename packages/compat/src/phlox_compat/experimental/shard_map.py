"""``phlox.experimental.shard_map``: the former form of `phlox.shard_map`, as in ``jax.experimental.shard_map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phlox import shard_map as _shard_map
from phlox.extend import publish
from phlox.sharding import AbstractMesh, Mesh

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any],
    mesh: Mesh | AbstractMesh,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable[..., Any]:
    """Runs `f` on every device of a mesh, each on its own part of the arguments. New code uses `phlox.shard_map`.

    Args:
      f: function of arrays and trees of them.
      mesh: the devices.
      in_specs: a tree prefix of the tuple of arguments with a `PartitionSpec` for each.
      out_specs: a tree prefix of the result with a `PartitionSpec` for each.
      check_rep: accepted as in JAX; not used.
      auto: the mesh axes that `f` is not mapped over.

    Returns:
      A function of whole arrays.

    >>> mesh = phlox.make_mesh((1,), ("x",))
    >>> shard_map(lambda x: phlox.lax.psum(x, "x"), mesh, phlox.P("x"), phlox.P())(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    names = frozenset(mesh.axis_names) - auto
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names, check_vma=check_rep)


publish(__name__)
