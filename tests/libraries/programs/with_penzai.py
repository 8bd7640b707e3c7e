"""penzai: models as trees, selections, and named axes."""

import jax
import jax.numpy as jnp
from common import show
from penzai import pz
from penzai.models import simple_mlp

model = simple_mlp.MLP.from_config(jax.random.key(0), [2, 4, 1])
x = pz.nx.wrap(jnp.ones((3, 2))).tag("batch", "features")
show("apply", model(x).unwrap("batch", "features"))
show(
    "weights",
    [p.value.unwrap(*p.value.named_axes) for p in pz.select(model).at_instances_of(pz.Parameter).get_sequence()],
)
a = pz.nx.wrap(jnp.arange(6.0).reshape(2, 3)).tag("i", "j")
show("named", pz.nx.nmap(jnp.sin)(a).unwrap("i", "j"), a.unwrap("j", "i"))
show("selection", pz.select(model).at_instances_of(pz.nn.Affine).count())
