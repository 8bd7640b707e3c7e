"""tunix: a Llama with and without checkpoints of its layers, its cache, losses of reinforcement learning, a trainer."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
from common import show
from flax import nnx
from tunix.models.llama3 import model as llama
from tunix.rl import common
from tunix.sft import peft_trainer, utils

config = llama.ModelConfig(
    num_layers=2,
    vocab_size=16,
    embed_dim=8,
    hidden_dim=16,
    num_heads=2,
    head_dim=4,
    num_kv_heads=1,
    rope_theta=10_000,
    norm_eps=1e-5,
    weight_tying=True,
)
tokens = jnp.array([[1, 2, 3, 4, 5, 0], [6, 7, 8, 0, 0, 0]])
filled = tokens != 0
positions = utils.build_positions_from_mask(filled)
mask = utils.make_causal_attn_mask(filled)
show("inputs", positions, mask)
for remat in llama.RematConfig:
    model = llama.Llama3(dataclasses.replace(config, remat_config=remat), rngs=nnx.Rngs(0))
    graph, state = nnx.split(model)

    def loss(state, graph=graph):
        logits, _ = nnx.merge(graph, state)(tokens, positions, None, mask)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(tokens, -1, 1)).mean(where=filled)

    show(remat.name, jax.jit(jax.value_and_grad(loss))(state))
logits, _ = model(tokens, positions, None, mask)
picked = common.selective_log_softmax(logits, tokens)
show("log probabilities", picked)
for kind in ("kl", "mse_kl", "low_var_kl"):
    show(kind, common.compute_kl_divergence(picked, picked * 1.1, kind))
show("completion mask", common.make_completion_mask(tokens, eos_tok=5))
show("padded", common.pad_to_length(tokens, 8, pad_value=0, left=True, axis=1))


def inputs(batch):
    return {
        "input_tokens": batch.input_tokens,
        "input_mask": batch.input_mask,
        "positions": positions,
        "attention_mask": mask,
    }


trainer = peft_trainer.PeftTrainer(
    model, optax.adamw(1e-2), peft_trainer.TrainingConfig(eval_every_n_steps=10, max_steps=3)
).with_gen_model_input_fn(inputs)
trainer.train([peft_trainer.TrainingInput(input_tokens=tokens, input_mask=filled)] * 3)
show("trained", nnx.state(model, nnx.Param))
