"""clu: metrics, and summaries of parameters."""

import flax
import jax
import jax.numpy as jnp
from clu import metrics, parameter_overview
from common import data, show

x, y = data()


@flax.struct.dataclass
class Metrics(metrics.Collection):
    """What a training step reports."""

    accuracy: metrics.Accuracy
    loss: metrics.Average.from_output("loss")
    last: metrics.LastValue.from_output("loss")


logits = jnp.concatenate([x, x[:, ::-1] * 2], 1)
labels = jnp.arange(len(x)) % 4
total = Metrics.empty()
for scale in (1.0, 2.0):
    total = total.merge(Metrics.single_from_model_output(logits=logits * scale, labels=labels, loss=(x * scale).sum(1)))
show("computed", total.compute())
show("jitted", jax.jit(lambda m: m.merge(m).compute())(total))
masked = metrics.Average.from_model_output(jnp.arange(6.0), mask=jnp.array([1, 1, 0, 1, 0, 0]))
show("masked", masked.compute())
stacked = jax.pmap(lambda x: metrics.Average.from_model_output(x).merge(metrics.Average.empty()))(x[None])
show("reduced", stacked.reduce().compute())
gathered = jax.pmap(
    lambda x: Metrics.gather_from_model_output(logits=x, labels=jnp.ones(len(x), int), loss=x[:, 0]), "batch"
)
show("gathered", gathered(x[None]).unreplicate().compute())
overview = parameter_overview.get_parameter_overview({"a": {"w": x, "b": y}}, include_stats=True)
show("overview", [ord(c) for c in overview])
show("count", parameter_overview.count_parameters({"a": x, "b": {"c": y, "d": y}}))
