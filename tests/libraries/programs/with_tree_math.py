"""tree-math: trees as vectors."""

import jax
import jax.numpy as jnp
import tree_math as tm
from common import data, show

x, y = data()
v = tm.Vector({"x": x, "y": [y, y * 2]})
show("arithmetic", (2 * v + v / 3 - v**2).tree, (v @ v), abs(-v).tree)
show("numpy", tm.numpy.where(v > 0, v, 0.0).tree, tm.numpy.maximum(v, 0.1).tree)


@tm.unwrap
def residual(tree):
    """The gradient of a sum of squares."""
    return jax.tree.map(lambda a: a**2, tree)


show("unwrap", residual(v).tree, tm.wrap(lambda u: u * 2)(v.tree))
show("gradient", jax.grad(lambda v: (v @ v) ** 2)(v).tree)


@tm.struct
class Point:
    """A point with arithmetic."""

    a: jax.Array
    b: jax.Array


p = Point(jnp.arange(3.0), jnp.ones(2))
show("struct", p * 2 + p, jax.jit(lambda p: p - p / 2)(p), jax.vmap(lambda s: p * s)(jnp.arange(3.0)))
show("functional", jax.lax.fori_loop(0, 3, lambda i, v: v * 0.5 + i, v).tree)
