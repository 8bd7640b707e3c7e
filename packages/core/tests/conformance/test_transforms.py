"""jit, grad and all their relatives: what they take, what they return, and how they compose."""

import functools

import jax
import jax.interpreters.batching
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row
from phlox._api.batching import mappable

NEAR = row("transforms", tolerance=2e-5)


def both(case, *args, jit=True, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            NEAR,
            what + " under jit",
        )


def data(shape=(3,), *seed, dtype="float32"):
    return judge.array(judge.rng("transforms", shape, *seed), shape, dtype)


#: Functions of a vector, with all kinds of operations in them.
VECTORS = {
    "sin": lambda m, x: m.numpy.sin(x),
    "product": lambda m, x: x * x[::-1] + x[0],
    "sorted": lambda m, x: m.numpy.sort(x) * m.numpy.arange(3.0),
    "softmax": lambda m, x: m.nn.softmax(x),
    "normalised": lambda m, x: x / m.numpy.linalg.norm(x),
    "indexed": lambda m, x: x.at[1].multiply(x[2])[m.numpy.array([2, 1, 1])],
    "matrix": lambda m, x: m.numpy.outer(x, x) @ m.numpy.tanh(x),
    "scan": lambda m, x: m.numpy.cumsum(m.numpy.exp(x)),
    "loop": lambda m, x: functools.reduce(lambda y, _: m.numpy.sin(y) + x, range(3), x),
    "choice": lambda m, x: m.numpy.where(x > 0, m.numpy.log(abs(x) + 1), x**2),
    "inner jit": lambda m, x: m.jit(lambda y: m.numpy.cos(y) * 2)(x) + x,
    "linear": lambda m, x: 3 * x - x.sum(),
    "constant": lambda m, x: m.numpy.ones(3) * 2,
    "selu": lambda m, x: m.nn.selu(x),
    "fixed": lambda m, x: m.lax.stop_gradient(x) * x,
    "through a dict": lambda m, x: m.numpy.stack(list({"a": x[0], "b": x.sum(), "c": x.max()}.values())),
}
vectors = pytest.mark.parametrize("name", VECTORS)


@vectors
def test_forward_and_reverse(name):
    f = lambda m: functools.partial(VECTORS[name], m)
    x, t = data(), data((3,), "t")
    both(lambda m, x, t: m.jvp(f(m), (x,), (t,)), x, t, what="jvp")
    both(lambda m, x, t: m.vjp(f(m), x)[1](t), x, t, what="vjp")
    both(lambda m, x, t: m.linearize(f(m), x)[1](t), x, t, what="linearize")
    both(lambda m, x: m.jacfwd(f(m))(x), x, what="jacfwd")
    both(lambda m, x: m.jacrev(f(m))(x), x, what="jacrev")
    both(lambda m, x: m.grad(lambda x: (f(m)(x) * np.arange(1.0, 4.0, dtype=np.float32)).sum())(x), x, what="grad")


@vectors
def test_second_order(name):
    f = lambda m: lambda x: (VECTORS[name](m, x) ** 2).sum()
    x, t = data(), data((3,), "t")
    both(lambda m, x: m.hessian(f(m))(x), x, what="hessian")
    both(lambda m, x: m.jacrev(m.jacfwd(f(m)))(x), x, what="reverse over forward", jit=False)
    both(lambda m, x: m.jacrev(m.grad(f(m)))(x), x, what="reverse over reverse", jit=False)
    both(lambda m, x, t: m.jvp(m.grad(f(m)), (x,), (t,)), x, t, what="forward over reverse")
    both(lambda m, x, t: m.jvp(lambda x: m.jvp(f(m), (x,), (t,))[1], (x,), (t,)), x, t, what="forward over forward")


@vectors
def test_batches(name):
    f = lambda m: functools.partial(VECTORS[name], m)
    total = lambda m: lambda x: (f(m)(x) ** 2).sum()
    x, t = data((2, 3)), data((2, 3), "t")
    both(lambda m, x: m.vmap(f(m))(x), x, what="vmap")
    both(lambda m, x: m.vmap(m.grad(total(m)))(x), x, what="vmap of grad")
    both(lambda m, x: m.grad(lambda x: m.vmap(total(m))(x).sum())(x), x, what="grad of vmap")
    both(lambda m, x: m.vmap(m.jacfwd(f(m)), 1, -1)(x), x.T, what="vmap of jacfwd over columns", jit=False)
    both(lambda m, x, t: m.vmap(lambda x, t: m.jvp(f(m), (x,), (t,))[1])(x, t), x, t, what="vmap of jvp", jit=False)
    both(lambda m, x: m.vmap(m.vmap(f(m)))(x), x[None], what="vmap of vmap", jit=False)


# --- grad

TREE = {"w": data((2, 3), "w"), "b": [data((3,), "b"), np.float32(0.5)]}
predict = lambda m, p, x: m.numpy.tanh(x @ p["w"] + p["b"][0]) * p["b"][1]
loss = lambda m, p, x: (predict(m, p, x) ** 2).mean()
INPUT = data((4, 2), "input")


def test_arguments_of_grad():
    both(lambda m, p, x: m.grad(functools.partial(loss, m))(p, x), TREE, INPUT)
    both(lambda m, p, x: m.value_and_grad(functools.partial(loss, m))(p, x), TREE, INPUT)
    both(lambda m, p, x: m.grad(functools.partial(loss, m), argnums=1)(p, x), TREE, INPUT)
    both(lambda m, p, x: m.grad(functools.partial(loss, m), argnums=(0, 1))(p, x), TREE, INPUT)
    both(lambda m, p, x: m.grad(functools.partial(loss, m), argnums=[1, 0])(p, x), TREE, INPUT)
    both(lambda m, p, x: m.grad(functools.partial(loss, m), argnums=-1)(p, x), TREE, INPUT)
    both(lambda m, p, x: m.value_and_grad(functools.partial(loss, m), (1,))(p, x), TREE, INPUT)
    both(lambda m, p, x: m.grad(lambda p, *, x: loss(m, p, x))(p, x=x), TREE, INPUT)
    both(lambda m, x: m.grad(lambda x, n=2: (x**n).sum())(x), data())
    both(lambda m, x: m.grad(lambda x, n=2: (x**n).sum())(x, n=3), data())


def test_auxiliary_results():
    with_aux = lambda m: lambda p, x: (loss(m, p, x), {"out": predict(m, p, x), "n": None})
    both(lambda m, p, x: m.grad(with_aux(m), has_aux=True)(p, x), TREE, INPUT)
    both(lambda m, p, x: m.value_and_grad(with_aux(m), has_aux=True)(p, x), TREE, INPUT)
    f = lambda m: lambda x: (m.numpy.sin(x), {"double": 2 * x})
    both(lambda m, x: m.jvp(f(m), (x,), (x,), has_aux=True), data())
    both(lambda m, x: [m.vjp(f(m), x, has_aux=True)[i] for i in (0, 2)], data())
    both(lambda m, x: m.vjp(f(m), x, has_aux=True)[1](x), data())
    both(lambda m, x: m.jacfwd(f(m), has_aux=True)(x), data())
    both(lambda m, x: m.jacrev(f(m), has_aux=True)(x), data())
    for transform in ("jacfwd", "jacrev", "grad"):  # a list counts as a pair
        both(lambda m, x, t=transform: getattr(m, t)(lambda x: [(x**2).sum(), x], has_aux=True)(x), data())
    both(lambda m, x: m.hessian(lambda x: ((x**3).sum(), x), has_aux=True)(x), data())
    both(lambda m, x: m.linearize(f(m), x, has_aux=True)[1](x), data())


def test_jacobians_of_trees():
    f = lambda m: lambda p, x: {"y": p["w"] @ x, "z": [x.sum() * p["b"][1]]}
    x = data((3,))
    both(lambda m, p, x: m.jacfwd(f(m))(p, x), TREE, x)
    both(lambda m, p, x: m.jacrev(f(m))(p, x), TREE, x)
    both(lambda m, p, x: m.jacfwd(f(m), argnums=(0, 1))(p, x), TREE, x)
    both(lambda m, p, x: m.jacrev(f(m), argnums=1)(p, x), TREE, x)
    both(lambda m, p, x: m.hessian(functools.partial(loss, m))(p, x), TREE, INPUT)
    both(lambda m, x: m.jacfwd(lambda x: x * 2)(x), np.float32(3))
    both(lambda m, x: m.jacobian(lambda x: x**2)(x), x)


def test_complex_numbers():
    z = data((3,), dtype="complex64")
    both(lambda m, z: m.grad(lambda z: m.numpy.abs(z).sum())(z), z)
    both(lambda m, z: m.grad(lambda z: (z * m.numpy.conj(z)).real.sum())(z), z)
    both(lambda m, z: m.grad(lambda z: m.numpy.sin(z).sum(), holomorphic=True)(z), z)
    both(lambda m, z: m.jacfwd(lambda z: m.numpy.exp(z), holomorphic=True)(z), z)
    both(lambda m, z: m.jacrev(lambda z: m.numpy.exp(z), holomorphic=True)(z), z)
    both(lambda m, z: m.jvp(lambda z: z**2, (z,), (z,)), z)
    both(lambda m, z: m.vjp(lambda z: z**2, z)[1](z), z)
    both(lambda m, z: m.grad(lambda z: m.numpy.sin(z).sum())(z), z, jit=False)
    both(lambda m, x: m.grad(lambda x: m.numpy.sin(x).sum(), holomorphic=True)(x), data(), jit=False)


def test_integers():
    x = np.arange(3)
    both(lambda m, x: m.grad(lambda x: (x * 1.5).sum(), allow_int=True)(x).dtype.name, x, jit=False)
    both(lambda m, x: m.grad(lambda x: (x * 1.5).sum())(x), x, jit=False)
    both(lambda m, x: m.grad(lambda x, y: (x * y).sum(), argnums=(0, 1), allow_int=True)(2.0, x)[0], x)
    both(lambda m, x: m.jacrev(lambda x: x * 1.5)(x), x, jit=False)
    both(lambda m, x: m.jacrev(lambda x: x * 1.5, allow_int=True)(x), x)
    both(lambda m, x: m.jacfwd(lambda x: m.numpy.arange(2))(x), data())
    # Of 32 bits: NumPy's integers are not differentiated, reach the function as they are, and jax returns its int64.
    both(lambda m, x: m.jvp(lambda x: x * 2, (np.int32(x),), (np.zeros(3, m.dtypes.float0),))[0], x, jit=False)
    both(lambda m, x: m.jvp(lambda x: x * 2, (x,), (x,)), x, jit=False)
    both(lambda m, x: m.vjp(lambda x: x * 2.0, x)[1](np.ones(3, np.float32))[0].dtype.name, x, jit=False)
    both(lambda m, x: m.vjp(lambda x, i: x[i] * 2.0, data(), x)[1](np.ones(3, np.float32))[0], x)


WRONG = [
    lambda m: m.grad(lambda x: x)(np.ones(3)),
    lambda m: m.grad(lambda x: x)(1),
    lambda m: m.grad(lambda x: 1)(1.0),
    lambda m: m.grad(lambda x: (x, x))(1.0),
    lambda m: m.grad(lambda x: x, argnums=1)(1.0),
    lambda m: m.grad(lambda x: x, argnums=(0, 2))(1.0),
    lambda m: m.grad(lambda x: x, argnums="x")(1.0),
    lambda m: m.grad(lambda x: x, argnums=(0, 0))(1.0),
    lambda m: m.grad(lambda x: x)("a"),
    lambda m: m.grad(lambda x: x > 0)(1.0),
    lambda m: m.grad(lambda x: None)(1.0),
    lambda m: m.grad(lambda x: x, has_aux=True)(1.0),
    lambda m: m.grad(lambda x: [x])(1.0),
    lambda m: m.grad(3),
    lambda m: m.jit(3),
    lambda m: m.vmap(3),
    lambda m: m.jvp(lambda x: x, (1.0,), (1.0, 2.0)),
    lambda m: m.jvp(lambda x: x, 1.0, 1.0),
    lambda m: m.jvp(lambda x: x, (1.0,), (1,)),
    lambda m: m.jvp(lambda x: x, (np.ones(2),), (np.ones(3),)),
    lambda m: m.jvp(lambda x: x, [1.0], (1.0,)),
    lambda m: m.vjp(lambda x: x, 1.0)[1](np.ones(3, np.float32)),
    lambda m: m.vjp(lambda x: x, 1.0)[1]((1.0,)),
    lambda m: m.vjp(lambda x: (x, x), 1.0)[1]([1.0, 1.0]),
    lambda m: m.vjp(lambda x: {"a": x}, 1.0)[1]({"b": 1.0}),
    lambda m: m.vjp(lambda x: x, 1.0)[1](1),
    lambda m: m.linearize(lambda x: x, 1.0)[1](1.0, 2.0),
    lambda m: m.linearize(lambda x: x, 1.0)[1](np.ones(3, np.float32)),
    lambda m: m.vmap(lambda x: x)(1.0),
    lambda m: m.vmap(lambda x, y: x)(np.ones(2), np.ones(3)),
    lambda m: m.vmap(lambda x: x, in_axes=1)(np.ones(3)),
    lambda m: m.vmap(lambda x: x, in_axes=(0, 0))(np.ones(3)),
    lambda m: m.vmap(lambda x: x, in_axes=None)(np.ones(3)),
    lambda m: m.vmap(lambda x: x, in_axes="a")(np.ones(3)),
    lambda m: m.vmap(lambda x: x, in_axes=({"a": 0},))({"b": np.ones(3)}),
    lambda m: m.vmap(lambda x: x, out_axes=None)(np.ones(3)),
    lambda m: m.vmap(lambda x: x, out_axes=(0, 0))(np.ones(3)),
    lambda m: m.vmap(lambda x: x, out_axes=2)(np.ones(3)),
    lambda m: m.vmap(lambda x: x, axis_size=4)(np.ones(3)),
    lambda m: m.vmap(lambda x: "a")(np.ones(3)),
    lambda m: m.vmap(lambda x: bool(x[0] > 0))(np.ones((3, 2))),
    lambda m: m.vmap(lambda: 1)(),
    lambda m: m.jit(lambda x: "a")(1.0),
    lambda m: m.jit(lambda x: x)("a"),
    lambda m: m.jit(lambda x: x, static_argnums=0)([1, 2]),
    lambda m: m.jit(lambda x: x, static_argnums=3)(1.0),
    lambda m: m.jit(lambda x: x, static_argnames="y")(1.0),
    lambda m: m.jit(lambda x: bool(x))(1.0),
    lambda m: m.jit(lambda x: int(x))(1.0),
    lambda m: m.jit(lambda x: float(x))(1.0),
    lambda m: m.jit(lambda x: range(x))(3),
    lambda m: m.jit(lambda x: np.sin(x))(1.0),
    lambda m: m.jit(lambda x: [1, 2][x])(1),
    lambda m: m.jit(lambda x: x.item())(1),
    lambda m: m.jit(lambda x: m.numpy.zeros(x))(1),
    lambda m: m.jit(lambda x: m.numpy.arange(x))(1),
    lambda m: m.jit(lambda x: x.reshape(x[0]))(np.ones(2, int)),
    lambda m: m.jit(lambda x: {x: 1})(1.0),
    lambda m: m.jit(lambda x: list(x))(1.0),
    lambda m: m.jit(lambda x, y: x)(1.0),
    lambda m: m.jit(lambda x: x, donate_argnums=0)(1.0, 2.0),
    lambda m: m.jit(lambda x: x, backend="nonsense")(1.0),
    lambda m: m.hessian(lambda x: x)(1),
    lambda m: m.jacfwd(lambda x: x)(1),
    lambda m: m.jacrev(lambda x: x)(1),
    lambda m: m.eval_shape(lambda x: x, "a"),
    lambda m: m.make_jaxpr(lambda x: "a")(1.0),
    lambda m: m.eval_shape(3, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("position", range(len(WRONG)))
def test_wrong_use(position):
    both(WRONG[position], jit=False)


# --- vjp and linearize as objects


def test_the_function_that_vjp_returns():
    f = lambda m: lambda x, y: {"sum": x + y, "product": x * y}
    x, y = data(), data((3,), "y")
    pull = lambda m, x, y: m.vjp(f(m), x, y)[1]({"sum": x, "product": y})
    both(pull, x, y)
    both(lambda m, x, y: m.vmap(m.vjp(lambda x: x * y, x)[1])(np.eye(3, dtype=np.float32)), x, y)
    both(lambda m, x, y: m.vjp(lambda: 3.0)[1](1.0), x, y)
    both(lambda m, x, y: m.vjp(lambda x: (), x)[1](()), x, y)
    both(lambda m, x, y: m.vjp(lambda p: loss(m, p, INPUT), TREE)[1](1.0), x, y)
    both(lambda m, x, y: m.tree.map(lambda v: v + 0, m.jit(lambda x: m.vjp(m.numpy.sin, x))(x))[1](y), x, y, jit=False)
    both(lambda m, x, y: m.grad(lambda x: m.vjp(m.numpy.sin, x)[1](y)[0].sum())(x), x, y)
    both(lambda m, x, y: [m.linearize(m.numpy.sin, x)[0], m.linearize(m.numpy.sin, x)[1](y)], x, y)
    both(
        lambda m, x, y: m.vmap(m.linearize(lambda a, b: a * b, x, y)[1], (0, None))(np.eye(3, dtype=np.float32), y),
        x,
        y,
    )


def test_jit_of_many_kinds_of_functions():
    class Callable:
        def __call__(self, x):
            return x * 2

        def method(self, x):
            return x + 1

    x = data()
    both(lambda m, x: m.jit(Callable())(x), x, jit=False)
    both(lambda m, x: m.jit(Callable().method)(x), x, jit=False)
    both(lambda m, x: m.jit(functools.partial(lambda y, x: x * y, 3))(x), x, jit=False)
    both(lambda m, x: m.jit(m.jit(m.grad(lambda x: (x**2).sum())))(x), x, jit=False)
    both(lambda m, x: m.jit(lambda *args, **kw: (args, kw))(x, 2, a=[x], b={"c": None}), x, jit=False)
    both(lambda m, x: m.jit(lambda: m.numpy.ones(2))(), x, jit=False)
    both(lambda m, x: m.jit(lambda x: None)(x), x, jit=False)
    both(lambda m, x: m.jit(lambda x: (x, x, 1, 2.5, True))(x), x, jit=False)
    both(lambda m, x: m.jit(lambda x, flag: x if flag else -x, static_argnums=1)(x, False), x, jit=False)
    both(lambda m, x: m.jit(lambda x, flag: x if flag else -x, static_argnums=-1)(x, True), x, jit=False)
    both(
        lambda m, x: m.jit(lambda x, flag=True: x if flag else -x, static_argnames="flag")(x, flag=False), x, jit=False
    )
    both(lambda m, x: m.jit(lambda x, flag=True: x if flag else -x, static_argnames=("flag",))(x), x, jit=False)
    both(lambda m, x: m.jit(lambda x, n: x * n, static_argnums=(1,))(x, n=3), x, jit=False)
    both(lambda m, x: m.jit(lambda x, y: x, keep_unused=True)(x, x), x, jit=False)
    both(lambda m, x: m.jit(lambda x: x + 1, inline=True)(x), x)
    both(lambda m, x: m.jit(static_argnums=1)(lambda x, n: x**n)(x, 2), x, jit=False)
    with_device = lambda m, x: m.jit(lambda x: x + 1, device=m.devices()[2])(x)
    both(with_device, x, jit=False)


def test_in_axes_and_out_axes():
    x, y = data((3, 4)), data((4, 3), "y")
    both(lambda m, x, y: m.vmap(lambda x, y: x @ y, (0, 1))(x, y), x, y)
    both(lambda m, x, y: m.vmap(lambda x, y: x @ y, (0, None))(x, y), x, y)
    both(lambda m, x, y: m.vmap(lambda x, y: x @ y, (None, -1), -1)(x, y), x, y)
    both(lambda m, x, y: m.vmap(lambda d: d["x"] @ d["y"], ({"x": 0, "y": 1},))({"x": x, "y": y}), x, y)
    both(lambda m, x, y: m.vmap(lambda p: p[0] + p[1].sum(), ((0, None),))((x, y)), x, y)
    both(lambda m, x, y: m.vmap(lambda x: {"a": x, "b": (x.sum(), x[0])}, out_axes={"a": 1, "b": (0, None)})(x), x, y)
    both(lambda m, x, y: m.vmap(lambda x, y: (x, y), (0, None), (0, None))(x, y), x, y)
    both(lambda m, x, y: m.vmap(lambda x, *, k: x * k)(x, k=np.arange(3.0, dtype=np.float32)), x, y)
    both(lambda m, x, y: m.vmap(lambda: m.numpy.ones(2), axis_size=3)(), x, y)
    both(lambda m, x, y: m.vmap(lambda x, n: x, (0, None))(x, None), x, y)
    both(lambda m, x, y: m.vmap(lambda x: x, 0, None)(np.ones((1, 2))), x, y, jit=False)
    both(lambda m, x, y: m.vmap(m.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x[0], y[0]), x, y)
    both(lambda m, x, y: m.vmap(lambda k: m.random.normal(k, (2,)))(m.random.split(m.random.key(0), 3)), x, y)


def test_eval_shape():
    types = lambda m, tree: m.tree.map(lambda s: (s.shape, str(s.dtype), bool(getattr(s, "weak_type", False))), tree)
    both(lambda m: types(m, m.eval_shape(functools.partial(loss, m), TREE, INPUT)), jit=False)
    both(lambda m: types(m, m.eval_shape(lambda x: [x * 2, x > 1, 3.0], 1)), jit=False)
    both(lambda m: types(m, m.eval_shape(lambda x: x @ x.T, m.ShapeDtypeStruct((2, 3), "float16"))), jit=False)
    both(lambda m: types(m, m.eval_shape(m.jit(lambda x, *, k: x[1:] * k), np.ones(3, np.float32), k=1)), jit=False)
    for m in (phlox, jax):
        s = m.ShapeDtypeStruct((2, 3), m.numpy.float32)
        assert (s.shape, s.dtype, s.ndim, s.size, len(s)) == ((2, 3), np.float32, 2, 6, 2)
        assert s == m.ShapeDtypeStruct((2, 3), "float32") and hash(s) == hash(m.ShapeDtypeStruct((2, 3), "float32"))
        assert repr(s) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"


def test_values_that_are_not_arrays_pass_through_vectorize():
    x, y = data((2, 1, 3)), data((4, 3), "y")
    both(lambda m, x, y: m.numpy.vectorize(lambda a, b: a * b + 1)(x, y), x, y)
    both(lambda m, x, y: m.numpy.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, y), x, y)
    both(lambda m, x, y: m.numpy.vectorize(lambda a, b: m.numpy.outer(a, b), signature="(n),(k)->(n,k)")(x, y), x, y)
    both(lambda m, x, y: m.numpy.vectorize(lambda a, n: a**n, excluded={1})(x, 2), x, y, jit=False)
    both(lambda m, x, y: m.numpy.vectorize(lambda a: (a, a.sum()), signature="(n)->(n),()")(x), x, y)
    both(lambda m, x, y: m.numpy.vectorize(lambda a, b: a @ b, signature="(n),(n)->()")(x, y[:, :2]), x, y, jit=False)
    both(lambda m, x, y: m.numpy.vectorize(lambda a: a, signature="nonsense")(x), x, y, jit=False)
    both(lambda m, x, y: m.numpy.vectorize(lambda a: a, signature="(n)->(n)")(1.0), x, y, jit=False)


def test_linearize_beside_integers():
    """The tangents of integers are of float0, and are no arguments of the linear program."""

    def run(m):
        f = lambda x, n, b: (x * n + b, n)
        out, push = m.linearize(f, np.ones(3, np.float32), np.arange(3, dtype=np.int32), np.ones(3, bool))
        none = np.zeros(3, m.dtypes.float0)
        return out, push(np.full(3, 2.0, np.float32), none, none)

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), row("linearize"), "linearize", weak=False)


def test_cotangents_of_integers_may_be_any_array():
    def pull(m, ct, jitted=False):
        _, pullback = m.vjp(lambda x, n: (x * n, n + 1), np.ones(3, np.float32), np.arange(3, dtype=np.int32))
        pull = (
            (lambda ct: m.jit(lambda ct: pullback((np.ones(3, np.float32), ct)))(ct))
            if jitted
            else (lambda ct: pullback((np.ones(3, np.float32), ct)))
        )
        return pull(ct)

    for ct in (
        np.arange(3, dtype=np.int32),
        np.ones(3, bool),
        np.ones(3, np.float32),
        np.zeros(3, phlox.dtypes.float0),
    ):
        for jitted in (False, True):
            agree(outcome(pull, phlox, (ct, jitted)), outcome(pull, jax, (ct, jitted)), NEAR, "", weak=False)
    agree(outcome(pull, phlox, (np.ones(2, np.float32),)), outcome(pull, jax, (np.ones(2, np.float32),)), NEAR, "")

    def in_a_loop(m):
        step = lambda c, x: ((c[0] * x, c[1] + 1), c[1])
        f = lambda c, x: m.lax.scan(step, c, x)
        out, pullback = m.vjp(f, (np.float32(1), np.int32(0)), data())
        return pullback(out)

    agree(outcome(in_a_loop, phlox, ()), outcome(in_a_loop, jax, ()), NEAR, "", weak=False)


@pytest.mark.parametrize(
    "name",
    [
        "z == z",
        "z < z",
        "z + z",
        "z * 2.0",
        "m.numpy.equal(z, z)",
        "m.lax.eq(z, z)",
        "m.numpy.sin(z)",
        "m.numpy.floor(z)",
    ],
)
def test_float0_has_no_operations(name):
    zeros = np.zeros(3, phlox.dtypes.float0)
    for m in (phlox, jax):
        with pytest.raises(TypeError, match="float0s do not support any operations by design"):
            m.jit(lambda z, m=m: eval(name))(zeros)


class Named:
    """An array with names of its axes, which asks for the rank of what it is made of."""

    def __init__(self, names, data):
        assert len(names) == data.ndim
        self.names, self.data = tuple(names), data


class Along:
    """The axis of a `Named` that vmap maps."""

    def __init__(self, name, axis):
        self.name, self.axis = name, axis


for _m in (phlox, jax):
    _m.tree_util.register_pytree_node(Named, lambda x: ((x.data,), x.names), lambda names, xs: Named(names, xs[0]))


def one_named(one, index, x, along):
    assert x.names[along.axis] == along.name
    return Named(x.names[: along.axis] + x.names[along.axis + 1 :], one(x.data, along.axis))


def all_named(all_, size, x, along):
    names = list(x.names)
    names.insert(along.axis, along.name)
    return Named(names, all_(size, x.data, along.axis))


def ref_of_each_example(m, x):
    ref = m.new_ref(x)

    def scale(ref, factor):
        ref[...] = ref[...] * factor
        return ref[...] + 1

    return m.vmap(scale)(ref, m.numpy.arange(3.0)), ref[...]


@pytest.mark.parametrize("jitted", [False, True])
def test_containers_that_say_what_one_example_is(jitted):
    def run(m):
        registry = jax.interpreters.batching if m is jax else mappable
        registry.register_vmappable(Named, Along, int, one_named, all_named, None)
        f = lambda x, y: Named(x.names, x.data * x.data + y)
        f = m.jit(f) if jitted else f
        mapped = m.vmap(f, (Along("i", 0), 0), Along("i", 1), axis_size=3)
        out = mapped(Named(("i", "j"), m.numpy.arange(12.0).reshape(3, 4)), np.arange(3, dtype=np.float32))
        return out.data, [m.numpy.asarray(name == "i") for name in out.names]

    try:
        agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "")
        both(lambda m: m.vmap(lambda x: (x, -x), (0,), (-1, 0))(np.ones((3, 2), np.float32)))  # others are as ever
        both(lambda m: m.vmap(lambda x: x, in_axes=True)(np.ones(3)), jit=False)
        both(lambda m, x: m.vmap(lambda x, f: f(x), (0, None))(x, m.numpy.sin), data((3,)))
        both(lambda m, x: m.vmap(lambda x, name: x * len(name), (0, None))(x, "name"), data((3,)))
        both(ref_of_each_example, data((3,)))
    finally:
        mappable.unregister_vmappable(Named)
        jax._src.interpreters.batching.vmappables.pop(Named, None)
    assert phlox.vmap(lambda x: x)(np.ones(3)).shape == (3,)


def test_containers_whose_examples_are_arrays():
    class Stored:
        def __init__(self, data):
            self.data = data

    numbered = lambda one, index, x, axis: one(x.data + 1, axis)
    mappable.register_vmappable(Stored, int, int, numbered, lambda all_, size, x, axis: None, None)
    try:
        run = lambda: phlox.vmap(lambda x: x - 1)(Stored(phlox.numpy.arange(3.0)))
        with pytest.raises(ValueError, match="axis_size"):  # nobody knows how many there are
            run()
        run = lambda: phlox.vmap(lambda x: x - 1, axis_size=3)(Stored(phlox.numpy.arange(3.0)))
        np.testing.assert_array_equal(phlox.jit(run)(), [0, 1, 2])
    finally:
        mappable.unregister_vmappable(Stored)
    with pytest.raises(TypeError, match="axis_size of type float"):
        mappable.register_vmappable(Stored, int, float, numbered, numbered, None)


def test_containers_that_ask_their_leaves_go_through_jit():
    def run(m):
        f = m.jit(lambda tree: {"b": Named(tree["b"].names, -tree["b"].data), "a": tree["a"]})
        for _ in range(3):
            out = f({"b": Named(("i", "j"), m.numpy.ones((2, 3))), "a": (1.0, {"d": 2.0, "c": 3.0})})
        return out["b"].data, out["a"]

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "")


def test_dynamic_slices_of_scalars_are_mapped():
    x = data((4,))
    both(lambda m, x: m.vmap(lambda x: m.lax.dynamic_slice(x, [], []))(x), x)
    both(lambda m, x: m.vmap(lambda x: m.lax.dynamic_update_slice(x, np.float32(7), []))(x), x)
    both(lambda m, x: m.vmap(lambda y: m.lax.dynamic_update_slice(np.float32(7), y, []))(x), x)


def test_words_of_axes_out_of_bounds():
    for m in (phlox, jax):
        rank = r"along axis -4, which implies that its rank should be at least 4, but is only 3 \(its shape is \(3, 4, 5\)\)"
        with pytest.raises(ValueError, match=rank):
            m.vmap(m.numpy.sum, in_axes=-4)(np.ones((3, 4, 5)))
        for shape, axis in (((3, 4, 5), -4), ((5,), -2)):
            with pytest.raises(ValueError, match=f"axis {axis} is out of bounds"):
                m.vmap(lambda x: x, out_axes=axis)(np.ones(shape))
