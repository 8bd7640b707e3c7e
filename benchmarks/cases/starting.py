"""From nothing: how long a fresh process takes, and how much memory."""

from __future__ import annotations

from ..case import KEPT_ON_DISK, started

_PRINT = "print(time.perf_counter() - t)"

started(
    "start/import",
    """
import time; t = time.perf_counter()
import LIBRARY
"""
    + _PRINT,
    libraries=("jax", "phlox", "torch"),
    budget=0.4,
)

started(
    "start/first jitted result",
    """
import time; t = time.perf_counter()
import LIBRARY as m
import LIBRARY.numpy as np
m.jit(lambda x: np.sin(x) + 1)(1.0).block_until_ready()
"""
    + _PRINT,
    budget=0.4,
)

_FLOOR = """
import time; t = time.perf_counter()
import numpy
from jaxlib import _hlo, _jax
"""
# What both libraries stand on, and phlox cannot go below.
started("start/floor: import of numpy and jaxlib", _FLOOR + _PRINT, libraries=("phlox",))
started(
    "start/floor: first result of jaxlib alone",
    _FLOOR
    + """
client = _jax.get_tfrt_cpu_client(asynchronous=True)
options = _jax.CompileOptions()
options.num_replicas = options.num_partitions = 1
program = client.compile_and_load('''
module @f {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    %y = stablehlo.sine %x : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %z = stablehlo.add %y, %one : tensor<f32>
    return %z : tensor<f32>
  }
}''', _jax.DeviceList(tuple(client.local_devices()[:1])), options)
"""
    + _PRINT,
    libraries=("phlox",),
)

_STEP = """
import time; t = time.perf_counter()
import LIBRARY as m
import LIBRARY.numpy, LIBRARY.nn
from benchmarks.models import mlp_step
step, args = mlp_step(m)
m.block_until_ready(m.jit(step)(*args))
"""

started("start/first train step, warm disk cache", _STEP + _PRINT, budget=0.3, environment=KEPT_ON_DISK)

# The same step without the libraries: its arrays are put on the device, and the program of phlox is loaded and run.
started(
    "start/floor: first train step of jaxlib alone",
    _FLOOR
    + """
import os, pathlib, types
from benchmarks.models import mlp_step
client = _jax.get_tfrt_cpu_client(asynchronous=True)
device = client.local_devices()[:1]
place = _jax.GSPMDSharding(tuple(device), _hlo.HloSharding.replicate())
def put(x):
    kind = types.SimpleNamespace(shape=x.shape, dtype=x.dtype, weak_type=False)
    return _jax.batched_device_put(kind, place, [x], device, enable_x64=False)
_, (parameters, x, y) = mlp_step(types.SimpleNamespace(numpy=types.SimpleNamespace(
    asarray=put, zeros=lambda n: put(numpy.zeros(n, numpy.float32)))))
kept = pathlib.Path(os.environ["PHLOX_COMPILATION_CACHE_DIR"], "step")
if not kept.exists():
    import phlox
    step, args = mlp_step(phlox)
    compiled = phlox.jit(step).lower(*args).compile()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(client.serialize_executable(compiled.runtime_executable()))
options = _jax.CompileOptions()
options.num_replicas = options.num_partitions = 1
program = client.deserialize_executable(kept.read_bytes(), _jax.DeviceList(tuple(device)), options)
arguments = [*(a for layer in parameters for a in layer), x, y]
program.execute_sharded(arguments, with_tokens=True).consume_token().block_until_ready()
"""
    + _PRINT,
    libraries=("phlox",),
    environment=KEPT_ON_DISK,
)

_PEAK = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
started("memory/after import", f"import LIBRARY\n{_PEAK}", libraries=("jax", "phlox", "torch"), unit="B")
started("memory/after an MLP step", f"{_STEP}\n{_PEAK}", unit="B")
