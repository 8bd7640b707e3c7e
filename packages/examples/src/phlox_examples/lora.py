"""``./train lora``: a network that was trained in PyTorch learns a new task by few numbers.

A PyTorch network reads digits. Then the task changes: pictures are turned by a quarter. To train all weights W again
would make, for each task, a network as large as the first. Low-rank adaptation (Hu et al. 2021) leaves W as it is, and
learns a change of it that is a product of two thin matrices,

    x W  becomes  x (W + A B),      A: n x r,  B: r x m,      r much smaller than n and m.

B is zero at first, so that training begins with the old network. `nn.load_torch` reads the weights of the PyTorch
module, `nn.LoRA` adds the matrices, `nn.partition` takes what is learnt apart from what is frozen, and gradients are
computed of the first only. In the end `merged` adds A B to W, and `nn.to_torch` gives the weights back to PyTorch.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import phlox
import phlox_data
import phlox_nn as nn
import phlox_optim as optim

from . import digits, plots, report, results
from .errors import ProgramError
from .fitting import fit
from .options import settings_of

network = nn.Sequential(nn.Linear(64, 128), nn.relu, nn.Linear(128, 128), nn.relu, nn.Linear(128, 10))


def torch_network(torch: Any, train: dict[str, Any], epochs: int, seed: int) -> Any:
    """The same network as a PyTorch module, trained in PyTorch."""
    torch.manual_seed(seed)
    layers = torch.nn
    module = layers.Sequential(
        *(layers.Linear(64, 128), layers.ReLU(), layers.Linear(128, 128), layers.ReLU(), layers.Linear(128, 10))
    )
    optimizer = torch.optim.Adam(module.parameters(), 2e-3)
    images, labels = torch.from_numpy(train["image"]), torch.from_numpy(train["label"]).long()
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            layers.functional.cross_entropy(module(images[chosen]), labels[chosen]).backward()
            optimizer.step()
    return module


def turned(part: dict[str, Any]) -> dict[str, Any]:
    """The same digits, turned by a quarter."""
    images = np.rot90(part["image"].reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
    return {"image": np.ascontiguousarray(images), "label": part["label"]}


def run(options: argparse.Namespace) -> None:
    """Trains in PyTorch, adapts to turned pictures, gives the weights back, and draws what has changed."""
    results.make_folder(options.out, "--out")
    torch = phlox_data.require("torch")
    data = digits.load(options.seed)
    digits.steps(data, options.batch_size)

    # 1. The old network, and its weights here.
    module = torch_network(torch, data.train, options.torch_epochs, options.seed)
    weights, _ = nn.load_torch(network, module)

    # 2. The adapters, beside the frozen weights.
    model = nn.LoRA(network, options.rank)
    params = model.init(phlox.random.key(options.seed)) | {"layer": weights}
    learnt, frozen = nn.partition(params, "adapters")

    def measure(learnt: Any, batch: Any) -> Any:
        return digits.measure(model.apply(nn.merge(learnt, frozen), batch["image"]), batch["label"])

    def loss(learnt: Any, batch: Any) -> Any:
        figures = measure(learnt, batch)
        return figures.pop("loss"), figures

    # 3. The training, on turned pictures.
    step = optim.make_step(loss, optim.adam(options.learning_rate))
    state = step.init(learnt)
    old_task = optim.make_evaluation(measure, [phlox.device_put(data.test)], prefix="")
    new_task = optim.make_evaluation(measure, [phlox.device_put(turned(data.test))], prefix="test_")
    upright, before = old_task(state)["accuracy"], new_task(state)["test_accuracy"]
    report.show(f"The network from PyTorch reads {upright:.2%} of upright digits, {before:.2%} of turned ones.")
    batches = phlox_data.batches(turned(data.train), options.batch_size, seed=options.seed, last="drop")
    state, history = fit(state, step, batches, epochs=options.epochs, evaluate=new_task)

    # 4. Back to PyTorch, which must read the turned digits as well as phlox does.
    merged = model.merged(nn.merge(state.params, frozen))
    module.load_state_dict({name: torch.as_tensor(x) for name, x in nn.to_torch(network, merged).items()})
    with torch.no_grad():
        read = module(torch.from_numpy(turned(data.test)["image"])).argmax(1).numpy()
    in_torch = float((read == data.test["label"]).mean())
    after = history[-1]["test_accuracy"]
    if abs(in_torch - after) > 0.005:
        raise ProgramError(f"PyTorch reads {in_torch:.2%} with the same weights, and phlox {after:.2%}", status=1)

    few, all_of_them = (sum(x.size for x in phlox.tree.leaves(tree)) for tree in (learnt, weights))
    title = f"{few} numbers beside {all_of_them} frozen ones: turned digits read, from {before:.0%} to {after:.1%}"
    figure = plots.figure(title, (11, 4.8))
    left, right = figure.subplots(1, 2)
    epochs = [0, *(row["epoch"] for row in history)]
    plots.curve(left, epochs, [before, *(row["test_accuracy"] for row in history)], plots.ORANGE, f"{after:.1%}")
    left.axhline(upright, color=plots.GREY, linewidth=1, linestyle="--")
    left.annotate("the old network, upright digits", (0, upright), (4, 4), textcoords="offset points", color=plots.GREY)
    left.set(title="Accuracy on turned test pictures", xlabel="epoch", ylabel="read correctly", ylim=(0, 1.08))
    plots.percents(left)
    for number, name in enumerate(("0", "2", "4")):
        change = np.asarray(merged[name]["weight"]) - np.asarray(weights[name]["weight"])
        sizes = np.linalg.svd(change, compute_uv=False)[:10]
        plots.curve(right, np.arange(1, 11), sizes, (plots.BLUE, plots.ORANGE, plots.GREY)[number], "")
        right.lines[-1].set_label(f"layer {number + 1}, {' x '.join(map(str, change.shape))}")
    right.legend(frameon=False)
    right.set(title=f"Singular values of the changes: {options.rank} and no more", xlabel="number", ylabel="value")
    contents = {
        "settings": settings_of(options),
        "epochs": history,
        "learnt": few,
        "frozen": all_of_them,
        "accuracy_before": before,
        "test_accuracy": after,
        "accuracy_in_torch": in_torch,
    }
    written = results.write(options, contents, figure)
    report.show(f"Accuracy on turned digits: {after:.2%}, with PyTorch too. Wrote {' and '.join(written)}.")
