"""An exported function in a file, called and differentiated by another process that does not know its source."""

import numpy as np
import pytest

from core_processes import BLOCK_JAX, run

WRITE = """
import sys
import phlox, phlox.numpy as jnp
table = jnp.linspace(0.0, 1.0, 4)
f = phlox.jit(lambda p, x: {"y": jnp.tanh(x @ p["w"]) * table})
made = phlox.export.export(f)({"w": jnp.ones((3, 4))}, phlox.ShapeDtypeStruct((2, 3), "float32"))
open(sys.argv[1], "wb").write(made.serialize(vjp_order=1))
"""

READ = (
    BLOCK_JAX
    + """
import sys
import phlox, phlox.numpy as jnp
f = phlox.export.deserialize(open(sys.argv[1], "rb").read())
p, x = {"w": jnp.ones((3, 4))}, jnp.arange(6.0).reshape(2, 3) / 6
loss = lambda p: (f.call(p, x)["y"] ** 2).sum()
print(f.fun_name, float(loss(p)), *phlox.jit(phlox.grad(loss))(p)["w"].ravel().tolist())
"""
)


@pytest.mark.parametrize("cache", ["fresh", "off"])
def test_a_file_is_called_and_differentiated_elsewhere(tmp_path, cache):
    file, folder = tmp_path / "function.phlox", tmp_path / "cache"
    settings = (
        {"PHLOX_COMPILATION_CACHE_DIR": str(folder)} if cache == "fresh" else {"PHLOX_ENABLE_COMPILATION_CACHE": "0"}
    )
    program = lambda text: f"import sys; sys.argv = ['', {str(file)!r}]\n{text}"
    run(program(WRITE), **settings)
    for _ in range(2):  # the second time from the cache of compiled programs
        name, *numbers = run(program(READ), **settings).stdout.split()
        assert name == "<lambda>"
        x, table = np.arange(6.0).reshape(2, 3) / 6, np.linspace(0, 1, 4)
        inner = np.tanh(x @ np.ones((3, 4)))
        np.testing.assert_allclose(float(numbers[0]), ((inner * table) ** 2).sum(), rtol=1e-5)
        expected = x.T @ (2 * inner * table**2 * (1 - inner**2))
        np.testing.assert_allclose([float(n) for n in numbers[1:]], expected.ravel(), rtol=1e-4)
