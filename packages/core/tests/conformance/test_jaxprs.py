"""make_jaxpr prints what jax prints: programs of many functions, plain and transformed, compared as text."""

import functools
import re

import jax
import numpy as np
import pytest

import phlox

V = np.arange(3.0, dtype=np.float32)
M = np.arange(6.0, dtype=np.float32).reshape(2, 3)
I = np.arange(3)  # noqa: E741

#: Parameters that phlox's primitives have not, as they say nothing about what is computed.
DROPPED = [
    r"out_sharding=None",
    r"accuracy=None",
    r"update_consts=\(\)",
    r"update_jaxpr=(None|\{[^{}]*\})",
    r"input_dtype=\w+",
    r"jvp=\w+",
]


def normal(text):
    """Programs without what differs by design: parameters, addresses, the spelling of numbers."""
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", re.sub(r" at 0x[0-9a-fX]+", "", text))
    for parameter in DROPPED:
        text = re.sub(rf"\b{parameter}\s*", "", text)
    text = re.sub(r"\[\s*\]", "", re.sub(r" preferred_element_type=float32", "", text))
    return re.sub(r"\s+", " ", re.sub(r"\s+\]", "]", re.sub(r"\[\s+", "[", text)))


FUNCTIONS = {
    "identity": (lambda m, x: x, V),
    "constant": (lambda m, x: 3.0, V),
    "nothing": (lambda m, x: (), V),
    "two results": (lambda m, x: (x, x + 1), V),
    "add": (lambda m, x: x + 1, V),
    "weak add": (lambda m, x: x + 1, 2.0),
    "int add": (lambda m, x: x + 1, 3),
    "add float to int": (lambda m, x: x + 2.5, I),
    "two arguments": (lambda m, x, y: x * y + y, V, 2.0),
    "broadcast": (lambda m, x, y: x + y, M, V),
    "made number": (lambda m, x: x * m.numpy.array(2.5), V),
    "made number of a dtype": (lambda m, x: x * m.numpy.float32(2.5), V),
    "made number converted": (lambda m, x: x.astype("bfloat16") * m.numpy.asarray(2.5) + m.numpy.int32(3), V),
    "made number as exponent": (lambda m, x: x ** m.numpy.array(2.0), V),
    "made number of too few bits": (lambda m, x: x + m.numpy.asarray(300).astype("int8"), V),
    "made number in a branch": (lambda m, x: m.lax.cond(m.numpy.array(True), lambda x: x, lambda x: -x, x), V),
    "made number in a loop": (lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c * m.numpy.array(2.0), x), V),
    "scan that keeps a part": (
        lambda m, x: m.lax.scan(lambda c, y: ((c[0] * c[1] + y, c[1]), c[1]), (0.0, x[0]), x),
        V,
    ),
    "scan that keeps all": (lambda m, x: m.lax.scan(lambda c, y: (c, y + 1), x[0], x), V),
    "while_loop that keeps a part": (
        lambda m, x: m.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + c[2], c[2]), (0, x, x[0])),
        V,
    ),
    "while_loop that keeps its bound": (
        lambda m, x: m.lax.while_loop(lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * 2, c[2]), (0, x, 3)),
        V,
    ),
    "fori_loop that keeps a part": (
        lambda m, x, n: m.lax.fori_loop(0, n, lambda i, c: (c[0] + c[1], c[1]), (x, x)),
        V,
        3,
    ),
    "cond that returns an operand": (
        lambda m, x: m.lax.cond(x[0] > 0, lambda a, b: (a, b + 1), lambda a, b: (a, b), x, x[1:]),
        V,
    ),
    "switch that returns an operand": (
        lambda m, x: m.lax.switch(x[0].astype("int32"), [lambda a: (a, a), lambda a: (a, -a), lambda a: (a, a)], x),
        V,
    ),
    "scan that returns its rows": (lambda m, x: m.lax.scan(lambda c, y: (c + y, (y, c * y)), 0.0, x), V),
    "made number in a derivative": (lambda m, x: m.grad(lambda x: (x * m.numpy.array(2.0)).sum())(x), V),
    "made number in a map": (lambda m, x: m.vmap(lambda x: x * m.numpy.array(2.0))(x), V),
    "made number as result": (lambda m, x: (m.numpy.float32(2.0), m.numpy.array(1)), V),
    "made zeros": (lambda m, x: m.numpy.zeros(()) + x, V),
    "made vector": (lambda m, x: x * m.numpy.array([1.0, 2.0, 3.0]), V),
    "made vector of NumPy's": (lambda m, x: m.numpy.asarray(V) @ x, V),
    "sin cos": (lambda m, x: m.numpy.sin(m.numpy.cos(x)), V),
    "exp log tanh": (lambda m, x: m.numpy.exp(m.numpy.log(m.numpy.tanh(x))), V),
    "square": (lambda m, x: x**2, V),
    "cube": (lambda m, x: x**3, V),
    "power": (lambda m, x: x**2.5, V),
    "power of two": (lambda m, x, y: x**y, V, V),
    "sqrt": (lambda m, x: m.numpy.sqrt(x), V),
    "division": (lambda m, x, y: x / y, V, I),
    "negative": (lambda m, x: -x, V),
    "abs": (lambda m, x: abs(x), V),
    "compare": (lambda m, x: (x > 0) & (x < 2), V),
    "not": (lambda m, x: ~(x > 0), V),
    "sum": (lambda m, x: x.sum(), M),
    "sum over an axis": (lambda m, x: m.numpy.sum(x, axis=1, keepdims=True), M),
    "mean": (lambda m, x: m.numpy.mean(x, 0), M),
    "max": (lambda m, x: m.numpy.max(x), M),
    "prod": (lambda m, x: m.numpy.prod(x), M),
    "argmax": (lambda m, x: m.numpy.argmax(x, 1), M),
    "any": (lambda m, x: m.numpy.any(x > 0), M),
    "sort": (lambda m, x: m.numpy.sort(x), V),
    "dot": (lambda m, x, y: m.numpy.dot(x, y), M, V),
    "matmul": (lambda m, x: x @ x.T, M),
    "outer": (lambda m, x: m.numpy.outer(x, x), V),
    "einsum": (lambda m, x, y: m.numpy.einsum("ij,j->i", x, y), M, V),
    "reshape": (lambda m, x: x.reshape(3, 2), M),
    "ravel": (lambda m, x: x.ravel(), M),
    "transpose": (lambda m, x: x.T, M),
    "expand_dims": (lambda m, x: x[:, None], V),
    "squeeze": (lambda m, x: m.numpy.squeeze(x[None], 0), V),
    "broadcast_to": (lambda m, x: m.numpy.broadcast_to(x, (2, 3)), V),
    "concatenate": (lambda m, x: m.numpy.concatenate([x, x]), V),
    "index": (lambda m, x: x[1], V),
    "negative index": (lambda m, x: x[-1], V),
    "slice": (lambda m, x: x[1:], V),
    "step": (lambda m, x: x[::2], V),
    "reversed": (lambda m, x: x[::-1], V),
    "traced index": (lambda m, x, i: x[i], V, 1),
    "index array": (lambda m, x, i: x[i], V, I),
    "column": (lambda m, x: x[:, 1], M),
    "set": (lambda m, x: x.at[0].set(1.0), V),
    "add at": (lambda m, x, i: x.at[i].add(1.0), V, I),
    "where": (lambda m, x: m.numpy.where(x > 0, x, 0.0), V),
    "clip": (lambda m, x: m.numpy.clip(x, 0, 1), V),
    "maximum": (lambda m, x: m.numpy.maximum(x, 0), V),
    "astype": (lambda m, x: x.astype("int32"), V),
    "zeros": (lambda m, x: m.numpy.zeros(3) + x, V),
    "zeros_like": (lambda m, x: m.numpy.zeros_like(x), V),
    "arange": (lambda m, x: m.numpy.arange(3) * x, V),
    "closed-over array": (lambda m, x: x + V, V),
    "stop_gradient": (lambda m, x: m.lax.stop_gradient(x), V),
    "iota": (lambda m: m.lax.iota("int32", 3),),
    "complex": (lambda m, x: m.numpy.conj(x) * 2, V.astype(np.complex64)),
    "bool": (lambda m, x: x | True, V > 0),
    "selu": (lambda m, x: m.nn.selu(x), V),
    "relu": (lambda m, x: m.nn.relu(x), V),
    "sigmoid": (lambda m, x: m.nn.sigmoid(x), V),
    "lax add": (lambda m, x: m.lax.add(x, x), V),
    "lax dot_general": (lambda m, x: m.lax.dot_general(x, x, (((1,), (1,)), ((), ()))), M),
    "lax dynamic_slice": (lambda m, x: m.lax.dynamic_slice(x, (1,), (2,)), V),
    "lax pad": (lambda m, x: m.lax.pad(x, np.float32(0), [(1, 1, 0)]), V),
    "lax integer_pow": (lambda m, x: m.lax.integer_pow(x, 3), V),
    "lax reduce_max": (lambda m, x: m.lax.reduce_max(x, (0,)), M),
    "lax cummax": (lambda m, x: m.lax.cummax(x), V),
    "key": (lambda m: m.random.key(0),),
    "split key": (lambda m, k: m.random.split(m.random.wrap_key_data(k)), np.zeros(2, np.uint32)),
    "bits": (lambda m, k: m.random.bits(m.random.wrap_key_data(k), (2,)), np.zeros(2, np.uint32)),
    "nested tree": (lambda m, t: {"s": t["a"] + t["b"][0]}, {"a": V, "b": (2.0, None)}),
    "one more use": (lambda m, x: (lambda y: y * y + y)(m.numpy.sin(x)), V),
    "unused": (lambda m, x, y: x, V, V),
    "unused result": (lambda m, x: (m.numpy.sin(x), x)[1], V),
    "repeated work": (lambda m, x: m.numpy.sin(x) + m.numpy.sin(x), V),
    "many": (lambda m, x: functools.reduce(lambda y, _: m.numpy.sin(y) + x, range(30), x), V),
    "jit": (lambda m, x: m.jit(lambda y: y * 2)(x) + 1, V),
    "jit with a name": (lambda m, x: m.jit(_named)(x), V),
    "jit twice": (lambda m, x: (lambda f: f(f(x)))(m.jit(_named)), V),
    "jit in jit": (lambda m, x: m.jit(lambda y: m.jit(_named)(y) * 3)(x), V),
    "jit inline": (lambda m, x: m.jit(_named, inline=True)(x), V),
    "jit of a static argument": (lambda m, x: m.jit(lambda y, n: y**n, static_argnums=1)(x, 3), V),
    "custom_jvp": (lambda m, x: _custom(m)(x), V),
    "vmapped dot": (lambda m, x: m.vmap(lambda r: r @ r)(x), M),
    "vmapped, second axis": (lambda m, x: m.vmap(lambda r: r * 2, 1, 0)(x), M),
    "cond with shared constants": (
        lambda m, x, y: m.lax.cond(x > 0, lambda a, _: a + y + x, lambda _, b: b - y, x + 1.0, x + 2.0),
        np.float32(1),
        2.0,
    ),
    "cond with a constant each": (
        lambda m, x, y, z: m.lax.cond(x > 0, lambda a: a + y, lambda a: a - z, x),
        np.float32(1),
        np.float32(2),
        3.0,
    ),
    "switch with shared constants": (
        lambda m, i, x, y: m.lax.switch(i, [lambda a: a * y, lambda a: a - x, lambda a: a + x + y], x),
        1,
        V,
        V,
    ),
    "converted to what it is": (
        lambda m: m.lax.convert_element_type(m.lax.convert_element_type(V, "float32"), "float32"),
    ),
    "converted number": (lambda m: m.lax.convert_element_type(3.0, "float16"),),
    "broadcast to what it is": (
        lambda m: (m.lax.broadcast(np.float32(3), ()), m.lax.broadcast_in_dim(V, V.shape, (0,))),
    ),
    "precise dot": (lambda m, x: m.numpy.dot(x, x, precision="highest"), V),
    "vmapped, one argument": (lambda m, x, y: m.vmap(lambda r, s: r + s, (0, None))(x, y), M, V),
}


def _named(y):
    return y * y + 1


def _custom(m):
    @m.custom_jvp
    def f(x):
        return m.numpy.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    return f


#: What is differentiated and batched. Programs that are composed otherwise are left out, here as above: jax has primitives
#: of their own for stack and split, wraps floor_divide or cumsum in jit, lifts arrays made of lists where phlox records a
#: copy, names results of inner programs that nothing reads, and keeps zero tangents that nothing needs.
# Not gelu, whose value at -inf is 0, nor softmax, which takes the fast maximum: their programs are not jax's.
# Not power: its exponent less one is a number, which jax's program computes. Not selu: the derivative of expm1 is exp.
# Not matmul: the gradient of a product of more axes is written in the order that needs no transpose (docs/notes/programs.md).
GRADIENTS = [
    "add", "two arguments", "broadcast", "sin cos", "square", "cube", "sqrt", "division", "negative", "abs", "sum over an axis",
    "mean", "dot", "einsum", "reshape", "transpose", "expand_dims", "broadcast_to", "slice", "reversed", "index array", "where", "clip",
    "maximum", "stop_gradient", "closed-over array", "sigmoid", "lax integer_pow", "jit", "jit twice", "custom_jvp", "one more use",
]  # fmt: skip
JVPS = [
    "add", "weak add", "two arguments", "broadcast", "cube", "sqrt", "division", "negative", "abs", "sum over an axis", "mean", "dot", "matmul",
    "einsum", "reshape", "transpose", "expand_dims", "broadcast_to", "concatenate", "index", "slice", "reversed", "where", "clip", "maximum",
    "stop_gradient", "closed-over array", "sigmoid", "lax integer_pow", "jit", "jit twice", "custom_jvp",
]  # fmt: skip
BATCHES = [
    "add", "two arguments", "broadcast", "sin cos", "square", "power", "division", "negative", "sum over an axis", "mean", "max", "prod", "sort", "dot", "matmul",
    "einsum", "reshape", "transpose", "expand_dims", "broadcast_to", "concatenate", "index", "slice", "reversed", "index array", "add at", "where", "clip",
    "maximum", "stop_gradient", "closed-over array", "selu", "relu", "sigmoid", "lax integer_pow", "jit", "jit twice", "custom_jvp", "one more use",
]  # fmt: skip


def text(m, f, args, **options):
    return str(m.make_jaxpr(functools.partial(f, m), **options)(*args))


def same_text(f, args):
    """Equal after `normal`, and equal to the letter, line breaks too, where jax's has nothing that phlox leaves out."""
    mine, theirs = text(phlox, f, args), text(jax, f, args)
    assert normal(mine) == normal(theirs)
    if not any(re.search(parameter, mine + theirs) for parameter in [*DROPPED, "np.int64", "preferred_element_type"]):
        assert mine == theirs


@pytest.mark.parametrize("name", FUNCTIONS)
def test_program(name):
    f, *args = FUNCTIONS[name]
    same_text(f, args)


def test_shardings_that_nobody_gave_are_printed():
    for f in (
        lambda m, x: m.numpy.sum(x, 0),
        lambda m, x: x.reshape(-1) + m.numpy.arange(6),
        lambda m, x: m.lax.conv(x[None, None], x[None, None], (1, 1), "SAME"),
    ):
        assert text(phlox, f, [M]) == text(jax, f, [M])


@pytest.mark.parametrize("name", ["add", "selu", "mean", "jit twice", "matmul", "two results", "int add"])
def test_program_under_jit(name):
    f, *args = FUNCTIONS[name]
    same_text(lambda m, *xs: m.jit(functools.partial(f, m))(*xs), args)


@pytest.mark.parametrize("name", GRADIENTS)
def test_program_of_gradient(name):
    f, *args = FUNCTIONS[name]
    same_text(lambda m, *xs: m.grad(lambda *ys: f(m, *ys).sum())(*xs), args)


@pytest.mark.parametrize("name", JVPS)
def test_program_of_jvp(name):
    f, *args = FUNCTIONS[name]
    same_text(lambda m, x, *xs: m.jvp(lambda y: f(m, y, *xs), (x,), (x,)), args)


@pytest.mark.parametrize("name", BATCHES)
def test_program_of_vmap(name):
    f, *args = FUNCTIONS[name]
    stacked = [np.stack([x, x]) if isinstance(x, np.ndarray) else x for x in args]
    axes = tuple(0 if isinstance(x, np.ndarray) else None for x in args)
    same_text(lambda m, *xs: m.vmap(functools.partial(f, m), axes)(*xs), stacked)


# --- the parts of a program


def test_parts_of_a_program():
    for m in (phlox, jax):
        closed = m.make_jaxpr(lambda x: (m.numpy.sin(x) + V, 2 * x))(V)
        assert [str(a) for a in closed.in_avals] == ["float32[3]"]
        assert [str(a) for a in closed.out_avals] == ["float32[3]", "float32[3]"]
        assert [e.primitive.name for e in closed.jaxpr.eqns] == ["sin", "add", "mul"]
        assert len(closed.jaxpr.invars) == 1 and len(closed.jaxpr.outvars) == 2
        assert len(closed.consts) == len(closed.jaxpr.constvars)
        assert closed.eqns == closed.jaxpr.eqns
        assert closed.jaxpr.eqns[0].params.keys() <= {"accuracy"}
        assert closed.jaxpr.effects == set()
        assert str(closed) == repr(closed)
        assert str(closed.jaxpr.invars[0].aval) == "float32[3]"


def test_a_closed_program_has_the_parts_of_its_program():
    for m in (phlox, jax):
        closed = m.make_jaxpr(lambda x, m=m: m.numpy.sin(x) + V)(1.0)
        assert (closed.invars, closed.outvars, closed.constvars) == (
            closed.jaxpr.invars,
            closed.jaxpr.outvars,
            closed.jaxpr.constvars,
        )
        assert [str(a) for a in closed.jaxpr.in_avals] == [str(a) for a in closed.in_avals]
        assert [str(a) for a in closed.jaxpr.out_avals] == [str(a) for a in closed.out_avals]


def test_arguments_of_make_jaxpr():
    for m in (phlox, jax):
        program, shape = m.make_jaxpr(lambda x: {"a": x * 2}, return_shape=True)(V)
        assert shape["a"].shape == (3,) and shape["a"].dtype == np.float32
        static = m.make_jaxpr(lambda x, n: x**n, static_argnums=1)(V, 3)
        assert "integer_pow[y=3]" in str(static)
        with_axis = m.make_jaxpr(lambda x: m.lax.psum(x, "i"), axis_env=[("i", 4)])(V)
        assert "psum" in str(with_axis)
        struct = m.make_jaxpr(lambda x: x + 1)(m.ShapeDtypeStruct((2,), "float32"))
        assert "f32[2]" in str(struct)
        assert str(m.make_jaxpr(lambda x, *, k: x * k)(V, k=2.0)).count("lambda") == 1
        assert program.in_avals == program.in_avals


def test_precisions_are_printed_with_their_class():
    for m in (phlox, jax):
        assert (repr(m.lax.Precision.HIGH), str(m.lax.Precision.HIGH)) == ("Precision.HIGH", "HIGH")
        program = m.make_jaxpr(lambda x: m.numpy.dot(x, x, precision=("high", "highest")))(np.ones((2, 2)))
        assert "precision=(Precision.HIGH, Precision.HIGHEST)" in str(program)
        names = (
            "default",
            "fastest",
            "high",
            "bfloat16_3x",
            "tensorfloat32",
            "highest",
            "float32",
            "bfloat16",
            None,
            1,
        )
        assert "".join(str(m.lax.Precision(name).value) for name in names) == "001112200" + "1"
        with pytest.raises(ValueError, match="is not a valid Precision"):
            m.lax.Precision("F32_F32_F32")
