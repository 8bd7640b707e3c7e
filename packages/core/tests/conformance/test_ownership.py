"""What is returned belongs to the caller: it may be deleted or donated, and nothing else changes by that.

Every function of the tables is called with phlox's arrays and with Python numbers, its results are deleted, and the same
call is made again. Then the transformations, and functions of users that they call.
"""

import struct

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from conformance.harness import case_of, inputs
from conformance.test_coverage import TABLES
from phlox import lax

CALLS = {
    f"{row.path}({call})": (row, call)
    for module in TABLES
    for row in module.TABLE
    for call in row.calls[:2]
    if not row.path.startswith(("random.seed",))
}


def arrays(tree):
    return [x for x in phlox.tree.leaves(tree) if isinstance(x, phlox.Array)]


def bits(x):
    if isinstance(x, phlox.Array) and jnp.issubdtype(x.dtype, phlox.dtypes.prng_key):
        x = phlox.random.key_data(x)
    x = np.asarray(x)
    return x.dtype, x.shape, x.tobytes()


def check(run, args):
    """Calls twice, deletes what came out the first time, and compares; arguments must be alive afterwards."""
    try:
        first = arrays(run(*args))
    except Exception:
        return  # refused: other tests compare how
    before = [bits(x) for x in first]
    given = arrays(args)
    buffers = {id(x._buf) for x in given}
    for x in first:
        if id(x._buf) not in buffers:  # an argument that is passed on, as in jax
            x.delete()
    for x in given:
        assert not x.is_deleted(), "a result shared memory with an argument, and was not it"
    assert [bits(x) for x in arrays(run(*args))] == before


def number(x):
    """A Python number of the same value, if `x` has no axes."""
    return x.item() if np.shape(x) == () and hasattr(x, "item") and np.asarray(x).dtype.kind in "biufc" else x


@pytest.mark.parametrize("name", CALLS)
def test_results_of_functions(name):
    row, call = CALLS[name]
    case = case_of(row, call)
    args = inputs(row, call, row.dtypes[0] if "float32" not in row.dtypes else "float32")
    check(lambda *xs: case(phlox, *xs), [jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in args])
    if any(number(x) is not x for x in args):
        check(lambda *xs: case(phlox, *xs), [number(x) for x in args])


@phlox.custom_jvp
def with_jvp(x):
    return x


with_jvp.defjvp(lambda primals, tangents: (primals[0], tangents[0]))


@phlox.custom_vjp
def with_vjp(x):
    return x


with_vjp.defvjp(lambda x: (x, x), lambda residual, ct: (residual,))


def with_jit_disabled(fun, *args):
    with phlox.disable_jit():
        return fun(*args)


IDENTITY = lambda x: x
TRANSFORMED = {
    "jit": lambda x: phlox.jit(IDENTITY)(x),
    "jit, keywords": lambda x: phlox.jit(IDENTITY)(x=x),
    "jit of a constant": lambda x: phlox.jit(lambda: x)(),
    "jit inline": lambda x: phlox.jit(IDENTITY, inline=True)(x),
    "jit, disabled": lambda x: with_jit_disabled(phlox.jit(IDENTITY), x),
    "jit of jit inline": lambda x: phlox.jit(lambda: phlox.jit(IDENTITY, inline=True)(x))(),
    "vjp": lambda x: phlox.vjp(IDENTITY, x)[0],
    "vjp, cotangent": lambda x: phlox.vjp(IDENTITY, 2.0)[1](x),
    "vjp, of a product": lambda x: phlox.vjp(lambda y: y * 3.0, x)[1](1.0),
    "vjp, residuals": lambda x: arrays(phlox.vjp(jnp.sin, x)[1]),
    "vjp, has_aux": lambda x: phlox.vjp(lambda y: (y, x), x, has_aux=True)[2],
    "jvp": lambda x: phlox.jvp(IDENTITY, (x,), (x,)),
    "linearize": lambda x: phlox.linearize(IDENTITY, x)[0],
    "linearize, tangent": lambda x: phlox.linearize(IDENTITY, 2.0)[1](x),
    "linear_transpose": lambda x: phlox.linear_transpose(IDENTITY, x)(x),
    "grad": lambda x: phlox.grad(IDENTITY)(x),
    "value_and_grad": lambda x: phlox.value_and_grad(IDENTITY)(x),
    "grad, has_aux": lambda x: phlox.grad(lambda y: (y, x), has_aux=True)(x),
    "jacfwd": lambda x: phlox.jacfwd(IDENTITY)(x),
    "jacrev": lambda x: phlox.jacrev(IDENTITY)(x),
    "hessian": lambda x: phlox.hessian(lambda y: y * y)(x),
    "checkpoint": lambda x: phlox.checkpoint(IDENTITY)(x),
    "custom_jvp": lambda x: with_jvp(x),
    "custom_jvp, jvp": lambda x: phlox.jvp(with_jvp, (x,), (x,)),
    "custom_jvp, vjp": lambda x: phlox.vjp(with_jvp, 1.0)[1](x),
    "custom_vjp": lambda x: with_vjp(x),
    "custom_vjp, value_and_grad": lambda x: phlox.value_and_grad(with_vjp)(x),
    "custom_vjp, vjp": lambda x: phlox.vjp(with_vjp, x)[1](x),
    "stop_gradient": lambda x: lax.stop_gradient(x),
    "fori_loop": lambda x: lax.fori_loop(0, 0, lambda i, y: y, x),
    "fori_loop, disabled": lambda x: with_jit_disabled(lambda: lax.fori_loop(0, 2, lambda i, y: y, x)),
    "while_loop": lambda x: lax.while_loop(lambda y: False, IDENTITY, x),
    "while_loop, disabled": lambda x: with_jit_disabled(lambda: lax.while_loop(lambda y: False, IDENTITY, x)),
    "cond": lambda x: lax.cond(True, IDENTITY, IDENTITY, x),
    "cond, disabled": lambda x: with_jit_disabled(lambda: lax.cond(True, IDENTITY, IDENTITY, x)),
    "switch": lambda x: lax.switch(0, [IDENTITY], x),
    "scan": lambda x: lax.scan(lambda c, _: (c, c), x, None, length=2),
    "scan, disabled": lambda x: with_jit_disabled(lambda: lax.scan(lambda c, _: (c, c), x, None, length=2)),
    "associative_scan": lambda x: lax.associative_scan(jnp.add, jnp.full(1, x)),
    "custom_linear_solve": lambda x: lax.custom_linear_solve(IDENTITY, x, lambda mv, b: b),
    "device_put": lambda x: phlox.device_put(x),
    "eval_jaxpr": lambda x: phlox.core.eval_jaxpr(phlox.make_jaxpr(IDENTITY)(x).jaxpr, [], x),
    "closure_convert": lambda x: phlox.closure_convert(lambda y: x, x)[0](x),
    "pure_callback": lambda x: phlox.pure_callback(IDENTITY, phlox.typeof(x), x),
    "optimization_barrier": lambda x: lax.optimization_barrier(x),
    "named_call": lambda x: phlox.named_call(IDENTITY)(x),
    "closed_call": lambda x: phlox.extend.closed_call(phlox.make_jaxpr(IDENTITY)(x), x),
    "tree": lambda x: phlox.tree.map(jnp.asarray, {"a": x}),
    "ref": lambda x: phlox.new_ref(x)[...],
    "vmap": lambda x: phlox.vmap(lambda a, b: b, in_axes=(0, None), out_axes=None)(jnp.ones(2), x),
}
NUMBERS = [1.0, 0.0, -0.0, 7, True, 1 + 2j, np.float32(3.0), np.int32(5)]


@pytest.mark.whole
@pytest.mark.parametrize("name", TRANSFORMED)
def test_results_of_transformations(name):
    for x in NUMBERS:
        check(TRANSFORMED[name], [x])
        check(TRANSFORMED[name], [jnp.asarray(x)])
    assert float(jnp.float32(1.0) + 1.0) == 2.0


def test_a_donated_cotangent():
    (ct,) = phlox.vjp(IDENTITY, 2.0)[1](1.0)
    phlox.jit(lambda x: x + 1, donate_argnums=0)(ct)
    assert float(jnp.float32(1.0) * 1.0) == 1.0 and float(lax.add(1.0, 1.0)) == 2.0


def closing_over(m, c):
    """Functions of one array, which close over `c`."""
    inner = m.jit(lambda y: y * c)
    return {
        "plain": lambda x: x + c,
        "inner": lambda x: inner(x) + c,
        "loop": lambda x: m.lax.scan(lambda k, _: (k + c, k[0]), x, None, length=3)[0],
        "vmap": lambda x: m.vmap(lambda y: y + inner(x))(x[None])[0],
        "given back": lambda x: (x * 2, c),
        "a tree": lambda x: {"a": x * 2 + c, "b": c.sum()},
    }


def donated_and_closed_over(m):
    """What is called, the results, and whether the array that was closed over and given away is gone."""
    other = lambda: m.numpy.ones(4)
    for name in closing_over(m, None):
        for place in range(3):
            c = m.numpy.arange(4.0)
            f = m.jit(closing_over(m, c)[name], donate_argnums=0)
            yield name, [f(c if i == place else other()) for i in range(4)], c.is_deleted()
    c = m.numpy.arange(4.0)
    f = m.jit(lambda x, y: x + c + y, donate_argnums=0)
    yield "by name", [f(y=2.0, x=x) for x in (other(), c, other())], c.is_deleted()
    c = m.numpy.arange(4.0)
    f = m.jit(lambda x, y: x + c * y, donate_argnums=0)
    yield "given twice", [f(other(), c), f(c, other()), f(other(), other())], c.is_deleted()
    c = m.numpy.arange(4.0)
    f = m.jit(lambda x: x * c, donate_argnums=0).lower(c).compile()
    yield "compiled ahead", [f(c), f(other())], c.is_deleted()
    c = m.numpy.arange(4.0)[None]
    f = m.pmap(lambda x: x + c[0], donate_argnums=0)
    yield "pmap", [f(c), f(other()[None])], c.is_deleted()
    k = m.random.key(1)
    f = m.jit(lambda x: m.random.fold_in(x, m.random.bits(k)), donate_argnums=0)
    yield "keys", [m.random.key_data(f(k)), m.random.key_data(f(m.random.key(2)))], k.is_deleted()


def test_arrays_that_are_donated_and_closed_over():
    for mine, theirs in zip(donated_and_closed_over(phlox), donated_and_closed_over(jax), strict=True):
        assert mine[0] == theirs[0] and mine[2] and theirs[2], mine[0]
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(np.asarray, mine[1]), theirs[1])


def test_what_is_closed_over_and_gone_is_told():
    c = jnp.arange(4.0)
    f = phlox.jit(lambda x: x + c)
    f(c)
    c.delete()
    for _ in range(3):
        with pytest.raises(
            phlox.errors.DeletedArrayError, match=r"an array that the function closes over of type f32\[4\]"
        ):
            f(jnp.ones(4))


@pytest.mark.parametrize("parts", [(-2.0, 0.0), (-2.0, -0.0), (0.0, -0.0), (-0.0, 0.0), (-0.0, -0.0), (0.0, 0.0)])
def test_numbers_are_told_apart_by_their_bits(parts):
    for sign in ((-2.0, 0.0), (-0.0, -0.0), parts):  # whichever comes first
        x = complex(*sign)
        got = complex(phlox.jit(IDENTITY)(x))
        assert struct.pack("dd", got.real, got.imag) == struct.pack("dd", *sign)
        got = complex(jnp.sqrt(x))
        assert str(got) == str(complex(np.sqrt(np.complex64(x))))  # jax has 0j for the root of -0.0-0j
        assert str(float(lax.neg(sign[1]))) == str(-sign[1])


def kinds(m):
    """What functions of users are given, by the name of the place: 'array', 'tracer', or a class."""
    seen = {}

    def kind(x):
        if isinstance(x, m.core.Tracer):
            return "tracer"
        # jax's typed numbers have a dtype and a shape, as arrays have.
        return "array" if isinstance(x, m.Array) or (hasattr(x, "dtype") and isinstance(x, float)) else type(x).__name__

    def see(place, *xs):
        seen.setdefault(place, set()).update(map(kind, m.tree.leaves(xs)))

    def jvp_kind(place):
        @m.custom_jvp
        def f(x, y):
            return x * y

        @f.defjvp
        def _(primals, tangents):
            see(place, primals, tangents)
            (x, y), (s, t) = primals, tangents
            return x * y, s * y + x * t

        return f

    def vjp_kind(place):
        @m.custom_vjp
        def f(x, y):
            return x * y

        def forward(x, y):
            see(f"{place} fwd", x, y)
            return x * y, (x, y, 2.0)

        def backward(residuals, ct):
            see(f"{place} bwd", residuals, ct)
            return ct * residuals[1], ct * residuals[0]

        f.defvjp(forward, backward)
        return f

    def plain(place):
        return lambda x: see(place, x) or x * 1.0

    for name, make in (("custom_jvp", jvp_kind), ("custom_vjp", vjp_kind)):
        m.grad(make(f"{name} grad"), (0, 1))(2.0, 3.0)
        m.vjp(make(f"{name} vjp"), 2.0, 3.0)[1](1.0)
        m.jit(m.grad(make(f"{name} jit grad")))(2.0, 3.0)
        m.jit(lambda make=make, name=name: m.grad(make(f"{name} jit grad of constants"))(2.0, 3.0))()
        m.grad(m.grad(make(f"{name} twice")))(2.0, 3.0)
        m.grad(m.checkpoint(make(f"{name} checkpoint")))(2.0, 3.0)
        m.grad(lambda x, make=make, name=name: m.vmap(make(f"{name} vmap"), (0, None))(np.ones(2, "f4"), x).sum())(3.0)
    m.jvp(jvp_kind("custom_jvp jvp"), (2.0, 3.0), (1.0, 1.0))
    m.jit(lambda: m.jit(plain("jit inline"), inline=True)(2.0))()
    m.jit(lambda: m.jit(plain("jit inside"))(2.0))()
    m.grad(m.custom_gradient(lambda x: (x, plain("custom_gradient"))))(2.0)
    m.lax.cond(True, plain("cond"), plain("cond"), 2.0)
    m.lax.fori_loop(0, 2, lambda i, x: plain("fori_loop")(x), 2.0)
    m.lax.scan(lambda c, x: (c, plain("scan")(c)), 2.0, np.ones(2, np.float32))
    m.pure_callback(lambda x: np.float32(plain("pure_callback")(x)), m.ShapeDtypeStruct((), "float32"), 2.0)
    return seen


def test_functions_of_users_are_given_arrays():
    mine, theirs = kinds(phlox), kinds(jax)
    assert set(mine) == set(theirs)
    # Residuals that are Python numbers stay such for every bwd rule, as with jax.vjp: rules branch on them.
    given = {False: {"array", "tracer"}, True: {"array", "tracer"} | theirs["custom_vjp vjp bwd"]}
    assert {place: found for place, found in mine.items() if not found <= given[place.endswith(" bwd")]} == {}


def test_arrays_of_rules_can_be_looked_at():
    """Where a value is known it is concrete, so that Python may branch on it, and it has a dtype."""

    @phlox.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, x), lambda x, ct: (ct.astype(x.dtype) * (2.0 if float(x) > 0 else 3.0),))
    assert float(phlox.grad(f)(1.0)) == 2.0
    assert float(phlox.jit(lambda: phlox.grad(f)(-1.0))()) == 3.0
