"""What lax says to the compiler, products in groups and with scales, algorithms, and single functions of lax."""

import functools
import itertools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import A, I, S, batches, both, call, gradients, row, values

INTS = ["int8", "int32", "uint8", "uint32", "int16"]
ROWS = [
    row("lax.mulhi", call(A(7), A(7, low=-100, high=100)), call(A(3, dtype="int32"), S(5)), dtypes=INTS),
    row(
        "lax.mul",
        call(A(3), A(3)),
        call(A(2, dtype="int8"), A(2, dtype="int8"), out_dtype="int16"),
        call(S(2.0), S(3.0), out_dtype="bfloat16"),
        call(S(2), A(3), out_dtype="bfloat16"),
    ),
    row("lax.exp", call(A(3), accuracy=None), dtypes=["float32", "complex64"]),
    row("lax.stage", call(A(3)), call(S(2.0))),
    row("lax.optimization_barrier", call(A(3)), call((A(2), [A(3)]))),
    row(
        "lax.dynamic_slice",
        call(A(4, 5), (I(low=-3), I(low=-3)), (2, 2), allow_negative_indices=True),
        call(A(4, 5), (I(low=-3), I(low=-3)), (2, 2), allow_negative_indices=(True, False)),
        dtypes=["float32"],
    ),
    row(
        "lax.dynamic_index_in_dim",
        call(A(4, 5), I(low=-3), allow_negative_indices=False),
        call(A(4, 5), I(low=-3), 1, False, allow_negative_indices=True),
        dtypes=["float32"],
    ),
    row("lax.dynamic_slice_in_dim", call(A(6), I(low=-3), 2, allow_negative_indices=False), dtypes=["float32"]),
    row("lax.dynamic_update_slice", call(A(6), A(2), (I(low=-3),), allow_negative_indices=False), dtypes=["float32"]),
    row("lax.dynamic_update_slice_in_dim", call(A(6), A(2), I(), 0, allow_negative_indices=False), dtypes=["float32"]),
    row("lax.dynamic_update_index_in_dim", call(A(6), A(), I(), 0, allow_negative_indices=False), dtypes=["float32"]),
    row(
        "lax.dot",
        call(A(2, 3, 4), A(2, 4, 5), dimension_numbers=(((2,), (1,)), ((0,), (0,)))),
        call(A(2, 3), A(3, 4), dimension_numbers=((1, 0), ((), ()))),
        call(A(2, 3, 4), A(4)),
        dtypes=["float32", "int32"],
    ),
    row(
        "lax.index_take",
        call(A(3, 4), [I(5)], (0,)),
        call(A(3, 4), [I(5), I(5)], (0, 1)),
        call(A(3, 4, 2), [I(5), I(5)], (0, 2)),
        dtypes=["float32", "int32"],
    ),
    row(
        "lax.ragged_dot",
        call(A(6, 3), A(2, 3, 4), np.array([2, 4])),
        call(A(6, 3), A(3, 3, 4), np.array([2, 0, 3])),
        call(A(6, 3), A(2, 3, 4), np.array([2, 4]), preferred_element_type=np.float32),
        call(A(6, 3), A(2, 3, 4), np.array([2.0, 4.0])),
        dtypes=["float32", "bfloat16"],
    ),
    row(
        "lax.scaled_dot",
        call(A(2, 8), A(8, 3)),
        call(A(2, 8), A(8, 3), lhs_scale=A(2, 4), rhs_scale=A(2, 3)),
        call(A(5, 2, 8), A(5, 8, 3), lhs_scale=A(5, 2, 1), preferred_element_type=np.float32),
        call(A(2, 8), A(8, 3), lhs_scale=A(2, 8)),
        call(A(2, 8), A(7, 3)),
        call(A(8), A(8)),
        dtypes=["float32"],
        grad=False,
        vmap=False,  # the compiler drops roundings to bfloat16 as it pleases
    ),
]

test_values = values(ROWS)
test_gradients = gradients(ROWS)
test_batches = batches(ROWS)


def data(shape, dtype="float32", *seed):
    return judge.array(judge.rng("lax more", *seed), shape, dtype)


@pytest.mark.parametrize("name", ["eq_to", "lt_to", "le_to", "mulhi"])
def test_primitives_without_a_function(name):
    special = np.array([0.0, -0.0, np.nan, -np.inf, np.inf, 1.0, -1.0], np.float32)
    x, y = (special[:, None] + 0 * special, np.broadcast_to(special, (7, 7)))
    x = np.where(x == 0, np.broadcast_to(special[:, None], (7, 7)), x)
    if name == "mulhi":
        x, y = data((7,), "int32"), data((7,), "int32", 1)
    both(lambda m, x, y: getattr(m.lax, f"{name}_p").bind(x, y), x, y)


RAGGED = {
    "rows": ((6, 3), (2, 3, 4), ((((1,), (1,)), ((), ())), [0], [0])),
    "rows of a batch": ((5, 6, 3), (2, 5, 3, 4), ((((2,), (2,)), ((0,), (1,))), [1], [0])),
    "contracted": ((6, 3), (6, 4), ((((0,), (0,)), ((), ())), [0], [])),
    "contracted in a batch": ((5, 6, 3), (5, 6, 4), ((((1,), (1,)), ((0,), (0,))), [1], [])),
    "a batch": ((6, 2, 3), (6, 3, 4), ((((2,), (1,)), ((0,), (0,))), [0], [])),
}


@pytest.mark.parametrize("name", RAGGED)
def test_ragged_dot_general(name):
    left, right, numbers = RAGGED[name]
    x, y, sizes = data(left), data(right, "float32", 1), np.array([2, 3], np.int32)

    def product(m, x, y, sizes):
        return m.lax.ragged_dot_general(x, y, sizes, m.lax.RaggedDotDimensionNumbers(*numbers))

    both(product, x, y, sizes)
    both(lambda m, *xs: m.jit(functools.partial(product, m))(*xs), x, y, sizes, what="jit")
    total = lambda m, x, y: (product(m, x, y, sizes) ** 2).sum()
    if numbers[2]:  # jax has no derivative of the others
        both(lambda m, x, y: m.grad(lambda *xs: total(m, *xs), (0, 1))(x, y), x, y, what="grad")
    if "in a batch" in name or "of a batch" in name:
        own = np.array([[2, 3], [0, 6], [1, 1], [6, 0], [3, 3]], np.int32)
        both(product, x, y, own, what="groups of each example")


PRESETS = [p.name for p in jax.lax.DotAlgorithmPreset]


@pytest.mark.parametrize("name", PRESETS)
def test_algorithms(name):
    for dtype in ("float32", "bfloat16", "float16"):
        x, y = data((3, 4), dtype), data((4, 2), dtype, 1)
        both(lambda m, x, y: m.lax.dot(x, y, precision=name), x, y, what=dtype)
        both(lambda m, x, y: m.jit(lambda x, y: m.numpy.matmul(x, y, precision=name))(x, y), x, y, what=f"{dtype}, jit")
    mine, theirs = (m.lax.DotAlgorithmPreset[name] for m in (phlox, jax))
    types = lambda ts: None if ts is None else [np.dtype(t) for t in (ts if isinstance(ts, tuple) else (ts,))]
    assert (repr(mine), str(mine), mine.value) == (repr(theirs), str(theirs), theirs.value)
    for what in ("supported_lhs_types", "supported_rhs_types", "accumulation_type"):
        assert types(getattr(mine, what)) == types(getattr(theirs, what)), what


def test_an_algorithm_of_ones_own():
    """CPUs refuse it; the text says what is asked for."""
    x = np.ones((2, 2), np.float32)
    both(lambda m, x: m.lax.dot(x, x, precision=m.lax.DotAlgorithm("float32", "float32", "float32")), x)
    both(lambda m, x: m.lax.dot(x, x, precision="F7"), x)
    both(lambda m, x: m.grad(lambda x: m.lax.dot(x, x.T, precision="BF16_BF16_F32_X3").sum())(x), x)


CHOICES = {
    "this one": lambda m: {"cpu": m.numpy.sin, "default": m.numpy.cos},
    "the default": lambda m: {"cuda": m.numpy.sin, "default": m.numpy.cos},
    "only this": lambda m: {"cpu": m.numpy.sin},
    "only others": lambda m: {"cuda": m.numpy.sin, "tpu": m.numpy.cos},
    "one for two": lambda m: {"cuda": m.numpy.sin, "cpu": m.numpy.sin, "default": m.numpy.cos},
    "only a default": lambda m: {"default": m.numpy.cos},
    "gpu": lambda m: {"gpu": m.numpy.cos},
    "no function": lambda m: {"cpu": 3},
}


@pytest.mark.parametrize("name", CHOICES)
def test_platform_dependent(name):
    f = lambda m: lambda x: m.lax.platform_dependent(x, **CHOICES[name](m))
    x = data((3,))
    both(lambda m, x: m.numpy.asarray(f(m)(x)), x)
    if name == "no function":
        return
    both(lambda m, x: m.jit(f(m))(x), x, what="jit")
    both(lambda m, x: m.jit(m.grad(lambda x: f(m)(x).sum()))(x), x, what="grad")
    both(lambda m, x: m.jit(m.vmap(f(m)))(x), x, what="vmap")


def test_what_cannot_be_compiled_here_is_left_out():
    text = phlox.jit(lambda x: phlox.lax.platform_dependent(x, cpu=phlox.numpy.sin, default=phlox.numpy.cos)).lower(1.0)
    assert "stablehlo.sine" in text.as_text()
    assert "stablehlo.cosine" not in text.as_text()


def test_composite():
    def tangent(m, scale=None):
        f = lambda x, y, *, scale=None, word="a": m.lax.sin(x) / m.lax.cos(x) * (1 if scale is None else scale) + y
        return lambda x, y: m.lax.composite(f, name="my.tangent", version=2)(x, y, scale=scale, word="b")

    x, y = data((3,)), data((3,), "float32", 1)
    both(lambda m, x, y: tangent(m)(x, y), x, y)
    both(lambda m, x, y: m.jit(tangent(m, 3.0))(x, y), x, y, what="jit")
    both(
        lambda m, x, y: m.jit(lambda x: m.lax.composite(lambda v: (v, {"a": v + y}), "my.n")(x))(x),
        x,
        y,
        what="closure",
    )
    text = phlox.jit(tangent(phlox, 3.0)).lower(x, y).as_text()
    assert 'composite_attributes = {scale = 3.0 : f32, word = "b"}' in text
    assert "version = 2 : i32" in text
    assert 'stablehlo.composite "my.tangent" %arg0, %arg1 {composite_attributes' in text
    assert "func.func private @my.tangent(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {" in text
    nothing = phlox.jit(lambda: phlox.lax.composite(lambda: phlox.numpy.float32(1), "my.one")())
    assert 'stablehlo.composite "my.one" {decomposition = @my.one} : () -> tensor<f32>' in nothing.lower().as_text()
    assert float(nothing()) == 1
    # Derivatives and batches are those of the decomposition; jax refuses them.
    plain = lambda x, y: phlox.lax.sin(x) / phlox.lax.cos(x) + y
    total = lambda f: lambda x, y: f(x, y).sum()
    for change in (lambda f: phlox.grad(total(f), (0, 1)), lambda f: phlox.vmap(f), lambda f: phlox.jit(phlox.vmap(f))):
        for a, b in zip(
            phlox.tree.leaves(change(tangent(phlox))(x, y)), phlox.tree.leaves(change(plain)(x, y)), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    both(
        lambda m, x: m.jit(lambda x: m.lax.composite(lambda x, *, k: x + k, "my.n")(x, k=x))(x),
        x,
        what="traced attribute",
    )


def test_sinks_keep_what_they_read():
    both(lambda m: m.lax.dce_sink({"a": 1.0}))
    for m in (jax, phlox):  # the foreign function is looked for when the program runs
        kept = m.jit(lambda x, m=m: (m.lax.dce_sink(x + 1, prevent_mlir_dce=True), x)[1]).lower(1.0).compile()
        assert "dce_sink" in kept.as_text() and "add" in kept.as_text()
    both(lambda m, x: m.jit(lambda x: (m.lax.dce_sink(x * 2), x)[1])(x), data((3,)))
    both(lambda m, x: m.grad(lambda x: (m.lax.dce_sink(x * 2), x.sum())[1])(x), data((3,)))
    both(lambda m, x: m.vmap(lambda x: (m.lax.dce_sink(x * 2), x)[1])(x), data((3,)))
    count = lambda m: len(
        m.make_jaxpr(m.jit(lambda x: (m.lax.dce_sink(x * 2), x)[1]))(1.0).eqns[0].params["jaxpr"].eqns
    )
    assert count(phlox) == count(jax) == 2


def test_barriers_have_derivatives_and_batches():
    x = data((3,))
    f = lambda m: lambda x: m.lax.optimization_barrier({"a": x * 2, "b": (3, x)})
    total = lambda m: lambda x: (f(m)(x)["a"] * f(m)(x)["b"][1]).sum()
    both(lambda m, x: m.grad(total(m))(x), x)
    both(lambda m, x: m.jvp(f(m), (x,), (x,)), x)
    both(lambda m, x: m.jit(m.vmap(f(m)))(x), x)
    assert "optimization_barrier" in phlox.jit(f(phlox)).lower(x).as_text()


@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_scatter_apply(mode):
    x = data((5, 2))
    numbers = lambda m: m.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    where = np.array([[1], [3], [1], [9]], np.int32)

    def applied(m, x, where):
        return m.lax.scatter_apply(x, where, lambda v: v * 2 + 1, numbers(m), update_shape=(4, 2), mode=mode)

    both(applied, x, where)
    both(lambda m, *xs: m.jit(functools.partial(applied, m))(*xs), x, where, what="jit")
    many = np.stack([where, where[::-1]])
    both(lambda m, x, w: m.vmap(functools.partial(applied, m), (None, 0))(x, w), x, many, what="vmap")
    both(lambda m, x, w: m.grad(lambda x: applied(m, x, w).sum())(x), x, where, what="grad is refused")


def test_with_sharding_constraint():
    def laid_out(m, x, inside):
        mesh = m.make_mesh((4, 2), ("a", "b"), axis_types=(m.sharding.AxisType.Auto,) * 2)
        where = m.NamedSharding(mesh, m.P("a", "b"))
        f = lambda x: m.lax.with_sharding_constraint(
            {"x": x, "y": [x + 1]}, {"x": where, "y": m.NamedSharding(mesh, m.P("a"))}
        )
        y = (m.jit(f) if inside else f)(x)
        return y, [v.addressable_shards[0].data.shape for v in m.tree.leaves(y)]

    x = data((8, 4))
    both(lambda m, x: laid_out(m, x, True), x)
    both(lambda m, x: laid_out(m, x, False), x)
    both(lambda m, x: m.lax.with_sharding_constraint(x, m.P("a")), x, what="no mesh")
    both(lambda m, x: m.lax.with_sharding_constraint(x, None), x, what="None")
    one = lambda m: m.sharding.SingleDeviceSharding(m.devices()[1])
    both(lambda m, x: m.lax.with_sharding_constraint(x, one(m)).device.id, x)

    def by_context(m, x):
        mesh = m.make_mesh((4, 2), ("a", "b"), axis_types=(m.sharding.AxisType.Auto,) * 2)
        with m.set_mesh(mesh):
            return m.jit(m.grad(lambda x: m.lax.with_sharding_constraint(x**2, m.P("a")).sum()))(x)

    both(by_context, x)


def test_accuracy():
    for name in [
        "cbrt",
        "cos",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "logistic",
        "rsqrt",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    ]:
        x = np.abs(data((3,))) + 0.5
        for mode in ("HIGHEST", "DEFAULT"):
            both(lambda m, x, n=name, k=mode: getattr(m.lax, n)(x, accuracy=m.lax.AccuracyMode[k]), x, what=name)
        with pytest.raises(NotImplementedError, match="accuracy"):  # jax passes it on to compilers that ignore it
            getattr(phlox.lax, name)(x, accuracy=phlox.lax.Tolerance(ulps=1))
    both(lambda m: m.lax.Tolerance())
    both(lambda m: m.lax.Tolerance(atol=-1.0))
    both(lambda m: vars(m.lax.Tolerance(1e-3, 1e-4, 2)))


# --- out_sharding: the same results, laid out as asked for

OUT = {
    "lax.broadcast": lambda f, m, where: f(np.ones(4, np.float32), (8,), out_sharding=where),
    "lax.broadcast_in_dim": lambda f, m, where: f(np.arange(8), (8, 4), (0,), out_sharding=where),
    "lax.broadcasted_iota": lambda f, m, where: f("int32", (8, 4), 1, out_sharding=where),
    "lax.conv_general_dilated": lambda f, m, where: f(
        np.ones((8, 4, 5), np.float32), np.ones((4, 4, 2), np.float32), (1,), "SAME", out_sharding=where
    ),
    "lax.dot": lambda f, m, where: f(np.ones((8, 3)), np.ones((3, 4)), out_sharding=where),
    "lax.dot_general": lambda f, m, where: f(
        np.ones((8, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ())), out_sharding=where
    ),
    "lax.empty": lambda f, m, where: f((8, 4), "int32", out_sharding=where),
    "lax.ragged_dot": lambda f, m, where: f(
        np.ones((8, 3), np.float32), np.ones((2, 3, 4), np.float32), np.array([3, 5]), out_sharding=where
    ),
    "lax.reduce": lambda f, m, where: f(np.ones((8, 4, 3)), 0.0, lambda x, y: x + y, (2,), out_sharding=where),
    "lax.reduce_sum": lambda f, m, where: f(np.ones((8, 4, 3)), (2,), out_sharding=where),
    "lax.reshape": lambda f, m, where: f(np.arange(32), (8, 4), out_sharding=where),
    "lax.rng_bit_generator": lambda f, m, where: f(
        np.uint32([1, 2, 3, 4]), (8, 4), algorithm=m.lax.RandomAlgorithm.RNG_THREE_FRY, out_sharding=where
    )[1],
}


@pytest.mark.parametrize("name", OUT)
def test_out_sharding(name):
    module, function = name.split(".")
    explicit = lambda m: m.make_mesh((4, 2), ("a", "b"))
    call_it = lambda m, where: OUT[name](getattr(getattr(m, module), function), m, where)
    expected = np.asarray(call_it(phlox, None))
    with phlox.set_mesh(explicit(phlox)):
        got = call_it(phlox, phlox.P("a", "b"))
        assert tuple(got.sharding.spec)[:2] == ("a", "b")
        np.testing.assert_array_equal(got, expected)
        inside = phlox.jit(lambda: call_it(phlox, phlox.P("a")))()
        assert inside.sharding.spec[0] == "a"
        np.testing.assert_array_equal(inside, expected)
        with pytest.raises((ValueError, TypeError)):
            call_it(phlox, "a")
    with jax.set_mesh(explicit(jax)):
        theirs = call_it(jax, jax.P("a", "b"))
        assert theirs.dtype == got.dtype
        if name != "lax.reduce":  # where jax forgets it for sums
            assert theirs.addressable_shards[0].data.shape == got.addressable_shards[0].data.shape


def test_primitives_are_in_lax_as_in_the_extension():
    import phlox.extend.core.primitives as named

    assert phlox.lax.sin_p is named.sin_p
    with pytest.raises(AttributeError, match="sine"):
        phlox.lax.sine


@pytest.mark.parametrize("sizes", [(4,), (1, 3), (0, 2, 2), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_split(axis, sizes):
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    weigh = lambda m, x: sum((i + 1) * (part**2).sum() for i, part in enumerate(m.lax.split(x, sizes, axis)))
    for m in (phlox, jax):
        program = str(m.make_jaxpr(lambda x, m=m: m.lax.split(x, sizes, axis))(x))
        assert "split[" in program, program
    mine, theirs = (
        [
            *m.lax.split(x, sizes, axis),
            *m.vmap(lambda r, m=m: m.lax.split(r, sizes))(x),
            m.grad(lambda x, m=m: weigh(m, x))(x),
        ]
        for m in (phlox, jax)
    )
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    # The gradient puts the pieces side by side once.
    text = phlox.jit(phlox.grad(lambda x: weigh(phlox, x))).lower(x).as_text()
    assert text.count("stablehlo.concatenate") == 1
    assert "stablehlo.pad" not in text


def test_products_of_two_kinds_of_bytes():
    """The numbers of neither kind are rounded to the other."""
    kinds = [getattr(jax.numpy, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz")]
    x, y = np.random.default_rng(0).normal(size=(2, 4, 4))
    for first, second in itertools.permutations(kinds, 2):
        a, b = np.asarray(x, first), np.asarray(y, second)
        got = phlox.lax.dot(a, b, preferred_element_type="float32")
        np.testing.assert_allclose(got, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-6)
