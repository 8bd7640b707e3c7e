"""``phlox.tree``: functions on pytrees, under short names, as in ``jax.tree``."""

from typing import Any

from ._base import pytree
from ._base.public_names import publish
from ._base.wrapping import renamed

all = renamed(pytree.tree_all, "all", __name__)
broadcast = renamed(pytree.tree_broadcast, "broadcast", __name__)
flatten = renamed(pytree.tree_flatten, "flatten", __name__)
flatten_with_path = renamed(pytree.tree_flatten_with_path, "flatten_with_path", __name__)
leaves = renamed(pytree.tree_leaves, "leaves", __name__)
leaves_with_path = renamed(pytree.tree_leaves_with_path, "leaves_with_path", __name__)
map = renamed(pytree.tree_map, "map", __name__)
map_with_path = renamed(pytree.tree_map_with_path, "map_with_path", __name__)
reduce = renamed(pytree.tree_reduce, "reduce", __name__)
reduce_associative = renamed(pytree.tree_reduce_associative, "reduce_associative", __name__)
structure = renamed(pytree.tree_structure, "structure", __name__)
transpose = renamed(pytree.tree_transpose, "transpose", __name__)
unflatten = renamed(pytree.tree_unflatten, "unflatten", __name__)

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
