"""People search for the words of JAX's errors: they are in the first sentence of ours.

Each row holds words, and a call that both libraries refuse with them.
"""

import re
import warnings

import jax
import jax.extend
import jax.interpreters.ad
import numpy as np
import pytest

import phlox
import phlox.extend.core


class Unregistered:
    def __init__(self):
        self.weights = np.ones(3)


class ReadsItself:
    def __jax_array__(self):
        return np.ones(2)


def while_positive(x):
    while x > 0:
        x = x - 1
    return x


def float0(m):
    return m.grad(lambda x: x + 0.0, allow_int=True)(1)


def leaked(m):
    kept = []
    m.jit(lambda x: kept.append(x + 1))(1.0)
    return m.jit(lambda x: x + kept[0])(1.0)


def add3(x1, x2, x3):
    return x1 + x2 + x3


def ones(m, *shape):
    return m.numpy.ones(shape)


DERIVATIVES = {
    "differentiating with respect to argnums=0 requires at least 1 positional arguments to be passed by the caller, but "
    "got only 0 positional arguments": lambda m: m.grad(lambda x: x)(x=1.0),
    "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got complex64": lambda m: (
        m.grad(lambda x: x * 1j)(1.0)
    ),
    "grad requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got int32": lambda m: (
        m.grad(lambda x: 1)(1.0)
    ),
    "jacrev with holomorphic=True requires outputs with complex dtype, but got float32": lambda m: m.jacrev(
        lambda x: x.real, holomorphic=True
    )(1j),
    "linearized function called on tangent values inconsistent with the original primal values": lambda m: m.linearize(
        m.numpy.sum, np.arange(3)
    )[1](np.ones((3, 2), np.float32)),
    "tangent values inconsistent": lambda m: m.linearize(lambda x: x, 1.0)[1](1),
    "jvp called with different primal and tangent shapes": lambda m: m.jvp(lambda x: x, (1.0,), (ones(m, 2),)),
    "do not match": lambda m: m.jvp(lambda x: x, (1.0,), (1,)),
    "linear_transpose only supports": lambda m: m.linear_transpose(lambda x: 2.0 * x, 1),
    "cotangent tree does not match": lambda m: m.linear_transpose(lambda x: [x, x], 1.0)(1.0),
    "cotangent type does not match": lambda m: m.linear_transpose(lambda x: x, 1.0)(1j),
    "float0s do not support any operations by design": lambda m: float0(m) + ones(m),
    "float0s do not support any operations by design ": lambda m: m.lax.add(float0(m), ones(m)),
}
MAPS = {
    "vmap was requested to map its argument along axis 0, which implies that its rank should be at least 1, but is only "
    "0 (its shape is ())": lambda m: m.vmap(lambda x: x)(1.0),
    "axis 0 of kwargs['x3'] of type float32[1]": lambda m: m.vmap(add3)(ones(m, 2), x2=ones(m, 2), x3=ones(m, 1)),
    "most axes (2 of them) had size 2, e.g. axis 0 of argument x1 of type float32[2]": lambda m: m.vmap(add3)(
        ones(m, 2), ones(m, 2), ones(m, 1)
    ),
    "vmap must have at least one non-None value in in_axes": lambda m: m.vmap(lambda x: x, in_axes=None)(ones(m, 2)),
    "vmap wrapped function must be passed at least one argument containing an array": lambda m: m.vmap(lambda: 1)(),
    "vmap has mapped output (axis_name=foo) but out_axes is None": lambda m: m.vmap(
        lambda x: x, out_axes=None, axis_name="foo"
    )(ones(m, 2)),
    "at vmap out_axes['a'], got axis spec None but output was batched on axis 0": lambda m: m.vmap(
        lambda x: {"a": x}, out_axes={"a": None}
    )(ones(m, 2)),
    "vmap out_axes specification must be a tree prefix of the corresponding value": lambda m: m.vmap(
        lambda x: x, out_axes=(0, 1)
    )(ones(m, 2)),
    "pmap in_axes must be an int": lambda m: m.pmap(lambda x: x, in_axes=False)(ones(m, 1)),
    "pmap out_axes must be an int": lambda m: m.pmap(lambda x: x, out_axes="a")(ones(m, 1)),
    "pmapped function has static_broadcasted_argnums=(1,) but was called with only 1 positional argument. All static "
    "broadcasted arguments must be passed positionally": lambda m: m.pmap(
        lambda x, y: x, static_broadcasted_argnums=(1,)
    )(ones(m, 1, 1), y=1),
}
ARGUMENTS = {
    "should be a callable": lambda m: m.lax.scan(123, 0, np.arange(3)),
    "must have the same first dimension": lambda m: m.lax.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3))),
    "'foo' of type <class 'str'> is not a valid JAX type": lambda m: m.grad(lambda x: x)("foo"),
    "as an abstract array. The problematic value is of type <class 'str'> and was passed to the function at path x": (
        lambda m: m.jit(lambda x: x)("foo")
    ),
    "was passed to the function at path x": lambda m: m.jit(lambda x: x)(Unregistered()),
    "Triggering __jax_array__() during abstractification is no longer supported": lambda m: m.jit(lambda x: x)(
        ReadsItself()
    ),
    "as a JAX value. The problematic value is of type <class 'numpy.ndarray'> and was passed to add at position 1.": (
        lambda m: m.lax.add(m.numpy.array(7), np.array("hello"))
    ),
    "sum requires ndarray or scalar arguments, got <class 'list'> at position 0": lambda m: m.numpy.sum([1, 2]),
    "add got incompatible shapes for broadcasting: (3,), (4,).": lambda m: ones(m, 3) + ones(m, 4),
    "add got incompatible shapes for broadcasting: (3,), (4,). ": lambda m: m.lax.add(ones(m, 3), ones(m, 4)),
    "Incompatible shapes for broadcasting: shapes=[(2, 3), (3, 2)]": lambda m: m.lax.broadcast_shapes((2, 3), (3, 2)),
    "Incompatible shapes for broadcasting: shapes=[(3,), (2,), ()]": lambda m: m.numpy.where(
        ones(m, 3) > 0, ones(m, 2), 0.0
    ),
    "An overflow was encountered while parsing an argument to a jitted computation, whose argument path is x": lambda m: (
        m.jit(lambda x: x + 1)(2**31)
    ),
    "device_put device specification must be a tree prefix of the corresponding value": lambda m: m.device_put(
        {"a": 1, "b": 2}, {"a": [None, None], "b": (None, None)}
    ),
    "Mismatch details (2 found)": lambda m: m.device_put({"a": 1, "b": 2}, {"a": [None, None], "b": (None, None)}),
    "vmap in_axes specification must be a tree prefix of the corresponding value;": lambda m: m.vmap(
        lambda x: x, in_axes=([0],)
    )(ones(m, 3)),
    "different types": lambda m: m.vmap(lambda x: x, in_axes=([0],))(ones(m, 3)),
    "unexpected PRNG key type <class 'tuple'>": lambda m: m.random.normal((3,)),
    "mul does not accept dtype key<fry> at position 0": lambda m: m.random.key(0) * m.random.key(0),
    "does not accept dtypes": lambda m: m.random.key(0) + 1,
    "at output component [1], which is not a valid JAX type": lambda m: m.eval_shape(lambda x: (2.0, max), 1),
}
TRACERS = {
    "Attempted boolean conversion of traced array with shape bool[].": lambda m: m.jit(while_positive)(3),
    "The __index__() method was called on traced array with shape int32[]": lambda m: m.jit(range)(3),
    "The numpy.ndarray conversion method __array__() was called on traced array with shape int32[]": lambda m: m.jit(
        np.asarray
    )(3),
    "Abstract tracer value encountered where concrete value is expected": lambda m: m.jit(int)(3),
    "was created on line": leaked,
    "Only integer scalar arrays can be converted to a scalar index.": lambda m: m.jit(range)(ones(m, 3)),
    "Only integer scalar arrays can be converted to a scalar index. ": lambda m: hex(ones(m)),
    "Only scalar arrays can be converted to Python scalars": lambda m: m.jit(float)(ones(m, 3)),
    "Only scalar arrays can be converted to Python scalars ": lambda m: int(ones(m, 1)),
    "The truth value of an empty array is ambiguous": lambda m: m.jit(bool)(ones(m, 0)),
    "The truth value of an array with more than one element is ambiguous": lambda m: bool(ones(m, 2)),
}


def primitive(m, eager=True, types=None, name="foo"):
    made = m.extend.core.Primitive(name)
    if types is not None:
        made.def_abstract_eval(types)
    if eager:
        made.def_impl(lambda x: x)
    return made


def linear(m):
    made = primitive(m, types=lambda x: x)
    if m is jax:
        jax.interpreters.ad.defjvp(made, lambda g, x: made.bind(g))
    else:
        made.jvp = lambda primals, tangents: (made.bind(*primals), made.bind(*tangents))
    return made


RULES = {
    "Evaluation rule for 'foo' not implemented": lambda m: primitive(m, eager=False).bind(1.0),
    "Abstract evaluation for 'foo' not implemented": lambda m: m.jit(primitive(m).bind)(1.0),
    "Differentiation rule for 'foo' not implemented": lambda m: m.grad(primitive(m).bind)(1.0),
    "Batching rule for 'foo' not implemented": lambda m: m.vmap(primitive(m).bind)(ones(m, 2)),
    "rule for primitive 'foo' not found": lambda m: m.jit(primitive(m, types=lambda x: x).bind)(1.0),
    "Transpose rule (for reverse-mode differentiation) for 'foo' not implemented": lambda m: m.grad(linear(m).bind)(
        1.0
    ),
    "foo.abstract_eval() method should return a tuple or a list iff foo.multiple_results": lambda m: m.jit(
        primitive(m, types=lambda x: [x]).bind
    )(1.0),
}
ROWS = {**RULES, **DERIVATIVES, **MAPS, **ARGUMENTS, **TRACERS}


def refusal(module, call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            call(module)
    return caught.value


@pytest.mark.whole
@pytest.mark.parametrize("words", ROWS)
def test_both_say_it(words):
    theirs, mine = (refusal(module, ROWS[words]) for module in (jax, phlox))
    assert isinstance(mine, phlox.errors.PhloxError), mine
    assert words.rstrip() in re.sub(r"\s+", " ", str(mine)), mine
    assert words.rstrip() in re.sub(r"\s+", " ", str(theirs)), theirs
    for kind in (TypeError, ValueError, RuntimeError, NotImplementedError, OverflowError):
        assert isinstance(mine, kind) or not isinstance(theirs, kind), (type(mine), type(theirs))
