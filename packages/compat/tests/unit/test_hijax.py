"""Values with types of their own, and operations on them, as ``jax.experimental.hijax`` defines them."""

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox_compat.jax_internals import _hijax as hijax


class Scaled:
    """An array that is stored as small integers and a scale."""

    def __init__(self, values, scale):
        self.values, self.scale = values, scale


class _Type(hijax.HiType):
    def __init__(self, parts):
        self.parts = tuple(parts)

    def __hash__(self):
        return hash(self.parts)

    def __eq__(self, other):
        return isinstance(other, _Type) and self.parts == other.parts

    def lo_ty(self):
        return list(self.parts)

    def lower_val(self, value):
        return [value.values, value.scale]

    def raise_val(self, values, scale):
        return Scaled(values, scale)


hijax.register_hitype(Scaled, lambda x: _Type(map(hijax.typeof, (x.values, x.scale))))


class Cube(hijax.HiPrim):
    """x ** 3 with a derivative of its own, four times the true one, so that a test sees which rule is used."""

    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x):
        return x * x * x


class CubeByJvp(Cube):
    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return self(x), 12 * x * x * t

    def batch(self, axis_data, args, dims):
        assert axis_data.size == 2
        return self.expand(args[0]) + 100, dims[0]


class CubeByVjp(Cube):
    def vjp_fwd(self, nzs_in, x):
        return self(x), x

    def vjp_bwd_retval(self, x, ct):
        return (12 * x * x * ct,)


class CubeByAccumulators(CubeByVjp):
    def vjp_bwd(self, x, ct, accum):
        accum.accum(8 * x * x * ct)
        accum.accum(4 * x * x * ct)


class CubeByLinearization(Cube):
    def lin(self, nzs_in, x):
        return self(x), x

    def linearized(self, x, tangent):
        return 12 * x * x * tangent


def apply(kind, x):
    return kind(phlox.typeof(x))(x)


@pytest.mark.parametrize("kind", [CubeByJvp, CubeByVjp, CubeByAccumulators, CubeByLinearization])
def test_the_rules_of_an_operation_are_used(kind):
    assert apply(kind, jnp.float32(2)) == 8
    assert phlox.jit(lambda x: apply(kind, x))(2.0) == 8
    assert phlox.grad(lambda x: apply(kind, x))(2.0) == 48
    assert phlox.jit(phlox.grad(lambda x: apply(kind, x)))(2.0) == 48


def test_an_operation_without_a_rule_says_which_it_needs():
    with pytest.raises(NotImplementedError, match=r"for grad support, subclass .*Cube.* must implement"):
        phlox.grad(lambda x: apply(Cube, x))(2.0)
    with pytest.raises(AttributeError, match=r"self\.in_avals"):
        hijax.HiPrim()


def test_the_batching_rule_is_used():
    x = jnp.array([1.0, 2.0])
    np.testing.assert_array_equal(phlox.vmap(lambda x: apply(CubeByJvp, x))(x), [101, 108])
    np.testing.assert_array_equal(phlox.vmap(lambda x: apply(CubeByVjp, x))(x), [1, 8])


def test_values_pass_through_transformations():
    value = Scaled(jnp.array([1.0, 2.0]), jnp.float32(3))

    def total(x):
        assert isinstance(x, Scaled)
        return (x.values * x.scale).sum()

    assert phlox.jit(total)(value) == 9
    gradient = phlox.grad(total)(value)
    assert isinstance(gradient, Scaled) and gradient.scale == 3
    np.testing.assert_array_equal(gradient.values, [3, 3])
    last, _ = phlox.lax.scan(lambda x, _: (Scaled(x.values + 1, x.scale), None), value, None, length=4)
    np.testing.assert_array_equal(last.values, [5, 6])
    assert hijax.typeof(value) == hijax.typeof(last) != hijax.typeof(Scaled(jnp.ones(3), jnp.float32(3)))


def test_a_type_without_a_method_says_which_it_needs():
    with pytest.raises(NotImplementedError, match="autodiff requires HiType to implement the"):
        hijax.HiType().to_ct_aval()


def test_derivatives_made_from_others():
    class ByPair(CubeByJvp):
        vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp
        lin, linearized = hijax.linearize_from_jvp

    prim = ByPair(phlox.typeof(jnp.float32(2)))
    out, residuals = prim.vjp_fwd((True,), jnp.float32(2))
    assert out == 8 and prim.vjp_bwd_retval(residuals, jnp.float32(1))[0] == 48
    out, residuals = prim.lin((True,), jnp.float32(2))
    assert out == 8 and prim.linearized(residuals, jnp.float32(1)) == 48

    class ByLinearization(CubeByLinearization):
        jvp = hijax.jvp_from_lin

    assert phlox.grad(lambda x: apply(ByLinearization, x))(2.0) == 48


class Product(hijax.HiPrim):
    """x * y, whose backward rule keeps only what its cotangents need, and logs under a name of its own."""

    def __init__(self, x, y, name=None):
        self.in_avals, self.out_aval, self.params = (x, y), {"product": x, "x": x}, {"name": name}
        super().__init__()

    def expand(self, x, y):
        return {"product": x * y, "x": x}

    def vjp_fwd(self, nzs_in, x, y):
        x_varies, y_varies = nzs_in
        return self(x, y), (x if y_varies else None, y if x_varies else None)

    def vjp_bwd(self, residuals, ct, x_accum, y_accum):
        x, y = residuals
        if y is not None:
            x_accum.accum(ct["product"] * y)
        if not isinstance(ct["x"], hijax.Zero):
            x_accum.accum(ct["x"])
        if x is not None:
            y_accum.accum(ct["product"] * x)
        return {self.name: (x is None, y is None, isinstance(ct["x"], hijax.Zero))} if self.name else None


def multiply(x, y, name=None):
    return Product(phlox.typeof(x), phlox.typeof(y), name)(x, y)


def test_rules_are_told_what_is_differentiated():
    f = lambda x, y: multiply(x, y)["product"]
    for way in (lambda f: f, phlox.jit):
        assert way(phlox.grad(f))(2.0, 3.0) == 3 and way(phlox.grad(f, 1))(2.0, 3.0) == 2
        both = lambda x: sum(phlox.tree.leaves(multiply(x, x)))
        assert way(phlox.grad(both))(3.0) == 7


def test_logs_of_a_backward_rule_are_returned():
    def f(x, y):
        return multiply(multiply(x, y, "inner")["product"], y, "outer")["product"]

    for argnum, gradient, inner in [(0, 4.0, (True, False, True)), (1, 12.0, (False, True, True))]:
        _, pullback = phlox.vjp(lambda z, i=argnum: f(*(z, 2.0) if i == 0 else (3.0, z)), [3.0, 2.0][argnum])
        (ct,), logs = pullback.with_logs(1.0)
        assert float(ct) == gradient == float(pullback(1.0)[0])
        assert logs == {"inner": inner, "outer": (argnum == 0, False, True)}


def test_values_with_types_of_their_own_are_mapped_by_expand():
    class Split(hijax.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.params = (aval,), {}
            self.out_aval = hijax.typeof(Scaled(jnp.ones(2), jnp.float32(1)))
            super().__init__()

        def expand(self, x):
            return Scaled(x / x.max(), x.max())

        def batch(self, axis_data, args, dims):
            raise AssertionError("dims of such values are the user's own objects")

    split = lambda x: Split(phlox.typeof(x))(x)
    x = jnp.array([[1.0, 4.0], [6.0, 3.0]])
    out = phlox.vmap(split)(x)
    np.testing.assert_array_equal(out.values, [[0.25, 1], [1, 0.5]])
    np.testing.assert_array_equal(out.scale, [4, 6])


def test_types_are_shown_within_other_types():
    for short, text in [(True, "f32[3]"), (False, "float32[3]")]:
        assert phlox.typeof(jnp.ones(3)).str_short(short, False) == text
        assert phlox.typeof(phlox.new_ref(jnp.ones(3))).str_short(short, mesh_axis_types=False) == f"Ref{{{text}}}"


class _Rounded(hijax.HiType):
    """An array rounded to small integers, whose tangents are floats."""

    def __init__(self, shape):
        self.shape = shape

    def __hash__(self):
        return hash(self.shape)

    def __eq__(self, other):
        return isinstance(other, _Rounded) and self.shape == other.shape

    def lo_ty(self):
        kinds = (self.shape, "int8"), (self.shape[:-1], "float32")
        return [phlox.core.ShapedArray(shape, jnp.dtype(dtype)) for shape, dtype in kinds]

    def lower_val(self, value):
        return [value.values, value.scale]

    def raise_val(self, values, scale):
        return Rounded(values, scale)

    def to_tangent_aval(self):
        return phlox.core.ShapedArray(self.shape, jnp.dtype("float32"))

    def dec_rank(self, size, spec):
        assert isinstance(spec, FirstAxis) and size == self.shape[0]
        return _Rounded(self.shape[1:])

    def inc_rank(self, size, spec):
        return _Rounded((size, *self.shape))


class Rounded(Scaled):
    pass


hijax.register_hitype(Rounded, lambda x: _Rounded(x.values.shape))


class FirstAxis(hijax.MappingSpec):
    pass


class SplitRows(hijax.HiPspec):
    def to_lo(self):
        return phlox.P("i"), phlox.P("i")


class Round(hijax.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), _Rounded(aval.shape), {}
        super().__init__()

    def expand(self, x):
        scale = jnp.abs(x).max(axis=-1) / 4
        return Rounded(jnp.round(x / scale[..., None]).astype("int8"), scale)

    def vjp_fwd(self, nzs_in, x):
        return self(x), None

    def vjp_bwd_retval(self, residuals, ct):
        return (ct,)


class Restore(Round):
    def __init__(self, aval):
        self.in_avals, self.params = (aval,), {}
        self.out_aval = aval.to_tangent_aval()
        hijax.HiPrim.__init__(self)

    def expand(self, x):
        return x.values * x.scale[..., None]


def rounded(x):
    value = Round(hijax.typeof(x))(x)
    return Restore(hijax.typeof(value))(value)


def test_values_of_integers_have_tangents_of_floats():
    x = jnp.array([1.0, 3.2, 4.0])
    square = lambda x: (rounded(x) ** 2).sum()
    assert square(x) == 26
    expected = [2, 6, 8]  # twice the rounded numbers, as rounding has the derivative of the identity
    for way in (lambda f: f, phlox.jit):
        np.testing.assert_allclose(way(phlox.grad(way(square)))(x), expected)
        np.testing.assert_allclose(way(phlox.grad(phlox.checkpoint(square)))(x), expected)
        loop = lambda x: phlox.lax.scan(lambda c, _: (2 * rounded(c), None), x, None, length=3)[0].sum()
        np.testing.assert_allclose(way(phlox.grad(loop))(x), [8, 8, 8])
        branch = lambda x: phlox.lax.cond(x.sum() > 0, square, jnp.sum, x)
        np.testing.assert_allclose(way(phlox.grad(branch))(x), expected)
    np.testing.assert_allclose(phlox.vmap(phlox.grad(square))(x[None]), [expected])


def test_values_made_before_and_inside_of_a_loop_have_one_structure():
    value = Round(hijax.typeof(jnp.ones(3)))(jnp.array([1.0, 3.2, 4.0]))
    turn = lambda c: (c[0] + 1, Round(hijax.typeof(jnp.ones(3)))(2 * Restore(hijax.typeof(c[1]))(c[1])), value)
    count, last, same = phlox.lax.while_loop(lambda c: c[0] < 3, turn, (0, value, value))
    assert count == 3 and last.scale == 8 and same.scale == 1
    assert last.values.tolist() == [1, 3, 4]


def test_residuals_with_a_structure_of_their_own():
    class Square(Cube):
        def vjp_fwd(self, nzs_in, x):
            return self(x), (), True, {"x": x}

        def vjp_bwd(self, residuals, structured, ct, accum):
            accum.accum(2 * structured["x"] * ct)

    assert phlox.grad(lambda x: apply(Square, x))(3.0) == 6

    class Wrong(Square):
        vjp_bwd, vjp_bwd_retval = hijax.HiPrim.vjp_bwd, lambda self, residuals, ct: (ct,)

    with pytest.raises(TypeError, match="structured residuals"):
        phlox.grad(lambda x: apply(Wrong, x))(3.0)


def test_results_without_a_derivative():
    class Constant(Cube):
        def vjp_fwd(self, nzs_in, x):
            return self(x), None, False

        def vjp_bwd_retval(self, residuals, ct):
            raise AssertionError("the result has no derivative")

    class ConstantByLinearization(Cube):
        def lin(self, nzs_in, x):
            return self.expand(x), None, False

        def linearized(self, residuals, tangent):
            return hijax.Zero(self.out_aval)

    for kind in (Constant, ConstantByLinearization):
        assert phlox.grad(lambda x, kind=kind: apply(kind, x))(3.0) == 0
    assert phlox.linearize(lambda x: apply(ConstantByLinearization, x), 3.0)[1](1.0) == 0


def test_forward_rules_get_symbolic_zeros():
    seen = []

    class Times(hijax.HiPrim):
        def __init__(self, aval):
            self.in_avals, self.out_aval, self.params = (aval, aval), aval, {}
            super().__init__()

        def expand(self, x, y):
            return x * y

        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            seen.append([type(t) is hijax.Zero for t in tangents])
            return self(x, y), hijax.instantiate_zeros(x_dot) * y + x * hijax.instantiate_zeros(y_dot)

    times = lambda x, y: Times(phlox.typeof(x))(x, y)
    assert phlox.jvp(lambda x: times(x, 3.0), (2.0,), (1.0,)) == (6, 3)
    assert phlox.grad(lambda y: times(2.0, y))(3.0) == 2
    assert seen == [[False, True], [True, False]]


def test_rules_that_define_each_other_are_refused():
    class Circular(Cube):
        jvp = hijax.jvp_from_lin
        lin, linearized = hijax.linearize_from_jvp

    with pytest.raises(TypeError, match="jvp_from_lin"):
        phlox.jvp(lambda x: apply(Circular, x), (2.0,), (1.0,))
    with pytest.raises(TypeError, match="pair of rules"):
        hijax.vjp_from_jvp(1)


def test_an_operation_is_shown_with_its_parameters():
    assert repr(Product(phlox.typeof(1.0), phlox.typeof(1.0), "inner")) == "Product[name=inner]"
    assert repr(Cube(phlox.typeof(1.0))) == "Cube"


def round_off(x):
    return Round(hijax.typeof(x))(x)


def restored(value):
    return Restore(hijax.typeof(value))(value)


def test_gradients_of_values_of_integers_are_arrays():
    value, x = round_off(jnp.array([1.0, 3.2, 4.0])), jnp.ones(3)
    loss = lambda x, value: (x * restored(value) ** 2).sum()
    for way in (lambda f: f, phlox.jit):
        np.testing.assert_allclose(way(phlox.grad(loss, 1))(x, value), [2, 6, 8])
        gradients = way(phlox.grad(loss, (0, 1)))(x, value)
        np.testing.assert_allclose(gradients, [[1, 9, 16], [2, 6, 8]])
    np.testing.assert_allclose(phlox.vjp(loss, x, value)[1](1.0), [[1, 9, 16], [2, 6, 8]])
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        phlox.grad(loss, (0, 1))(jnp.ones(3, int), value)


def test_values_are_mapped_by_specs():
    x = jnp.array([[1.0, 3.2, 4.0], [2.0, 8.0, 0.0]])
    values = phlox.vmap(round_off, out_axes=FirstAxis())(x)
    assert values.values.tolist() == [[1, 3, 4], [1, 4, 0]] and values.scale.tolist() == [1, 2]
    expected = [[1, 3, 4], [2, 8, 0]]
    for f in (restored, phlox.jit(restored)):
        np.testing.assert_array_equal(phlox.vmap(f, in_axes=FirstAxis(), axis_size=2)(values), expected)
    both = phlox.vmap(lambda v, y: restored(v) + y, in_axes=(FirstAxis(), 0))(values, jnp.arange(2.0))
    np.testing.assert_array_equal(both, [[1, 3, 4], [3, 9, 1]])
    same = phlox.vmap(lambda v: v, in_axes=FirstAxis(), out_axes=FirstAxis(), axis_size=2)(values)
    assert same.values.tolist() == values.values.tolist()
    assert phlox.vmap(lambda x: 2 * x, in_axes=1)(x).shape == (3, 2)

    class Unmapped(Scaled):
        pass

    hijax.register_hitype(Unmapped, lambda x: _Type(map(hijax.typeof, (x.values, x.scale))))
    with pytest.raises(NotImplementedError, match="vmap requires _Type to implement the `dec_rank` method"):
        phlox.vmap(lambda v: v, in_axes=FirstAxis(), axis_size=2)(Unmapped(x, jnp.ones(2)))


def test_specs_of_containers_follow_those_of_their_arrays():
    class Pair:
        def __init__(self, *parts):
            self.parts = parts

    class _Pair(_Type):
        def lower_val(self, value):
            return list(value.parts)

        def raise_val(self, *parts):
            return Pair(*parts)

        def dec_rank(self, size, spec):
            return _Pair(ty.dec_rank(size, axis) for ty, axis in zip(self.parts, spec.axes, strict=True))

        def inc_rank(self, size, spec):
            return _Pair(ty.inc_rank(size, axis) for ty, axis in zip(self.parts, spec.axes, strict=True))

    class Axes(hijax.MappingSpec):
        def __init__(self, *axes):
            self.axes = axes

    hijax.register_hitype(Pair, lambda x: _Pair(map(hijax.typeof, x.parts)))
    square, number = jnp.arange(9.0).reshape(3, 3), jnp.float32(5)
    out = phlox.vmap(lambda p: Pair(p.parts[1], p.parts[0]), Axes(1, None), Axes(None, 1), axis_size=3)(
        Pair(square, number)
    )
    assert out.parts[0] == 5
    np.testing.assert_array_equal(out.parts[1], square)
    out = phlox.vmap(lambda p: Pair(p.parts[1], p.parts[0]), Axes(1, None), Axes(None, 0), axis_size=3)(
        Pair(square, number)
    )
    np.testing.assert_array_equal(out.parts[1], square.T)


def test_values_are_split_by_specs_of_their_own():
    mesh = phlox.make_mesh((2,), ("i",), axis_types=(phlox.sharding.AxisType.Auto,))
    x = jnp.array([[1.0, 3.2, 4.0], [2.0, 8.0, 0.0]])
    rows = phlox.P("i")
    values = phlox.shard_map(round_off, mesh=mesh, in_specs=rows, out_specs=SplitRows())(x)
    assert values.values.tolist() == [[1, 3, 4], [1, 4, 0]] and values.scale.tolist() == [1, 2]
    f = phlox.shard_map(lambda v, y: restored(v) + y, mesh=mesh, in_specs=(SplitRows(), rows), out_specs=rows)
    np.testing.assert_allclose(f(values, x), [[2, 6.2, 8], [4, 16, 0]])
    square = lambda x: (restored(round_off(x)) ** 2).sum()[None]
    split = phlox.shard_map(square, mesh=mesh, in_specs=rows, out_specs=rows)
    np.testing.assert_allclose(phlox.grad(lambda x: split(x).sum())(x), [[2, 6, 8], [4, 16, 0]])
