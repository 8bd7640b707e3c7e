"""What eager code waits for: a function of the library is one program, lowered and compiled once, whatever it is made of."""

import functools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
import phlox.scipy.special as special

X = np.linspace(-1, 2, 35, dtype=np.float32).reshape(5, 7)
V = X[0]

OF_MATRIX = [
    "mean",
    "std",
    "var",
    "ptp",
    "median",
    "nanmean",
    "nanstd",
    "nanvar",
    "nanmax",
    "nanmin",
    "nansum",
    "nanprod",
    "nanmedian",
    "nancumsum",
    "nanargmax",
    "average",
    "cumsum",
    "cumprod",
    "count_nonzero",
    "cov",
    "corrcoef",
    "trace",
    "diagonal",
    "diff",
    "ediff1d",
    "gradient",
    "trapezoid",
    "ravel",
    "tril",
    "triu",
    "rot90",
    "sort",
    "argsort",
    "lexsort",
    "unstack",
    "matrix_transpose",
    "fliplr",
    "sinc",
    "round",
    "nan_to_num",
]
OF_VECTORS = [
    "dot",
    "vdot",
    "inner",
    "outer",
    "kron",
    "append",
    "allclose",
    "isclose",
    "array_equal",
    "array_equiv",
    "polyadd",
    "polysub",
    "polymul",
    "convolve",
    "correlate",
    "digitize",
    "searchsorted",
    "divmod",
    "vecdot",
    "float_power",
    "logaddexp",
    "hypot",
    "fmod",
]
#: a function, its array arguments, and its options
OTHERS = [
    (jnp.cross, (X[:, :3], X[:, 3:6]), {}),
    (jnp.diag, (V,), {"k": 1}),
    (jnp.interp, (V, V, V), {}),
    (jnp.linalg.norm, (X,), {"axis": 1}),
    (jnp.linalg.det, (X[:, :5],), {}),
    (jnp.linalg.slogdet, (X[:, :5],), {}),
    (jnp.percentile, (X, np.float32(30)), {"axis": 0}),
    (jnp.poly, (V,), {}),
    (jnp.quantile, (X, V[:2]), {"axis": -1}),
    (jnp.repeat, (V,), {"repeats": 3}),
    (jnp.select, ([V > 0, V > 1], [V, -V]), {"default": 0.0}),
    (jnp.tile, (X,), {"reps": (2, 3)}),
    (jnp.vander, (V,), {"N": 3}),
    (phlox.nn.dot_product_attention, (X[:, :, None],) * 3, {"is_causal": True}),
    (phlox.nn.softmax, (X,), {}),
    (phlox.lax.dynamic_index_in_dim, (X, np.int32(2)), {"axis": 1}),
    (special.betaln, (V, V), {}),
    (special.gamma, (V,), {}),
    (special.ndtri, (V,), {}),
    (special.xlogy, (V, V), {}),
]
CASES = [(getattr(jnp, name), (X,), {}) for name in OF_MATRIX] + [
    (getattr(jnp, name), (V, V), {}) for name in OF_VECTORS
]
CASES += OTHERS


@pytest.mark.parametrize(("function", "args", "options"), CASES, ids=[function.__name__ for function, *_ in CASES])
def test_functions_are_one_program(function, args, options):
    call = functools.partial(function, *phlox.tree.map(jnp.asarray, args), **options)
    lowered = []

    def listen(event, seconds, **_):
        if event.endswith("jaxpr_to_mlir_module_duration"):
            lowered.append(event)

    phlox.clear_caches()
    phlox.monitoring.register_event_duration_secs_listener(listen)
    try:
        call()
        assert len(lowered) == 1
        call()
        assert len(lowered) == 1
    finally:
        phlox.monitoring.unregister_event_duration_listener(listen)
