"""gpjax: Gaussian processes that are fitted."""

import gpjax as gpx
import jax
import jax.numpy as jnp
from common import show

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(0, 1, 12)[:, None]
data = gpx.Dataset(X=x, y=jnp.sin(6 * x))
prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
posterior = prior * gpx.likelihoods.Gaussian(num_datapoints=12)
show("likelihood", gpx.objectives.conjugate_mll(posterior, data))
predicted = posterior.predict(jnp.array([[0.2], [0.5]]), train_data=data)
show("predict", predicted.mean, predicted.variance)
fitted, history = gpx.fit_scipy(
    model=posterior,
    objective=lambda p, d: -gpx.objectives.conjugate_mll(p, d),
    train_data=data,
    max_iters=5,
    verbose=False,
)
show("fit", history[-1])
