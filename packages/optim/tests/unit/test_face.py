"""The public face: lazy names, what it says of names that are not there, and objects of plain optax among its own."""

import inspect
import pickle

import jax.numpy
import numpy as np
import optax
import pytest

import phlox
import phlox.numpy as jnp
import phlox_optim
from phlox.errors import ArgumentError


def test_the_listed_names_are_there():
    assert {"adam", "adamw", "lion", "sgd", "chain", "clip_by_global_norm", "apply_updates"} <= set(phlox_optim.__all__)
    for name in phlox_optim.__all__:
        assert getattr(phlox_optim, name) is getattr(phlox_optim, name)


def test_dir_lists_what_is_ours_and_all_of_optax():
    public = {name for name in dir(optax) if not name.startswith("_")}
    assert set(dir(phlox_optim)) == public | set(phlox_optim.__all__)
    assert len(public) > 200


def test_names_are_the_private_copys():
    assert phlox_optim.EmptyState is not optax.EmptyState
    assert phlox_optim.EmptyState.__module__ == "phlox.adopted.optax._src.base"
    mine, theirs = (inspect.signature(o.adam).parameters.values() for o in (phlox_optim, optax))
    assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in theirs]
    assert phlox_optim.adam.__doc__ == optax.adam.__doc__
    assert isinstance(phlox_optim.adam(1e-3), phlox_optim.GradientTransformation)


def test_names_that_are_not_listed_are_there_too():
    tx = phlox_optim.rmsprop(0.1)
    updates, _ = tx.update(jnp.ones(3), tx.init(jnp.ones(3)))
    assert updates.shape == (3,)
    np.testing.assert_allclose(phlox_optim.tree.norm({"a": jnp.array([3.0, 4.0])}), 5.0)


def test_unknown_names():
    with pytest.raises(AttributeError, match=r"no attribute 'adamm', and neither has optax \d.*mean: 'adam'"):
        phlox_optim.adamm
    with pytest.raises(ImportError):
        from phlox_optim import adamm  # noqa: F401
    assert not hasattr(phlox_optim, "__wrapped__")


def test_states_and_functions_can_be_pickled():
    state = phlox_optim.adam(1e-3).init({"w": jnp.arange(3.0)})
    again = pickle.loads(pickle.dumps(state))
    assert phlox.tree.structure(again) == phlox.tree.structure(state)
    np.testing.assert_array_equal(again[0].mu["w"], state[0].mu["w"])
    assert pickle.loads(pickle.dumps(phlox_optim.adam)) is phlox_optim.adam


def test_errors_point_at_the_users_line():
    tx = phlox_optim.adam(1e-3)
    state = tx.init({"w": jnp.ones(3)})
    with pytest.raises(phlox.errors.TreeError) as excinfo:
        tx.update({"v": jnp.ones(3)}, state)
    assert excinfo.value.where.file == __file__


# --- plain optax among phlox's --------------------------------------------------------------------------


def refused(call):
    with pytest.raises(ArgumentError, match="plain optax, which runs on jax") as excinfo:
        call()
    assert "import phlox_optim as optax" in str(excinfo.value)
    assert excinfo.value.where.file == __file__
    return str(excinfo.value)


def test_plain_transformations_are_refused():
    assert "chain got a GradientTransformation" in refused(lambda: phlox_optim.chain(optax.adam(1e-3)))
    refused(lambda: phlox_optim.chain(phlox_optim.clip(1.0), optax.clip(1.0)))
    refused(lambda: phlox_optim.masked(optax.adam(1e-3), {"w": True}))
    refused(lambda: phlox_optim.partition({"a": optax.adam(1e-3)}, "a"))
    refused(lambda: phlox_optim.named_chain(("clip", optax.clip(1.0))))


def test_plain_functions_are_refused():
    refused(lambda: phlox_optim.adam(optax.constant_schedule(1e-3)))
    refused(lambda: phlox_optim.adam(learning_rate=optax.constant_schedule(1e-3)))
    assert "inject_hyperparams got adam of" in refused(lambda: phlox_optim.inject_hyperparams(optax.adam))
    refused(lambda: phlox_optim.join_schedules([optax.constant_schedule(1.0)], []))


def test_plain_states_are_refused():
    state = optax.EmptyState()
    refused(lambda: phlox_optim.apply_updates(state, state))


def test_the_users_optax_stays_what_it_is():
    tx = optax.adam(1e-3)
    updates, _ = tx.update(jax.numpy.ones(3), tx.init(jax.numpy.ones(3)))
    assert isinstance(updates, jax.Array)
    assert isinstance(phlox_optim.adam(1e-3).init(jnp.ones(3))[0].mu, phlox.Array)
    assert optax.chain.__module__.startswith("optax")
