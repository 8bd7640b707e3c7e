"""``phlox.experimental.sparse``: arrays of which few elements are stored, as in ``jax.experimental.sparse``.

- `BCOO` stores elements with their indices; it has all operations. Leading axes may be a batch (`n_batch`), last axes
  may be stored whole (`n_dense`). `BCSR` stores matrices by rows; `COO`, `CSR` and `CSC` are simpler.
- Operators, indexing and methods of `BCOO` are functions of `phlox.numpy` under `sparsify`.
- All are pytrees: they pass `jit`, `vmap`, `grad` and control flow. `grad`, `value_and_grad`, `jacfwd` and `jacrev`
  of this module differentiate by the stored elements.
"""

from __future__ import annotations

from ..._base.errors import SparseEfficiencyError
from ..._base.public_names import publish
from . import _layouts, _products, _shapes, _sparsify, linalg
from ._base import CuSparseEfficiencyWarning, JAXSparse, SparseEfficiencyWarning, todense
from ._bcoo import BCOO, bcoo_extract, bcoo_fromdense, bcoo_todense
from ._convolution import bcoo_conv_general_dilated
from ._creation import empty, eye, random_bcoo
from ._derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from ._functions import functions
from ._gather import bcoo_gather
from ._layouts import bcoo_sort_indices, bcoo_sum_duplicates, bcoo_update_layout
from ._plain import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    csr_fromdense,
    matrix_product as coo_matmat,
    matrix_product as csr_matmat,
    matrix_todense as coo_todense,
    matrix_todense as csr_todense,
    matrix_vector_product as coo_matvec,
    matrix_vector_product as csr_matvec,
)
from ._products import (
    bcoo_dot_general,
    bcoo_dot_general_sampled,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
)
from ._rows import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from ._shapes import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)
from ._sparsify import sparsify

__all__ = [
    "BCOO",
    "BCSR",
    "COO",
    "CSC",
    "CSR",
    "CuSparseEfficiencyWarning",
    "JAXSparse",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "bcoo_broadcast_in_dim",
    "bcoo_concatenate",
    "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice",
    "bcoo_extract",
    "bcoo_fromdense",
    "bcoo_gather",
    "bcoo_multiply_dense",
    "bcoo_multiply_sparse",
    "bcoo_reduce_sum",
    "bcoo_reshape",
    "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices",
    "bcoo_squeeze",
    "bcoo_sum_duplicates",
    "bcoo_todense",
    "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim",
    "bcsr_concatenate",
    "bcsr_dot_general",
    "bcsr_extract",
    "bcsr_fromdense",
    "bcsr_sum_duplicates",
    "bcsr_todense",
    "coo_fromdense",
    "coo_matmat",
    "coo_matvec",
    "coo_todense",
    "csr_fromdense",
    "csr_matmat",
    "csr_matvec",
    "csr_todense",
    "empty",
    "eye",
    "grad",
    "jacfwd",
    "jacobian",
    "jacrev",
    "linalg",
    "random_bcoo",
    "sparsify",
    "todense",
    "value_and_grad",
]


for _module in (_layouts, _products, _shapes, _sparsify):
    vars(functions).update({name: x for name, x in vars(_module).items() if callable(x)})
publish(__name__)
