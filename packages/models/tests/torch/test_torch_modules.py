"""ResNet and MLP-Mixer beside modules written in torch, which have the names of torchvision and of timm."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn as tnn

import phlox
import phlox.numpy as jnp
import phlox_models
import phlox_nn as nn
from phlox.errors import ArgumentError
from phlox_models.resnet import ResNet, resnet

IMAGES = np.random.default_rng(0).normal(size=(4, 32, 32, 3)).astype(np.float32)
LABELS = np.array([0, 2, 1, 2])
CONFIG = {"model_type": "resnet", "hidden_sizes": [16, 32], "embedding_size": 8, "num_labels": 3}


def conv(ins, outs, kernel, stride=1, groups=1):
    return tnn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups, bias=False)


class Block(tnn.Module):
    """A basic block or a bottleneck, with the names of torchvision."""

    def __init__(self, ins, outs, stride, mid, groups):
        super().__init__()
        if mid:
            self.convs = 3
            self.conv1, self.conv2, self.conv3 = (
                conv(ins, mid, 1),
                conv(mid, mid, 3, stride, groups),
                conv(mid, outs, 1),
            )
        else:
            self.convs = 2
            self.conv1, self.conv2 = conv(ins, outs, 3, stride), conv(outs, outs, 3)
        for n in range(1, self.convs + 1):
            setattr(self, f"bn{n}", tnn.BatchNorm2d(getattr(self, f"conv{n}").out_channels))
        has_shortcut = stride > 1 or ins != outs
        self.downsample = tnn.Sequential(conv(ins, outs, 1, stride), tnn.BatchNorm2d(outs)) if has_shortcut else None

    def forward(self, x):
        y = x
        for n in range(1, self.convs + 1):
            y = getattr(self, f"bn{n}")(getattr(self, f"conv{n}")(torch.relu(y) if n > 1 else y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class TorchResNet(tnn.Module):
    def __init__(self, depths, widths, bottleneck, stem, labels, groups=1, width=64):
        super().__init__()
        self.conv1, self.bn1 = conv(3, stem, 7, 2), tnn.BatchNorm2d(stem)
        ins, self.depth = stem, len(depths)
        for number, (depth, outs) in enumerate(zip(depths, widths, strict=True)):
            mid = outs // 4 * width // 64 * groups if bottleneck else None
            strides = [2 if number else 1] + [1] * (depth - 1)
            blocks = [Block(outs if n else ins, outs, stride, mid, groups) for n, stride in enumerate(strides)]
            setattr(self, f"layer{number + 1}", tnn.Sequential(*blocks))
            ins = outs
        self.fc = tnn.Linear(ins, labels)

    def forward(self, x):
        x = tnn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for number in range(self.depth):
            x = getattr(self, f"layer{number + 1}")(x)
        return self.fc(x.mean((2, 3)))


class TorchMixer(tnn.Module):
    """An MLP-Mixer with the names of timm."""

    def __init__(self, patch, count, features, hidden, labels):
        super().__init__()

        def mlp(n, between):
            return tnn.ModuleDict({"fc1": tnn.Linear(n, between), "fc2": tnn.Linear(between, n)})

        self.stem = tnn.ModuleDict({"proj": tnn.Conv2d(3, features, patch, patch)})
        names = {"norm1": None, "mlp_tokens": (count, hidden[0]), "norm2": None, "mlp_channels": (features, hidden[1])}
        self.blocks = tnn.ModuleList(
            tnn.ModuleDict({k: mlp(*v) if v else tnn.LayerNorm(features, eps=1e-6) for k, v in names.items()})
            for _ in range(2)
        )
        self.norm, self.head = tnn.LayerNorm(features, eps=1e-6), tnn.Linear(features, labels)

    def forward(self, x):
        x = self.stem["proj"](x).flatten(2).transpose(1, 2)
        for b in self.blocks:
            y = b["norm1"](x).transpose(1, 2)
            y = b["mlp_tokens"]["fc2"](tnn.functional.gelu(b["mlp_tokens"]["fc1"](y)))
            x = x + y.transpose(1, 2)
            y = tnn.functional.gelu(b["mlp_channels"]["fc1"](b["norm2"](x)))
            x = x + b["mlp_channels"]["fc2"](y)
        return self.head(self.norm(x).mean(1))


def randomized(module):
    torch.manual_seed(0)
    for value in module.parameters():
        value.data = torch.randn_like(value) * 0.2
    for name, value in module.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            value.data = torch.rand_like(value) + 0.5
    return module


def channels_first(x):
    return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))


def written(folder, config, module):
    """The model and parameters of a folder with this configuration and the weights of this module."""
    (folder / "config.json").write_text(json.dumps(config))
    save_file(module.state_dict(), folder / "model.safetensors")
    return phlox_models.load(folder)


KINDS = {"basic": (False, 1, 64), "bottleneck": (True, 1, 64), "grouped": (True, 4, 16), "wide": (True, 1, 128)}


def resnets(folder, kind):
    bottleneck, groups, width = KINDS[kind]
    module = randomized(TorchResNet([1, 2], [16, 32], bottleneck, 8, 3, groups, width))
    config = CONFIG | {"depths": [1, 2], "layer_type": "bottleneck" if bottleneck else "basic"}
    return module, *written(folder, config | {"groups": groups, "width_per_group": width}, module)


@pytest.mark.parametrize("kind", KINDS)
def test_resnet_reads_the_names_of_torchvision(tmp_path, kind):
    module, model, params = resnets(tmp_path, kind)
    with torch.no_grad():
        theirs = module.eval()(channels_first(IMAGES))
    np.testing.assert_allclose(phlox.jit(model.apply)(params, IMAGES), theirs, atol=1e-5, rtol=1e-5)


def test_a_step_of_fine_tuning_is_that_of_torch(tmp_path):
    module, model, params = resnets(tmp_path, "bottleneck")
    state, params = nn.partition(params, ("*.mean", "*.var"))

    def loss(params, state):
        logits, state = model.apply(params, IMAGES, state=state, train=True)
        return -jnp.take_along_axis(nn.log_softmax(logits), LABELS[:, None], axis=1).mean(), state

    @phlox.jit
    def step(params, state):
        (value, state), gradients = phlox.value_and_grad(loss, has_aux=True)(params, state)
        return value, phlox.tree.map(lambda p, g: p - 0.1 * g, params, gradients), state

    optimizer, ours, theirs = torch.optim.SGD(module.train().parameters(), lr=0.1), [], []
    for _ in range(3):
        error = tnn.functional.cross_entropy(module(channels_first(IMAGES)), torch.from_numpy(LABELS))
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        theirs.append(error.item())
        value, params, state = step(params, state)
        ours.append(float(value))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    expected, expected_state = nn.load_torch(model, module)
    phlox.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4), params, expected)
    phlox.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5), state, expected_state)
    # Evaluation, with the statistics among the parameters again, and their file.
    merged = nn.merge(params, state)
    with torch.no_grad():
        evaluated = module.eval()(channels_first(IMAGES))
    np.testing.assert_allclose(model.apply(merged, IMAGES), evaluated, atol=1e-4, rtol=1e-4)
    phlox_models.save(tmp_path / "tuned", model, merged)
    again, loaded = phlox_models.load(tmp_path / "tuned")
    np.testing.assert_array_equal(again.apply(loaded, IMAGES), model.apply(merged, IMAGES))


def test_training_without_separate_statistics_is_told(tmp_path):
    _, model, params = resnets(tmp_path, "basic")
    with pytest.raises(ArgumentError, match=r"(?s)batch statistics, which are among params.*nn\.partition"):
        model.apply(params, IMAGES, train=True)
    gradients = phlox.grad(lambda params: model.apply(params, IMAGES).sum())(params)
    assert not np.any(gradients["bn1"]["mean"])
    assert not np.any(gradients["layer2"]["0"]["bn1"]["var"])
    assert np.any(gradients["bn1"]["weight"])


def test_sizes_are_those_of_torchvision():
    sizes = {"resnet18": 11689512, "resnet50": 25557032, "resnext50_32x4d": 25028904, "wide_resnet50_2": 68883240}
    for name, count in sizes.items():
        shapes = phlox.eval_shape(resnet(name).init, phlox.random.key(0))
        assert sum(x.size for x in phlox.tree.leaves(shapes)) == count
    with pytest.raises(ArgumentError, match="there is no ResNet 'resnet5'"):
        resnet("resnet5")
    assert isinstance(phlox_models.build(resnet("resnet18").config), ResNet)


def test_mlp_mixer_reads_the_names_of_timm(tmp_path):
    module = randomized(TorchMixer(8, 16, 12, (10, 20), 3))
    config = {"model_type": "mlp-mixer", "image_size": 32, "patch_size": 8, "hidden_size": 12, "num_hidden_layers": 2}
    config |= {"tokens_mlp_dim": 10, "channels_mlp_dim": 20, "num_labels": 3}
    model, params = written(tmp_path, config, module)
    theirs = module(channels_first(IMAGES))
    np.testing.assert_allclose(phlox.jit(model.apply)(params, IMAGES), theirs.detach(), atol=1e-5, rtol=1e-5)
    torch.tanh(theirs).sum().backward()
    gradients = phlox.jit(phlox.grad(lambda params: jnp.tanh(model.apply(params, IMAGES)).sum()))(params)
    for value in module.parameters():
        value.data = value.grad
    _, expected = written(tmp_path, config, module)
    phlox.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * (1 + abs(b).max())), gradients, expected)
