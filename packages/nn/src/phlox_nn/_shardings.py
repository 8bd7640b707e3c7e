"""Shardings of parameters over a mesh, by rules for their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phlox.extend import shardings_by_path
from phlox.sharding import Mesh

from ._paths import Tree


def shardings(params: Any, rules: Mapping[str, Any], mesh: Mesh) -> Tree:
    """A sharding for each parameter, by the first rule whose pattern matches its path.

    Args:
      params: nested dicts of arrays, or of their shapes, as from ``phlox.eval_shape(model.init, key)``.
      rules: `PartitionSpec` by pattern of paths, such as ``{"*/query/weight": P(None, "model")}``. Parameters
        that no pattern means are on all devices whole.
      mesh: the devices.

    Returns:
      Nested dicts of `NamedSharding`, for `phlox.device_put`, or for the `out_shardings` of a jitted `init`.

    Raises:
      ArgumentError: a rule does not fit a parameter, by path: more axes than it has, or a length that the mesh axes do
        not divide; or a pattern means nothing.

    >>> import phlox
    >>> import phlox_nn as nn
    >>> from phlox.sharding import PartitionSpec as P
    >>> mesh = phlox.make_mesh((1,), ("model",))
    >>> params = phlox.eval_shape(nn.Linear(4, 8).init, phlox.random.key(0))
    >>> shardings(params, {"weight": P(None, "model")}, mesh)["weight"].spec
    P(None, 'model')
    """
    tree: Tree = shardings_by_path("shardings", params, rules, mesh)
    return tree
