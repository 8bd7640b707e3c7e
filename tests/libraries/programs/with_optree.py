"""optree: trees of arrays as vectors."""

import jax
import jax.numpy as jnp
import optree
from common import show
from optree.integrations.jax import tree_ravel

tree = {"b": jnp.ones(2), "a": 1.0, "c": jnp.arange(3)}
vector, unravel = tree_ravel(tree)
show("vector", vector, unravel(vector * 2))
show("jit", jax.jit(lambda t: tree_ravel(t)[0])({"b": jnp.ones(2), "a": 1.0}))
show("map", optree.tree_map(lambda x: x + 1, tree))
