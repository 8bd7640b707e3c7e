"""drjax: federated map and reduce as primitives."""

import drjax
import jax
import jax.numpy as jnp
from common import data, show

x, y = data(24)
clients = (x.reshape(4, 6, 2), y.reshape(4, 6, 1))


@drjax.program(placements={"clients": 4})
def average(weights, batches):
    """The mean loss of the clients."""
    weights = drjax.broadcast(weights)
    losses = drjax.map_fn(lambda w, b: jnp.mean((b[0] @ w - b[1]) ** 2), (weights, batches))
    return drjax.reduce_mean(losses)


@drjax.program(placements={"clients": 4})
def totals(batches):
    """Sums over the clients."""
    return drjax.reduce_sum(drjax.map_fn(lambda x: x.sum(0), batches[0]))


weights = jnp.ones((2, 1))
show("loss", average(weights, clients), jax.jit(average)(weights, clients))
show("gradient", jax.grad(average)(weights, clients), jax.jit(jax.value_and_grad(average))(weights, clients))
show("totals", totals(clients), jax.jvp(totals, (clients,), (clients,)))
show("equations", len(jax.make_jaxpr(average)(weights, clients).eqns) > 0)
