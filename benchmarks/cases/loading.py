"""Batches from the host to a device: phlox_data beside the loops that people write with jax.

Both run in one process, epoch by epoch in turn, and each process prints the median of the ratios of pairs: loading
depends more than anything else on what the machine does besides.
"""

from __future__ import annotations

from ..case import started

_COUNT, _SIZE = 64, 128  # batches of an epoch, examples of a batch

_PREPARE = f"""
import statistics, time
import jax, numpy as np, phlox, phlox_data as data

count, size = {_COUNT}, {_SIZE}
random = np.random.default_rng(0)
images = (random.random((count * size, *SHAPE)) * 255).astype("DTYPE")
labels = np.arange(count * size, dtype="int32") % 10

def ratio(theirs, mine, turns=15):
    \"\"\"The median of the ratios of pairs of epochs, one right after the other.\"\"\"
    found = []
    for turn in range(-1, turns):
        seconds = {{}}
        for run in (theirs, mine) if turn % 2 else (mine, theirs):
            start = time.perf_counter()
            run()
            seconds[run] = time.perf_counter() - start
        if turn >= 0:
            found.append(seconds[mine] / seconds[theirs])
    return statistics.median(found)

def put(batches):
    for batch in batches:
        done = jax.device_put(batch)
    jax.block_until_ready(done)

def through(batches):
    for batch in batches:
        pass
    phlox.block_until_ready(batch)

def use(m, batches):
    f = steps[m]
    for x, y in batches:
        done = f(x, y)
    m.block_until_ready(done)

def step(m):  # takes whole batches, and reads so little of them that loading is measured and not itself
    return m.jit(lambda x, y: (x[0].max(), y[0]))

steps = {{m: step(m) for m in (jax, phlox)}}
"""

_TORCH = """
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

class Examples(Dataset):  # NumPy arrays, transformed one by one, as by FlattenAndCast of the same page
    def __len__(self):
        return len(images)

    def __getitem__(self, i):
        return np.ravel(np.array(images[i], dtype="float32")), int(labels[i])

tensors = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))

def recipe(batch):  # numpy_collate of "Training a Simple Neural Network, with PyTorch Data Loading"
    return jax.tree.map(np.asarray, default_collate(batch))

def collate(batch):  # the quickest that is written in a few lines
    first = batch[0]
    if isinstance(first, tuple | list):
        return [collate(column) for column in zip(*batch)]
    if isinstance(first, torch.Tensor):
        return torch.stack(batch).numpy()
    return np.stack(batch) if isinstance(first, np.ndarray) else np.asarray(batch)

def loader(dataset, **options):
    return DataLoader(dataset, size, **options)
"""

_SLICING = """
def theirs():
    order = np.random.RandomState(0).permutation(len(images))
    put((images[rows], labels[rows]) for rows in order.reshape(count, size))

train = data.batches((images, labels), size, seed=0)
print(ratio(theirs, lambda: through(train)))
"""

_TF = """
tf = data.require("tensorflow")
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(size)
train = data.from_tf(dataset)
print(ratio(lambda: put(dataset.as_numpy_iterator()), lambda: through(train)))
"""


def _recipe(dataset: str) -> str:
    return f"""
other, train = loader({dataset}, collate_fn=recipe), data.from_torch(loader({dataset}))
print(ratio(lambda: use(jax, other), lambda: use(phlox, train)))
"""


def _bare(dataset: str) -> str:
    return f"""
other, train = loader({dataset}, collate_fn=collate), data.from_torch(loader({dataset}))
print(ratio(lambda: put(other), lambda: through(train)))
"""


_HIDDEN = """
class Augmented(Examples):  # what training on images does with each: scaled, shifted, mirrored
    def __getitem__(self, i):
        image = np.asarray(images[i], dtype="float32") / 255 - 0.5
        image = np.roll(image, random.integers(-2, 3, 2), (0, 1))
        return np.ascontiguousarray(image[:, :: random.choice((-1, 1))]), int(labels[i])

def program(n, x, w):
    return phlox.lax.fori_loop(0, n, lambda i, w: phlox.numpy.tanh(w @ w), w + x.mean())

step = phlox.jit(program)
weights = phlox.numpy.zeros((64, 64))

def seconds(run, turns=5):
    found = []
    for _ in range(turns):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)

def epoch(train, n):
    for x, y in train:
        step(n, x, weights).block_until_ready()

made, alone = (data.from_torch(loader(Augmented()), prefetch=prefetch) for prefetch in (2, 0))
x, y = next(iter(alone))
load = seconds(lambda: through(alone))
epoch([(x, y)], 10)
once = seconds(lambda: step(10000, x, weights).block_until_ready()) / 10000
n = int(load / count / once)  # steps that take as long as the loading
work = seconds(lambda: epoch([(x, y)] * count, n))
epoch(made, n)
shares = []
for _ in range(7):
    both = seconds(lambda: epoch(made, n), 1)
    load, work = seconds(lambda: through(alone), 1), seconds(lambda: epoch([(x, y)] * count, n), 1)
    shares.append((both - work) / load)
print(max(0.0, statistics.median(shares)))
"""

_KINDS: list[tuple[str, str, float, tuple[str, ...]]] = [
    ("batches, to slicing", _SLICING, 1.1, ()),
    ("torch arrays, to recipe", _TORCH + _recipe("Examples()"), 0.67, ("torch",)),
    ("torch tensors, to recipe", _TORCH + _recipe("tensors"), 0.67, ("torch",)),
    ("torch arrays, to bare", _TORCH + _bare("Examples()"), 1.0, ("torch",)),
    ("torch tensors, to bare", _TORCH + _bare("tensors"), 1.0, ("torch",)),
    ("tf, to as_numpy", _TF, 1.05, ("tensorflow",)),
    ("share waited for", _TORCH + _HIDDEN, 0.2, ("torch",)),
]

for _name, _program, _budget, _needs in _KINDS:
    for _shape, _dtype in (((28, 28, 1), "float32"), ((32, 32, 3), "uint8")):
        _text = _PREPARE.replace("SHAPE", str(_shape)).replace("DTYPE", _dtype) + _program
        _kind = "x".join(map(str, _shape))
        started(
            f"loading/{_name}, {_kind}",
            _text,
            libraries=("phlox",),
            budget=_budget,
            unit="of 1",
            needs=("jax", *_needs),
            quick=_kind == "28x28x1" and _name in ("batches, to slicing", "torch arrays, to recipe"),
        )
