"""Two processes with two devices each: one program over all four."""

import pytest

from core_processes import BLOCK_JAX, run, together

PROGRAM = """
assert phlox.distributed.is_initialized()
assert (phlox.process_index(), phlox.process_count(), phlox.process_indices()) == (me, 2, [0, 1])
assert (phlox.device_count(), phlox.local_device_count()) == (4, 2)
assert jnp.arange(3).sum() == 3 and jnp.ones(2).devices() == {phlox.local_devices()[0]}
mesh = phlox.make_mesh((4,), ("i",))
assert mesh.is_multi_process and len(mesh.local_devices) == 2
where = phlox.NamedSharding(mesh, P("i"))
x = phlox.make_array_from_process_local_data(where, np.arange(4.0, dtype=np.float32) + 10 * me)
assert x.shape == (8,) and not x.is_fully_addressable
total = phlox.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())(x)
assert total.addressable_data(0).tolist() == [0 + 2 + 10 + 12, 1 + 3 + 11 + 13], total.addressable_data(0)
mean = phlox.jit(lambda x: x.mean())(x)
assert float(mean.addressable_data(0)) == 6.5
y = phlox.make_array_from_callback((8, 2), where, lambda index: np.arange(16).reshape(8, 2)[index])
assert [s.data.tolist() for s in y.addressable_shards] == [[[8 * me, 8 * me + 1], [8 * me + 2, 8 * me + 3]],
    [[8 * me + 4, 8 * me + 5], [8 * me + 6, 8 * me + 7]]]
whole = phlox.make_array_from_process_local_data(where, np.arange(8), (8,))
assert [s.data.tolist() for s in whole.addressable_shards] == [[4 * me, 4 * me + 1], [4 * me + 2, 4 * me + 3]]
try:
    phlox.distributed.initialize("127.0.0.1:1", num_processes=2, process_id=me)
except RuntimeError as error:
    assert "already" in str(error)
else:
    raise AssertionError("initialized twice")
phlox.distributed.shutdown()
assert not phlox.distributed.is_initialized()
print("done", me)
"""


def test_two_processes():
    outs = together(BLOCK_JAX + PROGRAM)
    assert outs == ["done 0", "done 1"]


#: Every way to read an array of which other processes hold parts.
READING = """
import copy, pickle
from phlox.experimental import multihost_utils

mesh = phlox.sharding.Mesh(np.array(phlox.devices()).reshape(count, 2), ("process", "device"))
where = phlox.NamedSharding(mesh, P("process", "device"))
whole = np.arange(4.0 * count, dtype=np.float32).reshape(2 * count, 2)
x = phlox.make_array_from_callback(whole.shape, where, lambda index: whole[index])
flat = phlox.make_array_from_callback((2 * count,), phlox.NamedSharding(mesh, P(("process", "device"))),
    lambda index: whole[:, 0][index])
key = phlox.random.wrap_key_data(phlox.make_array_from_callback((2 * count, 2), phlox.NamedSharding(mesh, P("process")),
    lambda index: whole.astype(np.uint32)[index]))
remote = phlox.device_put(np.float32(1), phlox.devices()[-1 if me == 0 else 0])
local = phlox.local_devices()[0]
elsewhere = phlox.NamedSharding(phlox.sharding.Mesh(np.array(phlox.local_devices()), ("i",)), P())

for array, name in ((x, "float32[4,2]"), (flat, "float32"), (key, "key"), (remote, "float32")):
    for text in (repr(array), str(array), f"{array}"):
        assert text.startswith("Array(shape=") and "sharding=" in text, text
    readings = dict(
        asarray=lambda: np.asarray(array), array=lambda: np.array(array, copy=True), get=lambda: phlox.device_get(array),
        tolist=lambda: array.tolist(), item=lambda: array.item(0), tobytes=lambda: array.tobytes(),
        dumps=lambda: pickle.dumps(array), move=lambda: phlox.device_put(array, local),
        spread=lambda: phlox.device_put(array, elsewhere), iterate=lambda: list(array), dlpack=lambda: array.__dlpack__(),
        add=lambda: np.add(array, 1), pointer=lambda: array.unsafe_buffer_pointer(), float=lambda: float(array),
        int=lambda: int(array), bool=lambda: bool(array), complex=lambda: complex(array), range=lambda: range(array),
        round=lambda: round(float(array), 1), format=lambda: format(float(array), ".2f"),
        save=lambda: np.save("/dev/null", array), buffer=lambda: np.frombuffer(memoryview(array)),
    )
    for how, read in readings.items():
        try:
            found = read()
        except RuntimeError as error:
            assert isinstance(error, phlox.errors.DeviceError)
            if how != "pointer":
                assert "process_allgather" in str(error) and "addressable_shards" in str(error), (how, str(error))
        except (TypeError, ValueError, BufferError) as error:
            # What is refused for its type, wherever it lies.
            refused = {"float", "int", "bool", "complex", "range", "round", "format", "buffer", "dlpack"}
            assert how in refused | ({"iterate"} if array is remote else set()) or array is key, (how, error)
        else:
            assert how == "get" and array is key, f"{how} of {array} gave {found}"  # keys stay where they are

# What this process holds, it can read.
assert [s.index for s in x.addressable_shards] == [(slice(2 * me, 2 * me + 2), slice(i, i + 1)) for i in (0, 1)]
for shard in x.addressable_shards:
    assert np.array_equal(shard.data, whole[shard.index]) and shard.replica_id == 0
everywhere = phlox.device_put(whole, phlox.NamedSharding(mesh, P()))
assert np.array_equal(everywhere, whole) and "[6., 7.]" in repr(everywhere)
assert [s.replica_id for s in everywhere.addressable_shards] == [2 * me, 2 * me + 1]
mine = phlox.device_put(whole, phlox.NamedSharding(mesh, P("device")))
assert np.array_equal(mine, whole) and not mine.is_fully_addressable
assert [s.replica_id for s in mine.addressable_shards] == [me, me]
assert set(where.addressable_devices_indices_map(x.shape)) == set(phlox.local_devices())

# Copies and other layouts: programs that all processes run.
twin = copy.deepcopy(x)
x.delete()
x = twin
for spec in (P(), P(None, "process"), P("device", "process"), P(("device", "process"))):
    assert np.array_equal(phlox.device_put(phlox.device_put(x, phlox.NamedSharding(mesh, spec)),
        phlox.NamedSharding(mesh, P())), whole)
turned = phlox.sharding.Mesh(mesh.devices.T[::-1], ("a", "b"))
for spec in (P(), P("a"), P("b", "a")):
    again = phlox.device_put(x, phlox.NamedSharding(turned, spec))
    for shard in again.addressable_shards:
        assert np.array_equal(shard.data, whole[shard.index])
assert np.array_equal(phlox.random.key_data(phlox.device_put(key, phlox.NamedSharding(mesh, P()))), whole)

# What the error names.
assert np.array_equal(multihost_utils.process_allgather(x, tiled=True), whole)
try:
    multihost_utils.process_allgather(x)
except ValueError as error:
    assert "tiled=True" in str(error)
mine = {"a": np.full((2,), me), "b": jnp.float32(me)}
every = multihost_utils.process_allgather(mine)
assert every["a"].tolist() == [[i, i] for i in range(count)] and every["b"].tolist() == list(range(count))
every = multihost_utils.process_allgather(mine, tiled=True)
assert every["a"].tolist() == [0, 0, 1, 1] and every["b"].tolist() == [0, 1]
bits = np.array([np.nan, -0.0, 1.5 + me], np.float32)
for source in range(count):
    got = multihost_utils.broadcast_one_to_all({"x": bits, "y": np.zeros(0)}, me == source)
    assert got["x"].tobytes() == np.array([np.nan, -0.0, 1.5 + source], np.float32).tobytes() and got["y"].size == 0
multihost_utils.sync_global_devices("here")
multihost_utils.assert_equal(np.float32([np.nan, 1]))
try:
    multihost_utils.assert_equal({"a": 1, "b": me}, "no equals")
except AssertionError as error:
    assert "no equals" in str(error) and "['b']" in str(error)
else:
    raise AssertionError
spread = multihost_utils.host_local_array_to_global_array(whole + me, mesh, P("process"))
assert spread.shape == (4 * count, 2)
back = multihost_utils.global_array_to_host_local_array(spread, mesh, P("process", "device"))
assert np.array_equal(back, whole + me) and back.is_fully_addressable
print("done", me)
"""


def test_parts_in_other_processes():
    assert together(BLOCK_JAX + READING) == ["done 0", "done 1"]


WRONG = [
    ("num_processes=2, process_id=0", "ValueError"),
    ("'localhost:1', process_id=0", "ValueError"),
    ("'localhost:1', num_processes=2", "ValueError"),
    ("'localhost:1', num_processes=2, process_id=2", "ValueError"),
    ("'localhost:1', num_processes='2', process_id=0", "TypeError"),
]


@pytest.mark.parametrize(("arguments", "kind"), WRONG)
def test_what_is_missing_or_wrong(arguments, kind):
    run(
        f"""
        import phlox
        try:
            phlox.distributed.initialize({arguments})
        except {kind}:
            pass
        else:
            raise AssertionError
        assert not phlox.distributed.is_initialized()
        """,
        JAX_COORDINATOR_ADDRESS=None,
    )


#: One of the processes is told to end: both agree on a step after it.
PREEMPTION = """
import os, signal, time
from phlox.experimental import multihost_utils

last = None
for step in range(200):
    if multihost_utils.reached_preemption_sync_point(step):
        last = step
        break
    if me == 1 and step == 5:
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
every = multihost_utils.process_allgather(np.int32(last))
assert every[0] == every[1] > 5, every
phlox.distributed.shutdown()
print("done", me)
"""


def test_the_step_before_the_end():
    assert together(BLOCK_JAX + PREEMPTION) == ["done 0", "done 1"]


LIVE = """
from phlox.experimental import multihost_utils

with multihost_utils.live_devices(phlox.devices()) as alive:
    assert alive == phlox.devices()
    mesh = phlox.sharding.Mesh(np.array(alive), ("i",))
    multihost_utils.sync_global_devices("inside")
try:
    with multihost_utils.live_devices(phlox.devices()):
        raise KeyError("both")
except KeyError:
    pass
with multihost_utils.live_devices(phlox.local_devices()) as alive:
    assert alive == phlox.local_devices()
for wrong in ([], [d for d in phlox.devices() if d.process_index != me]):
    try:
        with multihost_utils.live_devices(wrong):
            raise AssertionError
    except ValueError:
        pass
print("done", me)
"""


def test_live_devices():
    assert together(BLOCK_JAX + LIVE) == ["done 0", "done 1"]


#: What users of a single process get.
ALONE = """
import numpy as np
import phlox, phlox.numpy as jnp
from phlox import P
from phlox.experimental import multihost_utils as m

assert not m.reached_preemption_sync_point(3)
m.sync_global_devices("alone")
m.assert_equal({"a": jnp.ones(3)}, "never")
assert m.process_allgather({"a": np.ones(2)}, tiled=True)["a"].shape == (2,)
assert m.process_allgather({"a": np.ones(2)})["a"].shape == (1, 2)
assert m.process_allgather(1.0).shape == (1,) and m.broadcast_one_to_all(jnp.arange(3)).tolist() == [0, 1, 2]
mesh = phlox.sharding.Mesh(np.array(phlox.devices()), ("i",))
x = m.host_local_array_to_global_array({"a": np.arange(4)}, mesh, P("i"))
assert m.global_array_to_host_local_array(x, mesh, P())["a"].tolist() == [0, 1, 2, 3]
try:
    with m.live_devices(phlox.devices()):
        raise AssertionError
except RuntimeError as error:
    assert "initialize" in str(error)
print("done")
"""


def test_one_process():
    assert run(BLOCK_JAX + ALONE, XLA_FLAGS="--xla_force_host_platform_device_count=2").stdout == "done\n"
