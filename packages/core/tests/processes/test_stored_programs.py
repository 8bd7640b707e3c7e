"""Compiled programs as bytes: written by one process, loaded by another, on the same devices and on others."""

import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from core_processes import run
from phlox import errors
from phlox.experimental.serialize_executable import deserialize_and_load, serialize

WRITE = """
import os, pickle
import numpy as np
import phlox, phlox.numpy as jnp
from phlox.experimental.serialize_executable import serialize

split = phlox.NamedSharding(phlox.make_mesh((4,), ("x",)), phlox.P("x"))
offset = jnp.arange(3.0)
functions = {
    "tree": phlox.jit(lambda d, *, k: {"y": jnp.sin(d["a"]) @ d["b"], "n": d["a"].sum() * k}).lower(
        {"a": np.ones((2, 4), np.float32), "b": jnp.ones((4, 3))}, k=2.0
    ),
    "split": phlox.jit(lambda x: x * 2, in_shardings=split).lower(np.ones(8, np.float32)),
    "donated": phlox.jit(lambda x, unused: x + 1, donate_argnums=0).lower(jnp.ones(3), 2.0),
    "closure": phlox.jit(lambda x: x * offset).lower(1.0),
    "keys": phlox.jit(lambda key: phlox.random.normal(key, (3,))).lower(phlox.random.key(0)),
}
with open(os.environ["STORED"], "wb") as file:
    pickle.dump({name: serialize(lowered.compile()) for name, lowered in functions.items()}, file)
"""

READ = """
import os, pickle
import numpy as np
import phlox, phlox.numpy as jnp
from phlox.experimental.serialize_executable import deserialize_and_load, serialize

with open(os.environ["STORED"], "rb") as file:
    stored = pickle.load(file)
f = {name: deserialize_and_load(*parts) for name, parts in stored.items()}
tree = f["tree"]({"a": jnp.ones((2, 4)), "b": jnp.ones((4, 3))}, k=3.0)
np.testing.assert_allclose(tree["y"], np.full((2, 3), 4 * np.sin(1)), rtol=1e-6)
assert tree["n"] == 24
y = f["split"](np.arange(8, dtype=np.float32))
np.testing.assert_array_equal(y, 2 * np.arange(8))
assert y.sharding.spec[0] == "x" and len(y.sharding.device_set) == 4
x = jnp.ones(3)
assert f["donated"](x, 1.0).tolist() == [2, 2, 2] and x.is_deleted()
assert f["donated"].donate_argnums == (0,)
assert f["closure"](2.0).tolist() == [0, 2, 4]
np.testing.assert_array_equal(f["keys"](phlox.random.key(5)), phlox.random.normal(phlox.random.key(5), (3,)))
third = deserialize_and_load(*stored["donated"], execution_devices=phlox.devices()[2:3])
assert third(phlox.device_put(np.ones(3, np.float32), phlox.devices()[2]), 1.0).devices() == {phlox.devices()[2]}
again = deserialize_and_load(*serialize(f["closure"]))
assert again(2.0).tolist() == [0, 2, 4]
print("compiled", f["tree"].as_text()[:9], f["tree"].cost_analysis()["flops"] > 0)
"""

FOUR = "--xla_force_host_platform_device_count=4"


def test_programs_of_another_process(tmp_path):
    """The second writer reads its programs from the cache on disk, and must write the same bytes."""
    cache = {"PHLOX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"), "PHLOX_ENABLE_COMPILATION_CACHE": None}
    files = [tmp_path / "first", tmp_path / "second"]
    for file in files:
        run(WRITE, STORED=str(file), XLA_FLAGS=FOUR, **cache)
        out = run(READ, STORED=str(file), XLA_FLAGS=FOUR, PHLOX_ENABLE_COMPILATION_CACHE="0").stdout
        assert out.split() == ["compiled", "HloModule", "True"]
    first, second = (pickle.loads(file.read_bytes()) for file in files)
    assert first["tree"][0] == second["tree"][0]


def test_what_is_refused(monkeypatch):
    prints = phlox.jit(lambda x: phlox.debug.print("{x}", x=x) or x).lower(1.0).compile()
    with pytest.raises(errors.ExportError, match="calls Python functions"):
        serialize(prints)
    ref = phlox.new_ref(jnp.zeros(3))
    with pytest.raises(errors.ExportError, match="uses references"):
        serialize(phlox.jit(lambda x: x + ref[...]).lower(1.0).compile())
    with pytest.raises(errors.ArgumentError, match="no compiled program"):
        serialize(phlox.jit(jnp.sin))
    saved, in_tree, out_tree = serialize(phlox.jit(jnp.sin).lower(1.0).compile())
    for place in range(0, len(saved), 97):  # as machine code, some of these would end the process
        damaged = bytearray(saved)
        damaged[place] ^= 1
        for content in (bytes(damaged), saved[:place]):
            with pytest.raises(errors.ExportError, match="no bytes of serialize"):
                deserialize_and_load(content, in_tree, out_tree)
    with pytest.raises(errors.ExportError, match="more than 0 devices"):
        deserialize_and_load(saved, in_tree, out_tree, execution_devices=[])
    monkeypatch.setattr("phlox._api.jit.stored.JAXLIB_VERSION", "9")
    with pytest.raises(errors.ExportError, match="compiled by jaxlib"):
        deserialize_and_load(saved, in_tree, out_tree)


def test_loaded_programs_check_their_arguments():
    compiled = deserialize_and_load(*serialize(phlox.jit(lambda d: d["a"] + 1).lower({"a": np.ones(2)}).compile()))
    assert str(compiled.args_info) == "(({'a': ArgInfo(_aval=ShapedArray(float32[2]), donated=False)},), {})"
    with pytest.raises(errors.ShapeError, match=r"d\['a'\]|d\[\"a\"\]"):
        compiled({"a": np.ones(3)})
    with pytest.raises(errors.UnexpectedTracerError, match="Cannot apply JAX transformations"):
        phlox.jit(compiled)({"a": np.ones(2)})
