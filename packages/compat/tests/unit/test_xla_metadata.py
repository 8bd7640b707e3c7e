"""Attributes of operations in the texts of programs: ``jax.experimental.xla_metadata``."""

from __future__ import annotations

import re

import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox_compat.experimental import xla_metadata as metadata

FRONTEND = re.compile(r"mhlo.frontend_attributes = \{([^}]*)\}")


def attributes(f, *args):
    """For each kind of operation in the program of `f`, the attributes that it has there, "-" for none."""
    found = {}
    for line in phlox.jit(f).lower(*args).as_text().split("\n"):
        operation = re.search(r'= "?(?:stablehlo\.(\w+)|func\.(call)|(call))', line)
        if operation is not None:
            marks = FRONTEND.search(line)
            found.setdefault(next(filter(None, operation.groups())), set()).add(marks[1] if marks else "-")
    return found


def tagged(f, **items):
    """`f` with its operations in the context of these attributes."""

    def run(*args):
        with metadata.set_xla_metadata(**items):
            return f(*args)

    return run


def wave(x):
    return jnp.sin(x) * jnp.cos(x)


CONTEXTS = {
    "text": (tagged(wave, a="b"), {"sine": {'a = "b"'}, "cosine": {'a = "b"'}, "multiply": {'a = "b"'}}),
    "bool": (tagged(jnp.sin, a=True), {"sine": {'a = "true"'}}),
    "number": (tagged(jnp.sin, a=10), {"sine": {'a = "10"'}}),
    "nested": (tagged(tagged(jnp.sin, b=1), a=0), {"sine": {'a = "0", b = "1"'}}),
    "overwritten": (tagged(tagged(jnp.sin, a=1), a=0), {"sine": {'a = "1"'}}),
    "removed": (tagged(tagged(jnp.sin, a=None), a=0), {"sine": {"-"}}),
    "a part": (lambda x: tagged(jnp.sin, a=0)(jnp.cos(x)), {"sine": {'a = "0"'}, "cosine": {"-"}}),
    "jit inside": (tagged(phlox.jit(phlox.jit(jnp.sin)), a=0), {"sine": {'a = "0"'}, "call": {'a = "0"'}}),
    "grad": (phlox.grad(tagged(jnp.sin, a=0)), {"cosine": {'a = "0"'}}),
    "vmap": (lambda x: phlox.vmap(tagged(jnp.sin, a=0))(jnp.ones(3)), {"sine": {'a = "0"'}}),
    "branches": (
        tagged(lambda x: lax.cond(x < 0.0, jnp.sin, tagged(jnp.cos, a=None), x), a=0),
        {"compare": {'a = "0"'}, "sine": {'a = "0"'}, "cosine": {"-"}},
    ),
    "loop": (
        lambda x: lax.while_loop(tagged(lambda c: c < 3, a=0), tagged(jnp.exp, a=1), x),
        {"compare": {'a = "0"'}, "exponential": {'a = "1"'}, "while": {"-"}},
    ),
    "decorator": (metadata.set_xla_metadata(a=0)(jnp.sin), {"sine": {'a = "0"'}}),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts(name):
    f, expected = CONTEXTS[name]
    found = attributes(f, 1.0)
    assert {operation: found[operation] for operation in expected} == expected


def test_a_context_around_the_call_makes_a_program_of_its_own():
    f = phlox.jit(wave)
    assert "frontend" not in f.lower(1.0).as_text()
    with metadata.set_xla_metadata(a="b"):
        assert FRONTEND.search(f.lower(1.0).as_text())[1] == 'a = "b"'
        assert float(f(0.0)) == 0
    assert "frontend" not in f.lower(1.0).as_text()
    inside = metadata.set_xla_metadata(a="b")(f)
    assert inside.__name__ == "wave" and FRONTEND.search(inside.lower(1.0).as_text())


def test_values():
    """The operation that computes a value has the attributes, and those of its context."""

    def f(x):
        return metadata.set_xla_metadata(jnp.sin(x), q="r") + metadata.set_xla_metadata(x, q="r")

    assert attributes(f, 1.0) == {"sine": {'q = "r"'}, "add": {"-"}}
    assert attributes(tagged(f, a=0), 1.0) == {"sine": {'a = "0", q = "r"'}, "add": {'a = "0"'}}
    assert attributes(lambda x: phlox.jvp(f, (x,), (x,)), 1.0)["multiply"] == {'q = "r"'}
    assert attributes(phlox.vmap(f), jnp.ones(3))["sine"] == {'q = "r"'}
    value, derivative = phlox.jit(phlox.value_and_grad(f))(0.0)
    assert (float(value), float(derivative)) == (0, 2)
    assert f(0.0) == 0


@pytest.mark.parametrize(("backward", "expected"), [("same", {'q = "r"'}), ("drop", {"-"}), ({"q": 1}, {'q = "1"'})])
def test_calls(backward, expected):
    f = metadata.xla_metadata_call2({"q": "r"}, ad_metadata=backward)(wave)
    assert attributes(f, 1.0) == {"call": {'q = "r"'}, "sine": {"-"}, "cosine": {"-"}, "multiply": {"-"}}
    assert attributes(phlox.grad(f), 1.0)["call"] == {'q = "r"'} | expected
    assert float(phlox.grad(f)(0.0)) == 1


def test_refused_calls():
    for wrong in (
        lambda: metadata.xla_metadata_call(wave, q=[1]),
        lambda: metadata.xla_metadata_call2(3),
        lambda: metadata.xla_metadata_call2(wave, 3),
        lambda: metadata.xla_metadata_call2(wave, {}, ad_metadata="some"),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_names_of_attributes():
    assert attributes(metadata.must_fuse_call("1")(wave), 1.0)["call"] == {'MUST_FUSE = "1"'}
    assert attributes(metadata.scheduling_group("1")(wave), 1.0)["call"] == {'scheduling_group = "1"'}
    with metadata.fuse_limit():
        assert attributes(jnp.sin, 1.0) == {"sine": {'FUSE_LIMIT = "true"'}}
