"""``phlox.experimental.serialize_executable``: compiled programs as bytes, as in ``jax.experimental``.

    saved, in_tree, out_tree = serialize(jit(f).lower(x).compile())
    ...
    deserialize_and_load(saved, in_tree, out_tree)(x)

The bytes are machine code for one version of jaxlib and one kind of device. `phlox.export` stores programs that other
versions and platforms compile.
"""

from .._api.jit.stored import deserialize_and_load, serialize
from .._base.public_names import publish

__all__ = ["deserialize_and_load", "serialize"]


publish(__name__)
