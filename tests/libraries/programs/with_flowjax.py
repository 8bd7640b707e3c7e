"""flowjax: a normalizing flow fitted to samples."""

import jax
import jax.numpy as jnp
from common import show
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow, masked_autoregressive_flow
from flowjax.train import fit_to_data

key = jax.random.key(0)
samples = jax.random.normal(key, (64, 2)) * 2 + 1
for make in (masked_autoregressive_flow, coupling_flow):
    options = {"nn_width": 8, "nn_depth": 1, "flow_layers": 2}
    if make is coupling_flow:
        from flowjax.bijections import Affine

        options["transformer"] = Affine()
    flow = make(key, base_dist=Normal(jnp.zeros(2)), **options)
    show(f"{make.__name__} at the start", flow.log_prob(samples[:3]), flow.sample(key, (2,)))
    flow, losses = fit_to_data(key, flow, samples, max_epochs=2, batch_size=16, show_progress=False)
    show(make.__name__, flow.log_prob(samples[:3]), losses["train"])
