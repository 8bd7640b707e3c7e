"""A training step of four architectures: of phlox_models, and of the same networks in flax.nnx, equinox and torch.

All have the sizes of `SIZES`, float32, cross-entropy, and a step of gradient descent. Those of phlox, flax and equinox
are pure functions ``step(state, batch) -> (state, loss)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

Made = tuple[Callable[..., Any], tuple[Any, ...]]

#: the step of gradient descent
RATE = 0.01
SIZES: dict[str, dict[str, Any]] = {
    "ResNet": {"widths": (16, 32, 64), "depth": 2, "image": 32, "batch": 16},
    "ViT": {"features": 64, "layers": 4, "heads": 4, "hidden": 256, "image": 32, "patch": 4, "batch": 8},
    "GPT-2": {"features": 64, "layers": 4, "heads": 4, "hidden": 256, "tokens": 256, "length": 64, "batch": 8},
    "MLP-Mixer": {"features": 64, "layers": 4, "mixed": 32, "hidden": 256, "image": 32, "patch": 4, "batch": 8},
}
CLASSES = 10


def batch(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels: images (n, height, width, 3) with classes (n,), or tokens (n, length) with the next ones."""
    size, rng = SIZES[name], np.random.default_rng(0)
    if name == "GPT-2":
        tokens = rng.integers(0, size["tokens"], (size["batch"], size["length"] + 1)).astype(np.int32)
        return tokens[:, :-1], tokens[:, 1:]
    images = rng.standard_normal((size["batch"], size["image"], size["image"], 3)).astype(np.float32)
    return images, rng.integers(0, CLASSES, size["batch"]).astype(np.int32)


def config(name: str) -> dict[str, Any]:
    """The configuration for `phlox_models.build`."""
    s = SIZES[name]
    if name == "ResNet":
        depths = [s["depth"]] * len(s["widths"])
        stages = {"depths": depths, "hidden_sizes": list(s["widths"]), "embedding_size": s["widths"][0]}
        return {"model_type": "resnet", "layer_type": "basic", "num_labels": CLASSES, **stages}
    if name == "GPT-2":
        sizes = {"n_embd": s["features"], "n_layer": s["layers"], "n_head": s["heads"], "n_inner": s["hidden"]}
        dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        return {"model_type": "gpt2", "vocab_size": s["tokens"], "n_positions": s["length"], **sizes, **dropout}
    sizes = {"hidden_size": s["features"], "num_hidden_layers": s["layers"], "num_labels": CLASSES}
    sizes |= {"image_size": s["image"], "patch_size": s["patch"]}
    if name == "ViT":
        sizes |= {"num_attention_heads": s["heads"], "intermediate_size": s["hidden"], "hidden_act": "gelu_new"}
        return {"model_type": "vit", **sizes}
    return {"model_type": "mlp-mixer", "tokens_mlp_dim": s["mixed"], "channels_mlp_dim": s["hidden"], **sizes}


def step(m: Any, name: str, other: str) -> Made:
    """The step of a network and its arguments: of phlox_models, or for jax of flax or equinox."""
    arrays = tuple(m.numpy.asarray(x) for x in batch(name))
    if m.__name__ == "phlox":
        return _phlox(name, arrays)
    return importlib.import_module(f"{__name__}.{other}_networks").step(name, arrays)


def _phlox(name: str, arrays: Any) -> Made:
    import phlox
    import phlox.numpy as jnp
    import phlox_models

    model = phlox_models.build(config(name))
    params, variables = model.init(phlox.random.key(0)), model.init_state()

    def loss(params: Any, variables: Any, batch: Any) -> Any:
        logits, variables = model.apply(params, batch[0], state=variables, train=True)
        scores = jnp.take_along_axis(phlox.nn.log_softmax(logits), batch[1][..., None], axis=-1)
        return -scores.mean(), variables

    def function(state: Any, batch: Any) -> Any:
        params, variables = state
        (value, variables), gradients = phlox.value_and_grad(loss, has_aux=True)(params, variables, batch)
        return (phlox.tree.map(lambda p, g: p - RATE * g, params, gradients), variables), value

    return function, ((params, variables), arrays)
