"""What checkpoint keeps, as print_saved_residuals tells it, and what that means for memory."""

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox import ad_checkpoint, checkpoint, checkpoint_policies, grad, jit, lax

X = np.arange(3.0, dtype=np.float32)


def saved(capsys, f, *args):
    ad_checkpoint.print_saved_residuals(f, *args)
    return [line.split(" from /")[0] for line in capsys.readouterr().out.splitlines()]


def wave(x):
    return jnp.sin(jnp.sin(x)).sum()


def test_what_is_kept_is_printed(capsys):
    assert saved(capsys, wave, X) == ["f32[3] output of cos", "f32[3] output of cos"]
    assert saved(capsys, checkpoint(wave), X) == ["f32[3] from the argument x"]
    everything = checkpoint(wave, policy=checkpoint_policies.everything_saveable)
    assert saved(capsys, everything, X) == ["f32[3] output of cos", "f32[3] output of cos"]
    ad_checkpoint.print_saved_residuals(wave, X)
    assert f"{__file__}:" in capsys.readouterr().out


def test_names_are_kept(capsys):
    def f(x):
        return jnp.exp(ad_checkpoint.checkpoint_name(jnp.sin(x), "inner")).sum()

    only = checkpoint(f, policy=checkpoint_policies.save_only_these_names("inner"))
    assert saved(capsys, only, X) == ["f32[3] from the argument x", "f32[3] output of name"]


def test_a_deep_network_takes_less_memory():
    weights = np.stack([np.eye(64, dtype=np.float32)] * 40)

    def temporary(layer):
        f = lambda x: lax.scan(layer, x, weights)[0].sum()
        return jit(grad(f)).lower(jnp.zeros((256, 64))).compile().memory_analysis().temp_size_in_bytes

    def layer(x, w):
        for _ in range(4):
            x = jnp.tanh(x @ w)
        return x, None

    kept, again = temporary(layer), temporary(checkpoint(layer, prevent_cse=False))
    assert again < 0.5 * kept, (again, kept)


def test_the_function_is_traced_once():
    count = []

    def f(x):
        count.append(1)
        return jnp.sin(x)

    g = checkpoint(f)
    for _ in range(3):
        phlox.vjp(g, 1.0)
    assert len(count) == 1


def test_a_checkpointed_function_is_given_arrays():
    """Indices out of bounds are clamped, which NumPy would refuse."""
    index = np.array([0, 4])
    assert phlox.checkpoint(lambda x: x[x])(index).tolist() == [0, 4]
