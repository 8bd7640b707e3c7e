"""A layer beside a module of PyTorch: outputs and gradients are equal."""

import numpy as np
import torch

import phlox
import phlox.numpy as jnp
import phlox_nn as nn


def drawn(rng, *shape):
    return rng.normal(size=shape).astype(np.float32)


def compare(layer, module, x, *, space=False, theirs=None, ours=None, state=None, train=False, tolerance=2e-5):
    """Outputs and gradients are equal; `ours` and `theirs` say how both are called, if not with `x` alone."""
    torch.manual_seed(0)
    for value in module.parameters():
        value.data = torch.randn_like(value) * 0.4
    module.train(train)
    params, _ = nn.load_torch(layer, module)
    state = layer.init_state() if state is None else state
    given = torch.from_numpy(np.moveaxis(x, -1, 1).copy() if space else x).requires_grad_()
    theirs, ours = theirs or (lambda x: module(x)), ours or (lambda model, x: model(x))
    expected = theirs(given)
    weights = drawn(np.random.default_rng(1), *expected.shape)
    (expected * torch.from_numpy(weights)).sum().backward()

    def back(array):
        return np.moveaxis(array, 1, -1) if space else array

    def loss(params, x):
        y = ours(layer.bind(params, state=state, train=train), x)
        return (y * back(weights)).sum(), y

    (_, y), (slopes, moved) = phlox.jit(phlox.value_and_grad(loss, (0, 1), has_aux=True))(params, jnp.asarray(x))
    np.testing.assert_allclose(y, back(expected.detach().numpy()), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(moved, back(given.grad.numpy()), rtol=10 * tolerance, atol=10 * tolerance)
    found = nn.to_torch(layer, slopes, state)
    for name, value in module.named_parameters():
        np.testing.assert_allclose(found[name], value.grad, rtol=20 * tolerance, atol=20 * tolerance, err_msg=name)
