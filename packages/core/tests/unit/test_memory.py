"""What memory is used for: live arrays by size and origin, sizes of programs, errors when there is none."""

import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P
from phlox._api.devices import transfers
from phlox._base.native import native
from phlox._ops.spmd import reshard
from phlox._xla import memory
from phlox.debug import live_memory

#: so much that no machine has it
HUGE = 1 << 44


def _line_of(function):
    code = function.__code__
    return f"{code.co_filename}:{code.co_firstlineno + 1} ({code.co_name})"


def _made_here(count):
    return [jnp.ones((173, 5), jnp.float32) + i for i in range(count)]


def test_live_arrays_by_size_and_origin():
    kept = _made_here(3)
    (group,) = [group for group in live_memory() if group.type == "f32[173,5]" and group.count == 3]
    assert group.bytes == 3 * 173 * 5 * 4 and group.origin.startswith(_line_of(_made_here).split(" ")[0])
    assert "3 × f32[173,5] on " in str(group) and "KiB" in str(group)
    del kept
    assert not [group for group in live_memory() if group.type == "f32[173,5]" and group.count == 3]
    sizes = [group.bytes for group in live_memory()]
    assert sizes == sorted(sizes, reverse=True)


def test_a_sharded_array_counts_what_its_devices_hold():
    devices = phlox.devices()
    mesh = phlox.make_mesh((len(devices),), ("i",))
    x = phlox.device_put(jnp.ones((len(devices) * 91, 3)), phlox.NamedSharding(mesh, P("i")))
    y = phlox.device_put(jnp.ones((7, 91)), phlox.NamedSharding(mesh, P()))
    found = {group.type: group for group in live_memory() if len(group.devices) == len(devices)}
    assert found[x.aval.short].bytes == x.nbytes
    assert found["f32[7,91]"].bytes == y.nbytes * len(devices)


def test_the_memory_of_a_program():
    stats = phlox.jit(lambda x: jnp.sort(x @ x.T, axis=0)).lower(jnp.ones((100, 100))).compile().memory_analysis()
    assert stats.argument_size_in_bytes == stats.output_size_in_bytes == 40_000
    assert 80_000 <= stats.peak_memory_in_bytes <= 40_000 * 2 + stats.temp_size_in_bytes
    stats = phlox.devices()[0].memory_stats()
    assert stats is None or stats["bytes_in_use"] >= 0


def test_an_array_that_is_too_large():
    big = jnp.ones((1000, 1001))
    with pytest.raises(phlox.errors.OutOfMemoryError, match="there is no memory for 64 TiB") as caught:
        jnp.zeros((HUGE,)).block_until_ready()
    error = caught.value
    assert isinstance(error, (MemoryError)) and isinstance(error, RuntimeError) and error.requested == 4 * HUGE
    assert error.largest[0].bytes >= big.nbytes and "f32[1000,1001]" in str(error)
    assert "test_memory.py" in str(error), "the origin of the largest array"


@pytest.mark.parametrize("read", [lambda y: y.block_until_ready(), float], ids=["wait", "read"])
def test_a_program_that_needs_too_much(read):
    def greedy(x):
        return jnp.sort(jnp.broadcast_to(x, (HUGE // 4, 4)), axis=0).sum()

    run = phlox.jit(greedy)
    with pytest.raises(phlox.errors.OutOfMemoryError, match="The program jit_greedy needs on each device: ") as caught:
        read(run(jnp.ones(4)))
    program = caught.value.program
    assert program["name"] == "jit_greedy" and program["arguments"] == 16
    assert max(program["temporary"], program["at most at once"]) >= 4 * HUGE


@pytest.mark.parametrize("shape", [(HUGE, HUGE), (1 << 61,), (HUGE, HUGE, 0)])
def test_types_whose_bytes_overflow(shape):
    """XLA of jaxlib 0.10.2 ends the process there."""
    with pytest.raises(phlox.errors.ShapeError, match=r"an array f32\[.*\] has 2\*\*63 bytes or more"):
        phlox.jit(lambda x: jnp.broadcast_to(x, shape).sum())(1.0)
    assert phlox.eval_shape(lambda x: jnp.broadcast_to(x, shape), 1.0).shape == shape


READS = {
    "numpy": np.asarray,
    "get": phlox.device_get,
    "copy": lambda y: y.copy(),
    "pickle": pickle.dumps,
    "pointer": lambda y: y.unsafe_buffer_pointer(),
    "later": lambda y: np.asarray(y[:3] + 1),
}


@pytest.mark.parametrize("read", READS)
def test_a_result_whose_memory_is_not_found_after_the_call(read):
    """It is allocated when its operand is there. jaxlib ends the process where it reads such a buffer."""
    slow = phlox.jit(lambda x: jnp.linalg.svd(jnp.full((300, 300), x))[1].sum())
    large = phlox.jit(lambda x: jnp.broadcast_to(x, (HUGE,)))
    with pytest.raises(phlox.errors.OutOfMemoryError, match="there is no memory for 64 TiB"):
        READS[read](large(slow(jnp.float32(1))))


def test_other_errors_stay():
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(phlox.errors.DeletedArrayError):
        x + 1


def test_the_message_of_a_gpu_says_what_was_asked_for():
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 475.08GiB with allocator GPU_0_bfc on device 0."
    with pytest.raises(phlox.errors.OutOfMemoryError, match=r"there is no memory for 475\.1 GiB") as caught:
        memory.explain(native.JaxRuntimeError(text))
    assert caught.value.requested == int(475.08 * 2**30)


@pytest.mark.parametrize("where", [phlox.memory.Space.Device, phlox.devices()[0]])
def test_a_traced_array_is_moved_to_the_memory_of_a_gpu(where, monkeypatch):
    """Its type does not say whether `in_shardings` put it into host memory."""
    monkeypatch.setattr(transfers, "default_backend", lambda: "gpu")
    monkeypatch.setattr(reshard, "platform_of", lambda f: "cuda")
    text = phlox.jit(lambda x: phlox.device_put(x, where) + 1).lower(jnp.ones(3)).as_text()
    assert text.count('_xla_buffer_placement = "device"') == 1
