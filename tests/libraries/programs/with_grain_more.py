"""grain: transformations, mixtures, windows, and iterators that continue where they were stopped."""

import dataclasses

import grain
import jax
import jax.numpy as jnp
import numpy as np
from common import show


class Squares:
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return {"x": np.float32(i), "y": np.float32(i * i)}


class Double(grain.transforms.Map):
    def map(self, element):
        return jax.tree.map(lambda v: 2 * v, element)


@dataclasses.dataclass(frozen=True)
class Noise(grain.transforms.RandomMap):
    scale: float

    def random_map(self, element, rng):
        return {**element, "x": element["x"] + np.float32(self.scale * rng.normal())}


class Even(grain.transforms.Filter):
    def filter(self, element):
        return element["x"] % 2 == 0


source = grain.MapDataset.source(Squares())
show("shuffle", list(source.seed(3).shuffle()))
show("transforms", list(source.map(Double()).seed(1).random_map(Noise(0.1))))
show("filter", list(source.filter(Even()).to_iter_dataset().batch(2, drop_remainder=True)))
show("slices", list(source[2:8:2]), list(source.slice(slice(1, 4))))
show("repeat", list(source[:3].repeat(2)))
show("mix", list(grain.MapDataset.mix([source[:4], source[4:]], weights=[0.25, 0.75])))
show("concatenated", list(grain.MapDataset.concatenate([source[:2], source[5:7]])))
show("window", list(grain.experimental.WindowShuffleMapDataset(source, window_size=4, seed=2)))
iterator = iter(source.seed(5).shuffle().to_iter_dataset().batch(4))
first = next(iterator)
state = iterator.get_state()
rest = list(iterator)
iterator.set_state(state)
again = list(iterator)
show("continued", first, rest, all(np.array_equal(a["x"], b["x"]) for a, b in zip(rest, again, strict=True)))
loader = grain.DataLoader(
    data_source=Squares(),
    sampler=grain.samplers.IndexSampler(
        12, shuffle=True, num_epochs=2, seed=4, shard_options=grain.sharding.NoSharding()
    ),
    operations=[Double(), grain.transforms.Batch(5, drop_remainder=True)],
    worker_count=0,
)
batches = list(loader)
show("loader", batches)
step = jax.jit(lambda w, b: w - 0.01 * jax.grad(lambda w: jnp.mean((w * b["x"] - b["y"]) ** 2))(w))
w = jnp.float32(0)
for batch in batches:
    w = step(w, jax.tree.map(jnp.asarray, batch))
show("training", w)
