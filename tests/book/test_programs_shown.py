"""make_jaxpr shows the program that jit compiles, in the form in which JAX prints it."""

import jax
import jax.numpy

import phlox.numpy as jnp
from phlox import grad, jit, make_jaxpr


def selu(x, alpha=1.67, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


PLAIN = """\
{ lambda ; a:f32[5]. let
    b:bool[5] = gt a 0.0:f32[]
    c:f32[5] = exp a
    d:f32[5] = mul 1.6699999570846558:f32[] c
    e:f32[5] = sub d 1.6699999570846558:f32[]
    f:f32[5] = jit[
      name=_where
      jaxpr={ lambda ; b:bool[5] a:f32[5] e:f32[5]. let
          f:f32[5] = select_n b e a
        in (f,) }
    ] b a e
    g:f32[5] = mul 1.0499999523162842:f32[] f
  in (g,) }"""

COMPILED = """\
{ lambda ; a:f32[5]. let
    b:f32[5] = jit[
      name=selu
      jaxpr={ lambda ; a:f32[5]. let
          c:bool[5] = gt a 0.0:f32[]
          d:f32[5] = exp a
          e:f32[5] = mul 1.6699999570846558:f32[] d
          f:f32[5] = sub e 1.6699999570846558:f32[]
          g:f32[5] = jit[
            name=_where
            jaxpr={ lambda ; c:bool[5] a:f32[5] f:f32[5]. let
                g:f32[5] = select_n c f a
              in (g,) }
          ] c a f
          b:f32[5] = mul 1.0499999523162842:f32[] g
        in (b,) }
    ] a
  in (b,) }"""

X = jnp.arange(5.0)


def jax_selu(x, alpha=1.67, scale=1.05):
    return scale * jax.numpy.where(x > 0, x, alpha * jax.numpy.exp(x) - alpha)


def test_selu():
    assert str(make_jaxpr(selu)(X)) == PLAIN
    assert str(jax.make_jaxpr(jax_selu)(jax.numpy.arange(5.0))) == PLAIN


def test_selu_compiled():
    assert str(make_jaxpr(jit(selu))(X)) == COMPILED
    jax_selu.__name__ = "selu"
    assert str(jax.make_jaxpr(jax.jit(jax_selu))(jax.numpy.arange(5.0))) == COMPILED


def test_the_derivative_of_selu():
    mine = str(make_jaxpr(grad(lambda x: selu(x).sum()))(X))
    theirs = str(jax.make_jaxpr(jax.grad(lambda x: jax_selu(x).sum()))(jax.numpy.arange(5.0)))
    assert mine == theirs


def test_a_loop_is_unrolled():
    def power(x):
        for _ in range(3):
            x = x * 2.0
        return x

    assert str(make_jaxpr(power)(1.0)) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = mul a 2.0:f32[]\n"
        "    c:f32[] = mul b 2.0:f32[]\n"
        "    d:f32[] = mul c 2.0:f32[]\n"
        "  in (d,) }"
    )
