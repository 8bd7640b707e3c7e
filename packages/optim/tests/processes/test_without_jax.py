"""Optimizers need no jax: with its import blocked, and optax's own too, everything but checkpoints works."""

from optim_processes import run

TRAIN = """
import sys
import phlox, phlox.numpy as jnp
import phlox_optim as optim

def loaded(*names):
    return sorted(name for name in sys.modules if name.partition(".")[0] in names)

assert not any(name.startswith("phlox.adopted.optax") for name in sys.modules), "optax waits until it is used"
tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(optim.cosine_decay_schedule(1e-2, 100)))
params = {"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}
state = tx.init(params)

@phlox.jit
def step(params, state):
    grads = phlox.grad(lambda p: ((jnp.ones((4, 3)) @ p["w"] + p["b"]) ** 2).mean())(params)
    updates, state = tx.update(grads, state, params)
    return optim.apply_updates(params, updates), state

for _ in range(5):
    params, state = step(params, state)
print(float(params["w"].mean()))
assert not loaded("jax", "optax", "orbax"), loaded("jax", "optax", "orbax")
"""


def test_with_jax_blocked():
    assert 0.9 < float(run(TRAIN, block=["jax"])) < 1.0


def test_jax_is_not_imported_where_it_could_be():
    assert 0.9 < float(run(TRAIN)) < 1.0


def test_in_any_order_with_real_jax_and_optax():
    for program in ("import jax, optax\n" + TRAIN.rpartition("assert")[0], TRAIN + "\nimport jax, optax"):
        run(program + "\nassert type(optax.adam(1.0)) is not type(optim.adam(1.0))\nprint(optax.adam(1.0).init(1.0))")


def test_checkpoints_without_their_extra():
    program = """
    import phlox_optim
    try:
        phlox_optim.checkpoint.CheckpointManager("nowhere")
    except phlox_optim.errors.MissingExtraError as error:
        assert isinstance(error, ImportError) and error.command == 'pip install "phlox-optim[checkpoint]"'
        print(error)
    """
    text = run(program, block=["orbax", "jax"])
    assert text.startswith("checkpoints need orbax-checkpoint, which is not installed")
    assert 'instead: pip install "phlox-optim[checkpoint]"' in text


def test_without_optax():
    # Not blocked but out of sight: the copy looks where optax is, and must find nothing.
    program = """
    import importlib.util as util
    find = util.find_spec
    util.find_spec = lambda name, *more: None if name == "optax" else find(name, *more)
    import phlox_optim
    try:
        phlox_optim.adam
    except phlox_optim.errors.MissingExtraError as error:
        print(error)
    """
    assert "instead: pip install optax" in run(program)


def test_states_are_unpickled_in_a_fresh_process(tmp_path):
    file = tmp_path / "state"
    run(
        "import pickle, sys, phlox.numpy as jnp, phlox_optim as o\n"
        "state = o.chain(o.clip(1.0), o.adam(o.constant_schedule(1.0))).init({'w': jnp.ones(3)})\n"
        "open(sys.argv[1], 'wb').write(pickle.dumps((state, o.adam)))",
        file,
    )
    out = run(
        "import pickle, sys\n"
        "state, adam = pickle.load(open(sys.argv[1], 'rb'))\n"
        "import phlox_optim\n"
        "print(type(state[1][0]).__name__, state[1][0].mu['w'].shape, adam is phlox_optim.adam)",
        file,
        block=["jax"],
    )
    assert out == "ScaleByAdamState (3,) True"


def test_orbax_leaves_the_accelerator_to_phlox(tmp_path):
    """Orbax starts jax. Unless the program uses jax itself, that jax gets the CPU alone."""
    program = """
    import sys
    if sys.argv[2] == "jax first":
        import jax
    import phlox.numpy as jnp
    from phlox_optim.checkpoint import CheckpointManager
    with CheckpointManager(sys.argv[1]) as manager:
        manager.save(0, {"x": jnp.ones(3)})
    print(sys.modules["jax"].config.jax_platforms)
    """
    assert run(program, tmp_path / "a", "jax last", JAX_PLATFORMS=None) == "cpu"
    assert run(program, tmp_path / "b", "jax first", JAX_PLATFORMS=None) == "None"
