"""grain: pipelines of data, whose batches go to jax."""

import grain
import jax.numpy as jnp
import numpy as np
from common import show

dataset = grain.MapDataset.range(20).shuffle(seed=1).map(lambda i: {"x": np.float32(i)}).batch(4)
show("map", [batch["x"] for batch in dataset])
show("iterator", jnp.stack([jnp.asarray(batch["x"]) for batch in dataset.to_iter_dataset()]).sum(0))
loader = grain.DataLoader(
    data_source=np.arange(8), sampler=grain.samplers.IndexSampler(8, num_epochs=1, seed=0), worker_count=0
)
show("loader", list(loader))
