"""Low-rank fine-tuning (Hu et al., 2021) of a network that was trained in PyTorch, and the weights back to PyTorch."""

import numpy as np
import optax
import torch
from flax import nnx

from .data import digits


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.LoRALinear(64, 128, lora_rank=4, rngs=rngs)
        self.last = nnx.LoRALinear(128, 10, lora_rank=4, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.first(x)))


def loss(model, images, labels):
    scores = model(images.reshape(len(images), -1))
    return optax.softmax_cross_entropy_with_integer_labels(scores, (labels + 1) % 10).mean()


@nnx.jit
def step(model, optimizer, images, labels):
    value, grads = nnx.value_and_grad(loss, argnums=nnx.DiffState(0, nnx.LoRAParam))(model, images, labels)
    optimizer.update(model, grads)
    return value


def main(steps, module):
    model = Network(nnx.Rngs(0))
    names = {"0": model.first, "2": model.last}
    for name, layer in names.items():
        weights = module.get_submodule(name)
        layer.kernel[...] = weights.weight.detach().numpy().T
        layer.bias[...] = weights.bias.detach().numpy()
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.LoRAParam)
    losses = [float(step(model, optimizer, images, labels)) for images, labels in digits(steps)]
    merged = {}
    for name, layer in names.items():
        kernel = layer.kernel[...] + layer.lora.lora_a[...] @ layer.lora.lora_b[...]
        merged[f"{name}.weight"] = torch.from_numpy(np.array(kernel.T))
        merged[f"{name}.bias"] = torch.from_numpy(np.array(layer.bias[...]))
    return losses, merged
