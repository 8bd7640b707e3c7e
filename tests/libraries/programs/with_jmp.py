"""jmp: policies of precision and scales of losses."""

import jax
import jax.numpy as jnp
import jmp
from common import data, show

x, y = data()
policy = jmp.get_policy("params=float32,compute=float16,output=float32")
weights = policy.cast_to_param({"w": jnp.ones((2, 1)), "b": jnp.zeros(1), "count": jnp.arange(3)})


def loss(weights, scale):
    weights, inputs = policy.cast_to_compute((weights, x))
    out = policy.cast_to_output(inputs @ weights["w"] + weights["b"])
    return scale.scale(jnp.mean((out - y) ** 2))


show("cast", policy.cast_to_compute(weights))
for scale in (jmp.NoOpLossScale(), jmp.StaticLossScale(2.0**10), jmp.DynamicLossScale(jnp.float32(2.0**15), period=2)):
    floats = {name: weights[name] for name in "wb"}
    gradients = scale.unscale(jax.jit(jax.grad(loss))(floats, scale))
    finite = jmp.all_finite(gradients)
    scale = scale.adjust(finite)
    show(type(scale).__name__, gradients, finite, scale.loss_scale)
bad = {"w": jnp.array([1.0, jnp.inf])}
show("skip", jmp.all_finite(bad), jmp.select_tree(jmp.all_finite(bad), bad, {"w": jnp.zeros(2)}))
scale = jmp.DynamicLossScale(jnp.float32(8.0), counter=jnp.int32(0), period=2, min_loss_scale=jnp.float32(2.0))
show("adjusted", jax.jit(lambda s: s.adjust(jnp.bool_(False)).adjust(jnp.bool_(True)).adjust(jnp.bool_(True)))(scale))
