"""Partial results inside of `shard_map`: what `test_partial_results` tests of whole arrays, for the parts of devices."""

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from conformance.partial_results import JAX_HAS_THEM, A, B, in_judges, mesh, product, split, value
from phlox import P
from phlox.errors import UnsupportedError

U, R = {"unreduced": {"y"}}, {"reduced": {"x"}}

# The program of one device, the specs of its operands and of its result, and the types of its values.
MAPPED = {
    "itself": (lambda m, see, u: see(u), "u", ("x", U), ["float32[2,4]{V:x, U:y}"]),
    "linear": (lambda m, see, u: see(-u + u), "u", ("x", U), ["float32[2,4]{V:x, U:y}"]),
    "summed": (lambda m, see, u: see(m.lax.psum(u, "y")), "u", ("x", {}), ["float32[2,4]{V:x}"]),
    "summed and split": (
        lambda m, see, u: see(m.lax.psum_scatter(u, "y", scatter_dimension=1, tiled=True)),
        "u",
        ("x", "y", {}),
        ["float32[2,2]{V:(x,y)}"],
    ),
    "split, and still unreduced": (
        lambda m, see, v: see(m.lax.psum_scatter(v, "y", tiled=True)),
        "v",
        ("y", {"unreduced": {"x"}}),
        ["float32[2,4]{V:y, U:x}"],
    ),
    "declared": (lambda m, see, a, b: see(m.lax.pcast(a @ b, "y", to="unreduced")), "ab", ("x", U), None),
    "reduced": (lambda m, see, r: see(r), "r", (None, R), ["float32[4,4]{R:x}"]),
    "times reduced": (lambda m, see, c, r: see(c @ r), "cr", ("x", {}), ["float32[2,4]{V:x}"]),
    "declared reduced": (
        lambda m, see, w: see(m.lax.pcast(w, "x", to="reduced")),
        "w",
        (None, R),
        ["float32[4,4]{R:x}"],
    ),
    "no longer reduced": (
        lambda m, see, r: see(m.lax.pcast(r, "x", to="varying")),
        "r",
        ("x", {}),
        ["float32[4,4]{V:x}"],
    ),
    "gathered": (
        lambda m, see, c: see(m.lax.all_gather(c, "x", tiled=True, to="reduced")),
        "c",
        (None, R),
        ["float32[4,4]{R:x}"],
    ),
    "scanned": (
        lambda m, see, u: m.lax.scan(lambda c, _: (see(c + u), None), u, None, length=3)[0],
        "u",
        ("x", U),
        ["float32[2,4]{V:x, U:y}"],
    ),
}
DENSE = {
    "u": lambda: A @ B, "v": lambda: A @ B, "a": lambda: A, "b": lambda: B, "c": lambda: A, "r": lambda: B, "w": lambda: B
}  # fmt: skip
RESULTS = {
    "linear": np.zeros((4, 4)),
    "declared": A @ B,
    "times reduced": A @ B,
    "no longer reduced": np.concatenate([B, B]),
    "scanned": 4 * (A @ B),
}


def operand(m, name):
    """An operand of `shard_map` and its spec."""
    if name == "u":
        return product(m, *split(m)), m.P("x", None, unreduced={"y"})
    if name == "v":
        both = m.P(unreduced={"x", "y"})
        return m.reshard(m.numpy.asarray(DENSE[name]()), both), both
    specs = {"a": m.P("x", "y"), "b": m.P("y", None), "c": m.P("x", None), "r": m.P(None, None, **R), "w": m.P()}
    return m.reshard(m.numpy.asarray(DENSE[name]()), specs[name]), specs[name]


@pytest.mark.parametrize("name", MAPPED)
def test_shard_map(name):
    run, letters, (*partitions, sets), types = MAPPED[name]

    def of_devices(m):
        seen = []

        def see(x):
            seen.append(str(m.typeof(x)))
            return x

        args, specs = zip(*[operand(m, letter) for letter in letters], strict=True)
        mapped = m.shard_map(
            lambda *xs: run(m, see, *xs), in_specs=specs, out_specs=m.P(*(partitions + [None])[:2], **sets)
        )
        outs = mapped(*args), m.jit(mapped)(*args)
        assert types is None or set(seen) == set(types)
        return [str(m.typeof(out)) for out in outs], [value(m, out) for out in outs]

    results = in_judges(of_devices)
    expected = RESULTS.get(name, DENSE[letters[0]]())
    for names, values in results:
        assert names == results[0][0]
        for out in values:
            np.testing.assert_array_equal(out, expected)


MAPPED_LOSSES = {
    "reduced": (lambda m, r, c: c @ m.numpy.sin(r), "rc", "float32[4,4]{U:x}"),
    "declared reduced": (lambda m, w, c: c @ m.lax.pcast(m.numpy.sin(w), "x", to="reduced"), "wc", "float32[4,4]"),
    "declared unreduced": (
        lambda m, b, a: m.lax.psum(m.lax.pcast(a @ m.numpy.sin(b), "y", to="unreduced"), "y"),
        "ba",
        "float32[4@y,4]",
    ),
}


@pytest.mark.parametrize("name", MAPPED_LOSSES)
def test_gradients_of_shard_map(name):
    run, letters, type_text = MAPPED_LOSSES[name]

    def gradient(m):
        args, specs = zip(*[operand(m, letter) for letter in letters], strict=True)
        mapped = m.shard_map(lambda *xs: run(m, *xs), in_specs=specs, out_specs=m.P("x", None))
        ct = m.jit(m.grad(lambda *xs: (mapped(*xs) ** 2).sum()))(*args)
        assert str(m.typeof(ct)) == type_text
        return value(m, ct)

    expected = phlox.grad(lambda w: ((A @ jnp.sin(w)) ** 2).sum())(jnp.asarray(B))
    for ct in in_judges(gradient):
        np.testing.assert_allclose(ct, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("run", "letter", "spec", "out_spec"),
    [
        (lambda m, u: m.numpy.sin(u), "u", None, ("x", U)),
        (lambda m, u: u, "u", ("x", {}), ("x", {})),
        (lambda m, u: u, "u", None, ("x", {})),
        (lambda m, a: a, "a", ("x", U), ("x", U)),
        (lambda m, u: m.lax.all_gather(u, "y"), "u", None, ("x", "y", {})),
        (lambda m, r: m.lax.psum(r, "x"), "r", None, (None, {})),
        (lambda m, r: m.lax.pcast(r, "x", to="unreduced"), "r", None, ("x", {})),
        (lambda m, w: m.lax.pcast(w, "x", to="unreduced"), "w", None, ("x", {})),
    ],
)
def test_refusals_of_shard_map(run, letter, spec, out_spec):
    for m in (phlox, jax) if JAX_HAS_THEM else (phlox,):
        with m.set_mesh(mesh(m)):
            x, its_spec = operand(m, letter)
            in_spec = its_spec if spec is None else m.P(*spec[:-1], **spec[-1])
            with pytest.raises(*[phlox.errors.PhloxError] if m is phlox else [Exception]):
                out_specs = m.P(*out_spec[:-1], **out_spec[-1])
                m.shard_map(lambda x, m=m: run(m, x), in_specs=in_spec, out_specs=out_specs)(x)


def test_partial_results_inside_of_shard_map_over_other_axes():
    # JAX's compiler ends the process where they are combined.
    with phlox.set_mesh(mesh(phlox)):
        u = product(phlox, *split(phlox))
        mapped = phlox.shard_map(lambda u: -u, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"})
        with pytest.raises(UnsupportedError, match="reshard"):
            mapped(u)
        np.testing.assert_array_equal(mapped(phlox.reshard(u, P("x"))), -(A @ B))


def test_the_derivative_of_shared_values_that_become_parts_of_a_sum():
    # JAX's is 1, although its sum is over both devices as well.
    with phlox.set_mesh(mesh(phlox)):
        parts = phlox.shard_map(lambda x: x, in_specs=P(), out_specs=P(**U), check_vma=False)
        total = phlox.jit(lambda x: phlox.reshard(parts(x), P()).sum())
        assert total(jnp.arange(4.0)) == 12
        np.testing.assert_array_equal(phlox.grad(total)(jnp.arange(4.0)), [2, 2, 2, 2])
