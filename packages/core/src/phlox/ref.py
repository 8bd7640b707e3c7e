"""``phlox.ref``: mutable references to arrays, as in ``jax.ref``."""

from ._base.public_names import publish
from ._trace.refs import AbstractRef, Ref
from .numpy._indexing.refs import addupdate, empty_ref, free_ref, freeze, get, new_ref, set, swap

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


publish(__name__)
