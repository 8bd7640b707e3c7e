"""quax: products with low rank additions, units, zeros and keys, by a trace of its own."""

import jax
import jax.numpy as jnp
import quax
from common import show
from quax.examples import lora, prng, unitful, zero

key = jax.random.key(0)
matrix = lora.LoraArray(jax.random.normal(key, (3, 3)), rank=2, key=key)
show("product", quax.quaxify(lambda a, b: a @ b)(matrix, jnp.ones(3)))
show("jit", jax.jit(quax.quaxify(lambda a, b: jnp.sin(a @ b).sum()))(matrix, jnp.ones(3)))
steps = quax.quaxify(lambda m, v: jax.lax.scan(lambda c, x: (m @ c + x, c.sum()), v, jnp.arange(4.0)))
show("scan", steps(matrix, jnp.ones(3)))
length = unitful.Unitful(jnp.arange(3.0), unitful.meters)
show("units in a loop", quax.quaxify(lambda v: jax.lax.scan(lambda c, x: (c, x + c), jnp.float32(0), v))(length.array))
show("cond", quax.quaxify(lambda v: jax.lax.cond(True, lambda a: a * 2, lambda a: a, v))(length))
grad = quax.quaxify(jax.grad(lambda m, v: (m @ v).sum()))
show("gradient", grad(lora.LoraArray(jnp.ones((2, 2)), rank=1, key=key), jnp.ones(2)))
nothing = zero.Zero((3,), jnp.float32)
show("zeros", quax.quaxify(lambda a, b: (a + b, jnp.broadcast_to(a, (2, 3))))(nothing, jnp.ones(3)))
words = prng.ThreeFry(0)
show("keys", prng.normal(words, (3,)), prng.split(words), jax.jit(lambda k: prng.uniform(k, (2,)))(words))
