"""Several processes that read one epoch: each its share, and all together every example exactly once."""

import os

import numpy as np
import pytest

from data_processes import together
from phlox_data._indexed import permutation

_HEAD = """
import json, os, sys
out = os.fdopen(os.dup(1), "w")  # Gloo prints its connections on file descriptor 1, in pieces
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
import numpy as np
import phlox, phlox_data as data
from phlox import NamedSharding, P
from phlox.errors import ArgumentError, AxisSizeError
from phlox.sharding import Mesh
port, me, count = map(int, sys.argv[1:])
phlox.config.update("num_cpu_devices", 2)
if count > 1:
    phlox.distributed.initialize(f"127.0.0.1:{port}", num_processes=count, process_id=me, initialization_timeout=60)
"""

_EPOCHS = (
    _HEAD
    + """
read = []

class Source:
    def __len__(self):
        return 40

    def __getitem__(self, number):
        read.append(number)
        return {"number": number, "x": np.full((2, 3), number, np.float32)}

devices = np.array(phlox.devices())
meshes = {
    "split": NamedSharding(Mesh(devices, ("data",)), P("data")),
    # The devices of a process hold the same examples, and different columns of them.
    "columns": NamedSharding(Mesh(devices.reshape(count, 2), ("data", "model")), P("data")),
    "everywhere": NamedSharding(Mesh(devices, ("data",)), P()),
}
found = {}
for name, sharding in meshes.items():
    for last in ("keep", "drop", "pad"):
        for seed in (None, 3):
            read.clear()
            batches, owned = [], []
            made = data.from_tfds(Source(), 16, seed=seed, last=last, device=sharding)
            for batch in made.epoch(2):
                batch, mask = batch if last == "pad" else (batch, None)
                number, x = batch["number"], batch["x"]
                assert number.sharding == x.sharding == sharding and x.shape == (len(number), 2, 3)
                total = phlox.jit(lambda x: x.sum(), out_shardings=NamedSharding(sharding.mesh, P()))(number)
                rows = {}
                for i, part in enumerate(number.addressable_shards):
                    real = np.ones(len(part.data), bool) if mask is None else mask.addressable_shards[i].data
                    assert (x.addressable_shards[i].data[:, 1, 2] == part.data).all()
                    begin = part.index[0].indices(len(number))[0]
                    here = [int(n) if r else -1 for n, r in zip(part.data, real)]
                    if part.replica_id == 0:
                        owned += [n for n in here if n >= 0]
                    rows.update(zip(range(begin, begin + len(here)), here))
                batches.append([len(number), int(total.addressable_data(0)), sorted(rows.items())])
            found[f"{name} {last} {seed}"] = {"batches": batches, "owned": owned, "read": len(read)}
json.dump(found, out)
out.flush()
if count > 1:
    phlox.distributed.shutdown()
"""
)

_ERRORS = (
    _HEAD
    + """
everywhere = NamedSharding(Mesh(np.array(phlox.devices()), ("data",)), P("data"))
said = []
for make in (
    lambda: data.batches(np.arange(40), 6, device=everywhere),
    lambda: data.batches(np.arange(42), 8, device=everywhere),
    lambda: data.batches(np.arange(40), 8, devices=phlox.devices()),
    lambda: data.from_iterable([np.arange(8)], device=everywhere),
    lambda: data.batches(np.arange(40), 8, device=NamedSharding(Mesh(np.array(phlox.devices()[:2]), ("i",)), P("i"))),
):
    try:
        make()
        said.append("nothing")
    except (ArgumentError, AxisSizeError) as error:
        said.append(str(error).splitlines()[0])
x, y = np.arange(40.0, dtype=np.float32).reshape(20, 2), np.arange(20)
batch = next(data.batches((x, y), 4, device=everywhere).epoch(0, start=3))
assert [part.data.tolist() for part in batch[1].addressable_shards] == [[12 + 2 * me], [13 + 2 * me]]
x[:] = -1
assert batch[0].addressable_shards[0].data.tolist() == [[24 + 4 * me, 25 + 4 * me]]
json.dump(said, out)
out.flush()
phlox.distributed.shutdown()
"""
)


@pytest.fixture(autouse=True)
def no_settings_of_this_process(monkeypatch):
    for name in ("XLA_FLAGS", "JAX_COORDINATOR_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(os.environ, "PHLOX_PLATFORMS", "cpu")


def order(seed):
    return np.arange(40) if seed is None else permutation(40, seed, 2)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_example_arrives_once(count):
    outs = together(_EPOCHS, count)
    for name in outs[0]:
        mesh, last, seed = name.split()
        expected = order(None if seed == "None" else int(seed))
        sizes = {"keep": [16, 16, 8], "drop": [16, 16], "pad": [16, 16, 16]}[last]
        arrived = expected[:32] if last == "drop" else expected
        parts = [out[name] for out in outs]
        owned = [number for part in parts for number in part["owned"]]
        assert sorted(owned) == sorted(arrived), name
        for n, size in enumerate(sizes):
            assert [part["batches"][n][0] for part in parts] == [size] * count
            real = expected[16 * n : 16 * n + 16]
            filled = [*real, *[real[-1]] * (size - len(real))]
            # A jitted program over all processes sees the whole batch, padding included.
            assert [part["batches"][n][1] for part in parts] == [sum(filled)] * count
            rows = dict(row for part in parts for row in part["batches"][n][2])
            assert [rows[i] for i in range(size)] == [*real, *[-1] * (size - len(real))]
        # No process reads more than its share.
        share = 1 if mesh == "everywhere" else count
        if share > 1:
            assert [part["read"] for part in parts] == [sum(sizes) // share] * count


def test_errors_and_the_middle_of_an_epoch():
    outs = together(_ERRORS, 2)
    for me, (batch, rest, devices, source, elsewhere) in enumerate(outs):
        assert batch.startswith("a batch of 6 examples cannot be split evenly over the 4 parts of device=P('data'")
        assert rest.startswith("the last batch of 2 examples cannot be split evenly over the 4 parts")
        assert devices.startswith("devices has some of other processes")
        assert source.startswith("this source gives whole batches, while device= spreads them over several processes")
        assert elsewhere == "nothing" if me == 0 else elsewhere.endswith("has no device of process 1")
