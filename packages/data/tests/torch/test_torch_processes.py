"""Several processes, each with a DataLoader of its share and worker processes: all together every example once."""

import os
from collections import Counter

import pytest
import torch  # noqa: F401  (the programs below import both, which Pants cannot see in a text)

import phlox_data  # noqa: F401
from data_processes import together

_PROGRAM = """
import json, os, sys
out = os.fdopen(os.dup(1), "w")  # Gloo prints its connections on file descriptor 1, in pieces
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
import numpy as np
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import phlox, phlox_data as data
from phlox import NamedSharding, P
from phlox.sharding import Mesh

if __name__ == "__main__":
    port, me, count = map(int, sys.argv[1:])
    phlox.config.update("num_cpu_devices", 2)
    if count > 1:
        phlox.distributed.initialize(f"127.0.0.1:{port}", num_processes=count, process_id=me, initialization_timeout=60)
    sharding = NamedSharding(Mesh(np.array(phlox.devices()), ("data",)), P("data"))
    dataset = TensorDataset(torch.arange(80), torch.arange(80.0).reshape(80, 1))
    sampler = DistributedSampler(dataset, count, me, shuffle=True, seed=3)
    workers = {"num_workers": 2 if count < 4 else 1, "multiprocessing_context": "forkserver"}  # each takes a second
    loader = DataLoader(dataset, 16 // count, sampler=sampler, **workers)

    def share(epoch):
        sampler.set_epoch(epoch)
        return loader

    total = phlox.jit(lambda x: x.sum(), out_shardings=NamedSharding(sharding.mesh, P()))
    owned, sums = [], []
    for number, x in data.from_torch(share).epoch(1):
        whole = phlox.make_array_from_process_local_data(sharding, np.asarray(number))
        assert whole.shape == (16,)
        owned += [int(n) for part in whole.addressable_shards for n in part.data]
        sums.append(int(total(whole).addressable_data(0)))
    json.dump([owned, sums], out)
    out.flush()
    if count > 1:
        phlox.distributed.shutdown()
"""


@pytest.mark.parametrize("count", [1, 2, 4])
def test_shares_with_workers_arrive_once(monkeypatch, count):
    for name in ("XLA_FLAGS", "JAX_COORDINATOR_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(os.environ, "PHLOX_PLATFORMS", "cpu")
    outs = together(_PROGRAM, count)
    assert Counter(number for owned, _ in outs for number in owned) == Counter(range(80))
    # The programs over all processes see the same batches, and in them every example.
    assert all(sums == outs[0][1] for _, sums in outs)
    assert len(outs[0][1]) == 5 and sum(outs[0][1]) == sum(range(80))
