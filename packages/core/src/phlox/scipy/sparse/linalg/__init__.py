"""``phlox.scipy.sparse.linalg``: iterative solvers of linear systems, with implicit derivatives."""

from ...._base.public_names import publish
from ._bicgstab import bicgstab
from ._cg import cg
from ._gmres import gmres

__all__ = ["bicgstab", "cg", "gmres"]


publish(__name__)
