"""qwix: quantized models of flax."""

import jax
import jax.numpy as jnp
import qwix
from common import show
from flax import linen as nn


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(8)(x)))


x = jnp.linspace(-1, 1, 12).reshape(3, 4)
model = Model()
params = model.init(jax.random.key(0), x)
for dtype in ("int8",):
    quantized = qwix.quantize_model(model, qwix.QtProvider([qwix.QtRule(weight_qtype=dtype, act_qtype=dtype)]))
    show(f"{dtype} apply", quantized.apply(params, x))
    show(f"{dtype} grad", jax.grad(lambda p, q=quantized: (q.apply(p, x) ** 2).sum())(params))
