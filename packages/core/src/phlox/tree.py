"""``phlox.tree``: functions on pytrees, under short names, as in ``jax.tree``."""

from typing import Any

from ._base.public_names import publish
from ._base.pytree import (
    tree_all as all,
    tree_broadcast as broadcast,
    tree_flatten as flatten,
    tree_flatten_with_path as flatten_with_path,
    tree_leaves as leaves,
    tree_leaves_with_path as leaves_with_path,
    tree_map as map,
    tree_map_with_path as map_with_path,
    tree_reduce as reduce,
    tree_reduce_associative as reduce_associative,
    tree_structure as structure,
    tree_transpose as transpose,
    tree_unflatten as unflatten,
)

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]


def static(**options: Any) -> Any:
    """A static field of a dataclass, which is part of the treedef, for `tree_util.register_dataclass`.

    Args:
      **options: options of ``dataclasses.field``, such as `default`.

    Returns:
      A ``dataclasses.Field`` with ``metadata["static"]`` True.

    >>> import dataclasses
    >>> @phlox.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = static(default="dense")
    >>> leaves(Layer(2.0))
    [2.0]
    """
    import dataclasses  # here, so that programs without dataclasses do not pay for this import

    return dataclasses.field(metadata={"static": True, **(options.pop("metadata", None) or {})}, **options)


publish(__name__)
