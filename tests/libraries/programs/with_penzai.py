"""penzai: models as trees, selections, and named axes."""

import jax
import jax.numpy as jnp
import numpy as np
from common import show
from penzai import pz
from penzai.models import simple_mlp
from penzai.models.transformer.variants import llamalike_common
from penzai.toolshed import auto_nmap, model_rewiring, save_intermediates

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
config = llamalike_common.LlamalikeTransformerConfig(
    num_kv_heads=1,
    query_head_multiplier=2,
    embedding_dim=8,
    projection_dim=4,
    mlp_hidden_dim=8,
    num_decoder_blocks=1,
    vocab_size=11,
    mlp_variant="swiglu",
    tie_embedder_and_logits=True,
    parameter_dtype=jnp.float32,
    activation_dtype=jnp.float32,
)
decoder = llamalike_common.build_llamalike_transformer(config, init_base_rng=jax.random.key(0))
tokens = pz.nx.wrap(jnp.array([[1, 2, 3]])).tag("batch", "seq")
logits = decoder(tokens, token_positions=pz.nx.arange("seq", 3))
show("transformer", logits.unwrap("batch", "seq", "vocabulary"))

text = pz.ts.render_to_text([a, jnp.ones(2), jnp.float32])
show("text", np.frombuffer(text.encode(), np.uint8))
saving = save_intermediates.saving_all_intermediates(model, shapes_only=True)
saving(x)
shapes = pz.select(saving).at_instances_of(save_intermediates.SaveIntermediateShape).get_sequence()
show("shapes", [list(s.saved.value.named_shape.values()) for s in shapes])
activations = pz.select(model).at_instances_of(pz.nn.Elementwise)
linear = activations.apply(lambda f: model_rewiring.LinearizeAndAdjust(lambda v: v * 0, lambda v: v + 1, f))
show("linearized", linear(x).unwrap("batch", "features"))
worlds = {
    "clean": model_rewiring.From("clean"),
    "mixed": (model_rewiring.From("clean", 0.3), model_rewiring.From("mixed")),
}
rewired = activations.insert_after(model_rewiring.RewireComputationPaths("worlds", ("clean", "mixed"), worlds))
both = pz.nx.stack([x, 2 * x], "worlds")
show("rewired", rewired(both).unwrap("worlds", "batch", "features"))
values, indices = auto_nmap.wrap_module(jax).lax.top_k(a.untag("j"), k=2)
show("top_k", values.tag("k").unwrap("i", "k"), indices.tag("k").unwrap("i", "k"))
