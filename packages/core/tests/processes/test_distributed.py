"""Two processes with two devices each: one program over all four."""

import socket

import pytest

from core_processes import BLOCK_JAX, run, start

PROGRAM = """
import sys
import numpy as np
import phlox, phlox.numpy as jnp
from phlox import P, lax

me = {me}
phlox.config.update("num_cpu_devices", 2)
assert not phlox.distributed.is_initialized()
phlox.distributed.initialize("127.0.0.1:{port}", num_processes=2, process_id=me, initialization_timeout=60)
assert phlox.distributed.is_initialized()
assert (phlox.process_index(), phlox.process_count(), phlox.process_indices()) == (me, 2, [0, 1])
assert (phlox.device_count(), phlox.local_device_count()) == (4, 2)
assert jnp.arange(3).sum() == 3 and jnp.ones(2).devices() == {{phlox.local_devices()[0]}}
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
    phlox.distributed.initialize("127.0.0.1:{port}", num_processes=2, process_id=me)
except RuntimeError as error:
    assert "already" in str(error)
else:
    raise AssertionError("initialized twice")
phlox.distributed.shutdown()
assert not phlox.distributed.is_initialized()
print("done", me)
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_two_processes():
    port = free_port()
    changes = {"XLA_FLAGS": None, "JAX_COORDINATOR_ADDRESS": None}
    both = [start(BLOCK_JAX + PROGRAM.format(me=me, port=port), **changes) for me in (0, 1)]
    for me, process in enumerate(both):
        try:
            out, err = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                for one in both:
                    one.kill()
        assert process.returncode == 0, err[-3000:]
        assert out.split()[-2:] == ["done", str(me)]  # Gloo reports its connections before


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
