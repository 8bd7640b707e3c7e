"""jaxlie: rotations and rigid motions, and gradients along them."""

import jax
import jax.numpy as jnp
import jaxlie
from common import show

rotation = jaxlie.SO3.exp(jnp.array([0.1, 0.2, 0.3]))
motion = jaxlie.SE3.from_rotation_and_translation(rotation, jnp.ones(3))
show("values", rotation.wxyz, (motion @ motion).parameters(), motion.inverse().apply(jnp.ones(3)), motion.log())
show("matrix", jaxlie.SE2.exp(jnp.ones(3)).as_matrix(), jax.vmap(jaxlie.SO2.exp)(jnp.ones((2, 1))).unit_complex)
cubes = lambda r: (r.apply(jnp.ones(3)) ** 3).sum()
show("gradient", jaxlie.manifold.grad(cubes)(rotation), jaxlie.manifold.rplus(rotation, jnp.ones(3) / 9).wxyz)
