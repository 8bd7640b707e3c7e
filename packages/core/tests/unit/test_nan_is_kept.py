"""nan among many numbers is not lost. XLA's reductions on CPUs pass over it in maxima and minima, from 4,096 numbers on."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax, nn

PROGRAMS = {
    "max": jnp.max,
    "min of rows": lambda x: jnp.min(x.reshape(100, -1), 1),
    "max of columns": lambda x: lax.reduce_max(x.reshape(100, -1), (0,)),
    "ptp": jnp.ptp,
    "norm": lambda x: jnp.linalg.norm(x, jnp.inf),
    "max of relu": lambda x: nn.relu(x).max(),
    "sum of relu": lambda x: nn.relu(x).sum(),
    "mean of a hinge": lambda x: jnp.maximum(0, 1 - 2 * x).mean(),
    "sum of minima": lambda x: jnp.minimum(x, x[::-1]).sum(),
    "sum of clipped": lambda x: jnp.clip(x, -1, 1).sum(),
    "sums of a batch": phlox.vmap(lambda row: nn.relu6(row).sum()),
    "softmax": lambda x: nn.softmax(x.ravel()),
    "log_softmax of rows": lambda x: nn.log_softmax(x.reshape(100, -1)),
    "logsumexp": nn.logsumexp,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_kept(dtype):
    values = np.random.default_rng(0).standard_normal((10, 1000)).astype(dtype)
    with phlox.enable_x64(dtype == "float64"):
        together = phlox.jit(lambda x: [f(x) for f in PROGRAMS.values()])
        for x, found in ((values, False), (np.where(np.arange(1000) == 333, np.nan, values).astype(dtype), True)):
            alone = [f(x) for f in PROGRAMS.values()]  # each its own program, as a library sees it
            for results in (alone, together(x)):
                seen = {name: bool(np.isnan(result).any()) for name, result in zip(PROGRAMS, results, strict=True)}
                assert set(seen.values()) == {found}, seen


def test_infinite_elements_are_no_nan():
    x = np.full(5000, -np.inf, "float32")
    x[7] = np.inf
    assert jnp.max(x) == np.inf and jnp.min(x) == -np.inf and jnp.maximum(x, -x).sum() == np.inf
