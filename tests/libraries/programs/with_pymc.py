"""PyMC and PyTensor: graphs compiled to jax, and NUTS of numpyro."""

import jax
import numpy as np
import pymc as pm
import pymc.sampling.jax as sampling
import pytensor
import pytensor.tensor as pt
from common import show

x, w = pt.matrix("x"), pt.vector("w")
values = np.linspace(-1, 1, 12).reshape(4, 3), np.arange(3.0)
cost = pt.log1p(pt.exp(x @ w)).mean()
show("function", pytensor.function([x, w], [cost, pytensor.grad(cost, w)], mode="JAX")(*values))
root = pt.linalg.cholesky(x.T @ x + 2 * pt.eye(3))
show("linear algebra", pytensor.function([x], [root, pt.linalg.solve(root, pt.arange(3.0))], mode="JAX")(values[0]))
states = pytensor.scan(
    lambda s, w: s * 0.5 + w.sum(), outputs_info=pt.zeros(()), non_sequences=[w], n_steps=5, return_updates=False
)
show("scan", pytensor.function([w], states, mode="JAX")(values[1]))
show(
    "indices",
    pytensor.function([x], [pt.set_subtensor(x[1:, 0], 3.0), pt.sort(x, axis=0), pt.special.softmax(x, 1)], mode="JAX")(
        values[0]
    ),
)

rng = np.random.default_rng(0)
with pm.Model() as model:
    slope = pm.Normal("slope", 0, 1, shape=3)
    scale = pm.HalfNormal("scale", 1)
    group = pm.Dirichlet("group", np.ones(2))
    pm.Normal("y", values[0] @ slope + group[0], scale, observed=rng.normal(size=4))

density = sampling.get_jaxified_logp(model, negative_logp=False)
start = [np.asarray(v) for v in model.initial_point().values()]
show("density", density(start), jax.grad(density)(start))
drawn = sampling.sample_numpyro_nuts(20, tune=20, chains=1, random_seed=1, progressbar=False, model=model)
show("posterior", drawn.posterior["slope"].values[0, :2])
