"""e3nn-jax: spherical harmonics and products of irreducible representations."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
from common import show

key, point = jax.random.key(0), jnp.array([1.0, 2.0, 3.0])
x = e3nn.normal("2x0e+1o", key, (3,))
y = e3nn.spherical_harmonics("0e+1o+2e", point, True)
show("harmonics", y.array)
show("product", e3nn.tensor_product(x, y[None]).array, e3nn.elementwise_tensor_product(x, x).array)
show("norm", e3nn.norm(x).array)


def total(v):
    return e3nn.spherical_harmonics(3, e3nn.IrrepsArray("1o", v), True).array.sum()


show("gradient", jax.grad(total)(point), jax.jit(jax.vmap(total))(jnp.stack([point, -point])))
