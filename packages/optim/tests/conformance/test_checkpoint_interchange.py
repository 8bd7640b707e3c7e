"""Checkpoints go both ways between phlox and programs on jax that use orbax directly."""

import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest

import judge
import phlox
import phlox.numpy as jnp
import phlox_optim
from phlox.errors import DtypeError
from phlox_optim.checkpoint import CheckpointManager
from phlox_optim.errors import CheckpointError

jax = judge.jax


def trained(o, library):
    """Parameters, state of an optimizer, step and key after a step of training, made with either library."""
    np_ = library.numpy
    params = {"w": np_.arange(6.0).reshape(2, 3), "layers": [np_.ones(3, np_.bfloat16), None, (np_.float32(2.0),)]}
    tx = o.chain(o.clip_by_global_norm(1.0), o.adam(1e-3))
    _, state = tx.update(library.tree.map(np_.cos, params), tx.init(params))
    key = library.random.key(3)
    return {"params": params, "state": state, "step": 7, "key": key, "raw": library.random.PRNGKey(4)}


def with_words(tree, library):
    return {**tree, "key": library.random.key_data(tree["key"])}


def as_phlox(tree):
    """jax's results as judge compares them: keys as words."""
    return with_words(tree, phlox)


def test_jax_restores_what_phlox_saved(tmp_path):
    with CheckpointManager(tmp_path) as manager:
        manager.save(5, trained(phlox_optim, phlox))
    expected = with_words(trained(optax, jax), jax)
    with ocp.CheckpointManager(tmp_path) as manager:
        target = jax.tree.map(lambda x: ocp.utils.to_shape_dtype_struct(x) if hasattr(x, "shape") else x, expected)
        restored = manager.restore(5, args=ocp.args.StandardRestore(target))
        assert jax.tree.structure(restored) == jax.tree.structure(expected)
        assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(restored["params"]))
        judge.compare(with_words(trained(phlox_optim, phlox), phlox), restored, weak=False, tolerance=1e-6)
        key = jax.random.wrap_key_data(restored["key"])
        np.testing.assert_array_equal(jax.random.normal(key, (3,)), jax.random.normal(jax.random.key(3), (3,)))
        plain = manager.restore(5, args=ocp.args.StandardRestore())
        assert type(plain["params"]["w"]) is np.ndarray, "without a target, NumPy arrays"
        np.testing.assert_array_equal(plain["params"]["w"], np.arange(6.0).reshape(2, 3))


def save_with_jax(folder, tree, **options):
    with ocp.CheckpointManager(folder, **options) as manager:
        manager.save(5, args=ocp.args.StandardSave(tree))


def test_phlox_restores_what_jax_saved(tmp_path):
    expected = trained(optax, jax)
    save_with_jax(tmp_path, expected)
    like = trained(phlox_optim, phlox)
    like["params"] = phlox.tree.map(jnp.zeros_like, like["params"])
    with CheckpointManager(tmp_path) as manager:
        restored = manager.restore(like=like)
    assert phlox.tree.structure(restored) == phlox.tree.structure(like)
    assert phlox.dtypes.issubdtype(restored["key"].dtype, phlox.dtypes.prng_key)
    judge.compare(as_phlox(restored), with_words(expected, jax), weak=False, exact=True)


def test_arrays_that_jax_split_over_devices(tmp_path):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("i",))
    split = jax.device_put(jax.numpy.arange(8.0), jax.NamedSharding(mesh, jax.P("i")))
    save_with_jax(tmp_path, {"x": split})
    with CheckpointManager(tmp_path) as manager:
        np.testing.assert_array_equal(manager.restore(like={"x": jnp.zeros(8)})["x"], np.arange(8.0))
        with pytest.raises(DtypeError, match=r"\['x'\]: expected i32\[8\], got f32\[8\]"):
            manager.restore(like={"x": jnp.arange(8)})


def test_words_of_keys_serve_as_keys(tmp_path):
    save_with_jax(tmp_path, {"key": jax.random.PRNGKey(3)})
    with CheckpointManager(tmp_path) as manager:
        key = manager.restore(like={"key": phlox.random.key(0)})["key"]
    np.testing.assert_array_equal(phlox.random.key_data(key), [0, 3])


def test_checkpoints_of_several_items_are_refused(tmp_path):
    with ocp.CheckpointManager(tmp_path) as manager:
        items = ocp.args.Composite(state=ocp.args.StandardSave({"x": np.ones(2)}), meta=ocp.args.JsonSave({"a": 1}))
        manager.save(5, args=items)
    with CheckpointManager(tmp_path) as manager, pytest.raises(CheckpointError, match="something else than one tree"):
        manager.restore(like={"x": np.ones(2)})


def test_phlox_goes_on_where_jax_stopped(tmp_path):
    save_with_jax(tmp_path, {"x": np.ones(2)})
    with CheckpointManager(tmp_path, max_to_keep=1) as manager:
        manager.save(6, {"x": jnp.zeros(2)})
    with ocp.CheckpointManager(tmp_path) as manager:
        assert manager.all_steps() == [6]
