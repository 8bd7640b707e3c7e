"""PRNG keys that are used twice: what is reported, and what is not."""

import gc
import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import config, errors, lax, random


def warned(program):
    """The messages of the `CheckWarning`s that a program gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
    return [str(w.message) for w in caught if w.category is errors.CheckWarning]


def _two(first, second):
    def program():
        key = random.key(0)
        first(key), second(key)

    return program


def _turns(step, *start, turns=3):
    """A program that calls a jitted step with a key, which never changes, and with the results of the last step."""

    def program():
        run, key, x = phlox.jit(step), random.key(0), jnp.ones(3)
        for _ in range(turns):
            x = run(key, x)

    return program


def _jitted(function, *shape):
    """A program that passes the keys of this shape to a jitted function."""
    return lambda: phlox.jit(function)(random.split(random.key(0), shape) if shape else random.key(0))


def _returned():
    def step(key, x):
        return key, x + random.normal(key)

    run, key, x = phlox.jit(step), random.key(0), jnp.ones(3)
    for _ in range(2):
        key, x = run(key, x)


def _closed_over():
    key = random.key(0)
    run = phlox.jit(lambda x: x + random.normal(key))
    run(1.0), run(2.0)


def _chain(i, carry):
    key, total = carry
    key, now = random.split(key)
    return key, total + random.normal(now)


LIBRARY = """
def dropout(x, key):
    return x * random.bernoulli(key, 0.5)

def path(key):
    return random.normal(key) + random.normal(key) + lax.fori_loop(0, 3, lambda i, x: x + random.normal(key), 0.0)
"""
#: the functions of a package that is installed
library = {"random": random, "lax": lax}
exec(compile(LIBRARY, "/env/lib/site-packages/library/layers.py", "exec"), library)
dropout, path = library["dropout"], library["path"]


REPORTED = {
    "layers of a library, eagerly": _two(lambda k: dropout(1.0, k), lambda k: dropout(2.0, k)),
    "two layers of a library": _jitted(lambda k: dropout(1.0, k) + dropout(2.0, k)),
    "a layer of a library, then a draw": _jitted(lambda k: dropout(1.0, k) + random.normal(k)),
    "two paths of a library": _jitted(lambda k: phlox.grad(lambda x: x * (path(k) + path(k)))(1.0)),
    "draws": _two(random.normal, random.normal),
    "other samplers": _two(random.uniform, lambda k: random.choice(k, 5)),
    "draw and split": _two(random.normal, random.split),
    "splits": _two(random.split, random.split),
    "parts": _two(lambda k: [random.normal(ks[1]) + random.normal(ks[1]) for ks in [random.split(k)]], lambda k: 0),
    "part of a part": lambda: [
        (random.normal(ks[1:][0]), random.normal(ks[1])) for ks in [random.split(random.key(0), 3)]
    ],
    "part, then all": lambda: [
        (random.normal(ks[0]), phlox.vmap(random.normal)(ks)) for ks in [random.split(random.key(0))]
    ],
    "folded": _two(lambda k: random.normal(random.fold_in(k, 1)), lambda k: random.normal(random.fold_in(k, 1))),
    "in a program": _jitted(lambda k: random.normal(k) + random.normal(k)),
    "folded in a program": _jitted(lambda k: random.normal(random.fold_in(k, 1)) + random.bits(random.fold_in(k, 1))),
    "computed part": _jitted(lambda ks: lax.map(lambda i: random.normal(ks[i]) + random.uniform(ks[i]), jnp.arange(3)), 3),
    "all, then computed part": _jitted(
        lambda ks: (phlox.vmap(random.normal)(ks), lax.map(lambda i: i, jnp.arange(2)), random.normal(ks[jnp.argmax(jnp.ones(2))])), 3
    ),
    "jitted function": _two(*[phlox.jit(lambda k: random.normal(k))] * 2),
    "training step": _turns(lambda key, x: x + random.normal(key)),
    "returned": _returned,
    "closed over": _closed_over,
    "scan": lambda: lax.scan(lambda c, _: (c, random.normal(c)), random.key(0), None, length=3),
    "fori_loop": _two(lambda k: lax.fori_loop(0, 3, lambda i, x: x + random.normal(k), 0.0), lambda k: 0),
    "while_loop": _two(lambda k: lax.while_loop(lambda x: x < 0, lambda x: x + random.normal(k), -1.0), lambda k: 0),
    "cond, then again": _jitted(lambda k: lax.cond(True, random.normal, lambda k: 0.0, k) + random.normal(k)),
    "vmap": _jitted(lambda k: phlox.vmap(lambda k: random.normal(k) + random.normal(k))(k), 3),
    "grad": _two(lambda k: phlox.grad(lambda x: x * random.normal(k))(1.0), random.normal),
}  # fmt: skip

SILENT = {
    "a library's own second use": _jitted(lambda k: phlox.grad(lambda x: x * path(k))(1.0)),
    "chain": lambda: _chain(0, _chain(0, (random.key(0), 0.0))),
    "parts": lambda: [random.normal(k) for k in random.split(random.key(0), 3)],
    "indexed parts": lambda: [random.normal(ks[i]) for ks in [random.split(random.key(0), 3)] for i in (0, 1, -1)],
    "part read twice": lambda: [(ks[0], random.normal(ks[0])) for ks in [random.split(random.key(0))]],
    "rest": lambda: [
        (random.normal(ks[0]), phlox.vmap(random.normal)(ks[1:])) for ks in [random.split(random.key(0), 3)]
    ],
    "folded": _two(lambda k: random.normal(random.fold_in(k, 1)), lambda k: random.normal(random.fold_in(k, 2))),
    "fold_in twice": _two(lambda k: random.fold_in(k, 1), lambda k: random.normal(random.fold_in(k, 1))),
    "clone": _two(random.normal, lambda k: random.normal(random.clone(k))),
    "words": _two(random.normal, lambda k: (random.key_data(k), repr(k))),
    "made anew": lambda: (random.normal(random.key(0)), random.normal(random.key(0))),
    "old-style keys": lambda: [random.normal(k) + random.normal(k) for k in [random.PRNGKey(0)]],
    "repeated call": lambda: [f(k, x) for f in [phlox.jit(lambda k, x: x + random.normal(k))]
                              for k, x in [(random.key(0), jnp.ones(2))] for _ in range(3)],
    "scan": lambda: phlox.jit(lambda k: lax.scan(lambda c, _: (_chain(0, c), None), (k, 0.0), None, length=3))(random.key(0)),
    "fori_loop": lambda: lax.fori_loop(0, 3, _chain, (random.key(0), 0.0)),
    "folded in a loop": _jitted(lambda k: lax.fori_loop(0, 3, lambda i, x: x + random.normal(random.fold_in(k, i)), 0.0)),
    "parts in a loop": _jitted(lambda ks: lax.fori_loop(0, 3, lambda i, x: x + random.normal(ks[i]), 0.0), 3),
    "rows of a scan": _jitted(lambda ks: lax.scan(lambda c, k: (c + random.normal(k), None), 0.0, ks), 3),
    "branches": _jitted(lambda k: lax.cond(True, random.normal, random.uniform, k)),
    "maybe split": _jitted(
        lambda k: random.normal(lax.cond(True, lambda k: random.split(k)[0], lambda k: k, k))
    ),
    "vmap": _jitted(lambda ks: phlox.vmap(random.normal)(ks), 3),
    "finished examples": _jitted(
        lambda ks: phlox.vmap(
            lambda k, n: lax.while_loop(lambda c: c[2] < n, lambda c: (*_chain(0, c[:2]), c[2] + 1), (k, 0.0, 0))[1]
        )(ks, jnp.arange(3)), 3
    ),
    "checkpoint": lambda: phlox.grad(
        phlox.checkpoint(lambda x, k: jnp.sin(jnp.sin(x * random.normal(k))))
    )(2.0, random.key(0)),
    "off": lambda: _off(_two(random.normal, random.normal)),
}  # fmt: skip


def _off(program):
    with config.scope(checks="off"):
        program()


@pytest.mark.parametrize("name", REPORTED)
def test_reported(name):
    messages = warned(REPORTED[name])
    assert messages and all(m.startswith("key used twice: ") for m in messages)
    assert all(("test_traps_keys.py:" in m and "phlox.random.split" in m) or "fold_in" in m for m in messages)


@pytest.mark.parametrize("name", SILENT)
def test_not_reported(name):
    assert warned(SILENT[name]) == []


def test_strict_mode_raises_with_both_places():
    with config.scope(checks="strict"):
        key = random.key(0)
        random.uniform(key, (3, 2))
        with pytest.raises(errors.CheckError, match=r"normal draws from a key<fry>\[\] again, first used by uniform"):
            random.normal(key)
        with pytest.raises(errors.CheckError, match="is already consumed"):
            phlox.jit(lambda k: random.normal(k) + random.normal(k))(random.key(1))


@pytest.mark.parametrize(
    ("program", "reported"),
    [
        (lambda k: (random.normal(k), random.uniform(k)), True),
        (lambda k: (random.split(k), random.normal(k)), True),
        (lambda k: [random.normal(ks[0]) + random.normal(ks[0]) for ks in [random.split(k)]], True),
        (lambda k: random.normal(random.fold_in(k, 1)) + random.normal(random.fold_in(k, 1)), True),
        (lambda k: (random.normal(k), random.normal(random.clone(k))), False),
        (lambda k: [random.normal(ks[0]) + random.normal(ks[1]) for ks in [random.split(k)]], False),
        (lambda k: lax.fori_loop(0, 3, _chain, (k, 0.0)), False),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_old_style_keys_in_strict_mode(program, reported, compiled):
    run = phlox.jit(program) if compiled else program
    with config.scope(checks="strict"):
        if reported:
            with pytest.raises(errors.CheckError):
                run(random.PRNGKey(0))
        else:
            run(random.PRNGKey(0))


def test_a_record_keeps_no_key_alive():
    def draw():
        for i in range(10):
            random.normal(random.fold_in(random.key(i), 3))
        gc.collect()
        return len(phlox.live_arrays())

    draw()  # what earlier tests left behind is collected first
    assert draw() == draw()


def test_seeds_from_a_callback_differ():
    """Two calls of a callback are not one value, though their operands are equal."""
    seeds = iter(range(9))

    def draw():
        def seed():
            return phlox.experimental.io_callback(lambda: np.uint32(next(seeds)), phlox.ShapeDtypeStruct((), "uint32"))

        return [random.normal(random.key(seed())) for _ in range(2)]

    assert warned(lambda: phlox.jit(draw)()) == []
    with phlox.checks("strict"):
        phlox.jit(draw)()
        phlox.jit(lambda x: phlox.debug.print("{}", x))(1.0)  # an operation without results
