"""quax: products with low rank additions, by a trace of its own."""

import jax
import jax.numpy as jnp
import quax
from common import show
from quax.examples import lora

key = jax.random.key(0)
matrix = lora.LoraArray(jax.random.normal(key, (3, 3)), rank=2, key=key)
show("product", quax.quaxify(lambda a, b: a @ b)(matrix, jnp.ones(3)))
show("jit", jax.jit(quax.quaxify(lambda a, b: jnp.sin(a @ b).sum()))(matrix, jnp.ones(3)))
