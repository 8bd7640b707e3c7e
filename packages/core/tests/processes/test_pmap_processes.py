"""pmap by two processes with two devices each: each passes and gets its own slices, as with jax."""

import subprocess
import sys

from core_processes import environment

PROGRAM = """
import os, sys
import numpy as np
if sys.argv[1] == "jax":
    import jax as m, jax.numpy as jnp
    m.config.update("jax_num_cpu_devices", 2)
    m.distributed.initialize(os.environ["PHLOX_LAUNCH_ADDRESS"], 2, int(os.environ["PHLOX_LAUNCH_NUMBER"]))
else:
    import phlox as m, phlox.numpy as jnp
    m.distributed.initialize()
me = m.process_index()
lines = []
show = lambda *arrays: lines.append([(np.asarray(x).tolist(), x.shape, x.is_fully_addressable) for x in arrays])
x = np.arange(2, dtype=np.float32) + 10 * me
collect = m.pmap(lambda x: (m.lax.psum(x, "i"), m.lax.axis_index("i"), m.lax.all_gather(x, "i")), axis_name="i")
show(*collect(x))
show(*collect(collect(x)[0]))
show(*m.pmap(
    lambda w, x, key: (w - m.lax.pmean(x, "i"), x * w + m.random.uniform(key)),
    axis_name="i", in_axes=(None, 1, 0), out_axes=(None, 1),
)(jnp.float32(1.0), x[None], m.random.split(m.random.key(me), 2)))
show(m.pmap(lambda x: x * 2, axis_size=4)(x))
show(m.pmap(lambda x, n: m.lax.psum(x * n, "i"), axis_name="i", static_broadcasted_argnums=1)(x, 3))
show(m.pmap(lambda x: m.lax.psum(x, "i"), axis_name="i", devices=m.devices()[::-1])(x))
try:
    m.pmap(lambda x: x)(np.ones(3))
    lines.append("taken")
except (ValueError, AssertionError):
    lines.append("refused")
with open(f"{sys.argv[2]}.{me}", "w") as file:
    print(*lines, sep="\\n", file=file)
"""


def test_pmap_over_two_processes_is_that_of_jax(tmp_path):
    for library in ("jax", "phlox"):
        words = ["-n", "2", "--devices", "2", "-c", PROGRAM, library, tmp_path / library]
        done = subprocess.run(
            [sys.executable, "-m", "phlox.launch", *map(str, words)],
            env=environment(XLA_FLAGS=None, JAX_COORDINATOR_ADDRESS=None),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    for me in range(2):
        phlox, jax = ((tmp_path / f"{library}.{me}").read_text().splitlines() for library in ("phlox", "jax"))
        assert phlox == jax
