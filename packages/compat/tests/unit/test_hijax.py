"""Values with types of their own, and operations on them, as ``jax.experimental.hijax`` defines them."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox_compat.jax_internals import _hijax as hijax
from phlox_compat.jax_internals._hijax import _shard_map, _transformations as transforms, _vmap


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


def test_logs_may_be_returned_beside_cotangents():
    class Logged(Cube):
        def vjp_fwd(self, nzs_in, x):
            return self(x), x

        def vjp_bwd_retval_logs(self, x, ct):
            return (12 * x * x * ct,), {"x": x}

    (ct,), logs = phlox.vjp(lambda x: apply(Logged, x), 2.0)[1].with_logs(1.0)
    assert ct == 48 and logs == {"x": 2}


class Scale(hijax.HiPrim):
    """x * y, linear in y, with a transpose of its own: three times the true one."""

    def __init__(self, x, y):
        self.in_avals, self.out_aval, self.params = (x, y), y, {}
        super().__init__()

    def expand(self, x, y):
        return x * y

    def transpose(self, ct, x, y_accum):
        y_accum.accum(3 * ct * x)


class SquareByScale(Cube):
    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        return x * x, Scale(phlox.typeof(x), phlox.typeof(t))(x, t)


def test_the_transpose_of_an_operation_is_used():
    f = lambda x: apply(SquareByScale, x)
    x = jnp.array([1.0, 2.0])
    for way in (lambda f: f, phlox.jit):
        assert way(lambda x: phlox.jvp(f, (x,), (1.0,))[1])(2.0) == 2
        assert way(phlox.grad(f))(2.0) == 6
        np.testing.assert_array_equal(way(phlox.vmap(phlox.grad(f)))(x), 3 * x)
        np.testing.assert_array_equal(way(phlox.grad(lambda x: phlox.vmap(f)(x).sum()))(x), 3 * x)


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


class Rows(hijax.MappingSpec):
    pass


@dataclass(frozen=True)
class Small:
    """A matrix as small integers, with a scale for each row. Its tangents are matrices of floats."""

    numbers: phlox.Array
    scale: phlox.Array


@dataclass(frozen=True)
class SmallType(hijax.HiType):
    shape: tuple[int, ...]

    def lo_ty(self):
        return [
            hijax.ShapedArray(self.shape, np.dtype("int8")),
            hijax.ShapedArray(self.shape[:-1], np.dtype("float32")),
        ]

    def lower_val(self, value):
        return [value.numbers, value.scale]

    def raise_val(self, numbers, scale):
        return Small(numbers, scale)

    def to_tangent_aval(self):
        return hijax.ShapedArray(self.shape, np.dtype("float32"))

    def inc_rank(self, size, spec):
        return SmallType((size, *self.shape))

    def dec_rank(self, size, spec):
        return SmallType(self.shape[1:])

    def leading_axis_spec(self):
        return Rows()


hijax.register_hitype(Small, lambda value: SmallType(value.numbers.shape))


class Shrink(hijax.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), SmallType(aval.shape), {}
        super().__init__()

    def expand(self, x):
        scale = jnp.abs(x).max(-1) / 127
        return Small(jnp.round(x / scale[..., None]).astype("int8"), scale)

    def vjp_fwd(self, nzs_in, x):
        return self(x), None

    def vjp_bwd_retval(self, _, ct):
        return (ct,)

    def batch(self, axis_data, args, dims):
        return shrink(jnp.moveaxis(args[0], dims[0], 0)), Rows()


class Grow(hijax.HiPrim):
    def __init__(self, ty):
        self.in_avals, self.out_aval, self.params = (ty,), ty.to_tangent_aval(), {}
        super().__init__()

    def expand(self, value):
        return value.numbers * value.scale[..., None]

    def vjp_fwd(self, nzs_in, value):
        return self(value), None

    def vjp_bwd(self, _, ct, accum):
        accum.accum(ct)

    def batch(self, axis_data, args, dims):
        assert isinstance(dims[0], Rows)
        return grow(args[0]), 0


def shrink(x):
    return Shrink(phlox.typeof(x))(x)


def grow(value):
    return Grow(hijax.typeof(value))(value)


MATRIX = jnp.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def squares(value):
    return (grow(value) ** 2).sum()


def test_tangents_have_the_type_that_the_type_of_a_value_says():
    value = shrink(MATRIX)
    slope = 2 * grow(value)
    for way in (lambda f: f, phlox.jit):
        np.testing.assert_array_equal(way(transforms.grad(squares))(value), slope)
        np.testing.assert_array_equal(way(transforms.grad(lambda x: squares(shrink(x))))(MATRIX), slope)
    loss, (by_value, by_number) = transforms.value_and_grad(lambda q, x: x * squares(q), (0, 1))(value, 2.0)
    np.testing.assert_array_equal(by_value, 2 * slope)
    assert loss == 2 * by_number == 2 * squares(value)
    _, pullback = transforms.vjp(shrink, MATRIX)
    np.testing.assert_array_equal(pullback(slope)[0], slope)
    out, pullback, aux = transforms.vjp(lambda q: ({"q": q}, "aux"), value, has_aux=True)
    assert isinstance(out["q"], Small) and aux == "aux"
    np.testing.assert_array_equal(pullback({"q": MATRIX})[0], MATRIX)


def test_tangents_pass_through_loops_branches_and_checkpoints():
    double = lambda q: shrink(2 * grow(q))
    programs = [
        (lambda q: phlox.lax.scan(lambda c, _: (double(c), None), q, None, length=3)[0], 8),
        (lambda q: phlox.lax.cond(q.scale[0] > 0, double, lambda q: q, q), 2),
        (phlox.checkpoint(double), 2),
        (phlox.jit(double), 2),
    ]
    for program, factor in programs:
        out, pullback = transforms.vjp(program, shrink(MATRIX))
        np.testing.assert_allclose(grow(out), factor * grow(shrink(MATRIX)), rtol=1e-6)
        np.testing.assert_array_equal(pullback(MATRIX)[0], factor * MATRIX)


def test_mapped_values_have_a_spec():
    stack = jnp.stack([MATRIX, 3 * MATRIX], 1)
    values = _vmap.vmap(shrink, in_axes=1, out_axes=Rows())(stack)
    assert hijax.typeof(values) == SmallType((2, 2, 3))
    sums = _vmap.vmap(lambda q, x: grow(q).sum() + x, in_axes=(Rows(), 0))(values, jnp.zeros(2))
    np.testing.assert_allclose(sums, grow(values).sum((1, 2)), rtol=1e-6)
    slopes = phlox.vmap(transforms.grad(lambda x: squares(shrink(x))), 1)(stack)
    np.testing.assert_allclose(slopes, 2 * grow(values), rtol=1e-6)


@dataclass(frozen=True)
class Arrow:
    vector: phlox.Array


@dataclass(frozen=True)
class ArrowType(hijax.HiType):
    """Tangents of arrows are arrows; cotangents are added by an operation of their own, here with a mistake of 1."""

    length: int

    def lo_ty(self):
        return [hijax.ShapedArray((self.length,), np.dtype("float32"))]

    def lower_val(self, value):
        return [value.vector]

    def raise_val(self, vector):
        return Arrow(vector)

    def to_tangent_aval(self):
        return self

    def vspace_add(self, x, y):
        return Arrow(x.vector + y.vector + 1)


hijax.register_hitype(Arrow, lambda value: ArrowType(len(value.vector)))


class Point(hijax.HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), ArrowType(*aval.shape), {}
        super().__init__()

    def expand(self, x):
        return Arrow(2 * x)

    def jvp(self, primals, tangents):
        return self(*primals), self(*tangents)


class Length(hijax.HiPrim):
    def __init__(self, ty):
        self.in_avals, self.out_aval, self.params = (ty,), hijax.ShapedArray((), np.dtype("float32")), {}
        super().__init__()

    def expand(self, value):
        return value.vector.sum()

    def vjp_fwd(self, nzs_in, value):
        return self(value), value

    def vjp_bwd(self, value, ct, accum):
        accum.accum(Arrow(ct * value.vector))
        accum.accum(Arrow(ct * value.vector))


def test_types_of_all_values_along_an_axis():
    axis = SimpleNamespace(size=4)
    types = hijax.unmap_avals(axis, (phlox.typeof(MATRIX), SmallType((2, 3)), phlox.typeof(1)), (1, Rows(), None))
    assert [ty.shape for ty in types[::2]] == [(2, 4, 3), ()] and types[1] == SmallType((4, 2, 3))


def test_tangents_are_values_with_types_of_their_own():
    x = jnp.array([1.0, 2.0])
    point = lambda x: Point(phlox.typeof(x))(x)
    length = lambda value: Length(hijax.typeof(value))(value)
    np.testing.assert_array_equal(transforms.jvp(point, (x,), (x,))[1].vector, 2 * x)
    np.testing.assert_array_equal(transforms.linearize(point, x)[1](x).vector, 2 * x)
    np.testing.assert_array_equal(transforms.grad(length)(point(x)).vector, 4 * x + 1)
    np.testing.assert_array_equal(transforms.grad(lambda x: length(point(x)))(x), 2 * (4 * x + 1))


@dataclass(frozen=True)
class Pair:
    first: object
    second: object


@dataclass(frozen=True)
class PairType(hijax.HiType):
    """Two values of any types, each of which `vmap` maps along an axis of its own."""

    types: tuple

    def lo_ty(self):
        return [part for ty in self.types for part in ty.lo_ty()]

    def lower_val(self, value):
        both = zip(self.types, (value.first, value.second), strict=True)
        return [part for ty, x in both for part in ty.lower_val(x)]

    def raise_val(self, *arrays):
        count = len(self.types[0].lo_ty())
        return Pair(self.types[0].raise_val(*arrays[:count]), self.types[1].raise_val(*arrays[count:]))

    def to_tangent_aval(self):
        return PairType(tuple(ty.to_tangent_aval() for ty in self.types))

    def inc_rank(self, size, spec):
        return PairType(tuple(ty.inc_rank(size, axis) for ty, axis in zip(self.types, spec.axes, strict=True)))

    def dec_rank(self, size, spec):
        return PairType(tuple(ty.dec_rank(size, axis) for ty, axis in zip(self.types, spec.axes, strict=True)))


@dataclass(frozen=True)
class PairSpec(hijax.MappingSpec):
    axes: tuple


hijax.register_hitype(Pair, lambda value: PairType((hijax.typeof(value.first), hijax.typeof(value.second))))


class MakePair(hijax.HiPrim):
    def __init__(self, *types):
        self.in_avals, self.out_aval, self.params = types, PairType(types), {}
        super().__init__()

    def expand(self, first, second):
        return Pair(first, second)

    def vjp_fwd(self, nzs_in, *args):
        return self(*args), None

    def vjp_bwd_retval(self, _, ct):
        return part(ct, 0), part(ct, 1)


class Part(hijax.HiPrim):
    def __init__(self, ty, index):
        self.in_avals, self.out_aval, self.params = (ty,), ty.types[index], {"index": index}
        super().__init__()

    def expand(self, value):
        return (value.first, value.second)[self.index]

    def vjp_fwd(self, nzs_in, value):
        return self(value), value

    def vjp_bwd_retval(self, value, ct):
        types = [ty.to_tangent_aval() for ty in hijax.typeof(value).types]
        parts = [ct if i == self.index else jnp.zeros(ty.shape, ty.dtype) for i, ty in enumerate(types)]
        return (pair(*parts),)


def pair(first, second):
    return MakePair(hijax.typeof(first), hijax.typeof(second))(first, second)


def part(value, index):
    return Part(hijax.typeof(value), index)(value)


def test_a_spec_maps_each_array_along_an_axis_of_its_own():
    square = jnp.arange(9.0).reshape(3, 3)
    both = pair(square, jnp.arange(3.0))
    products = _vmap.vmap(lambda p: part(p, 0) * part(p, 1), PairSpec((1, 0)), axis_size=3)(both)
    np.testing.assert_array_equal(products, square.T * jnp.arange(3.0)[:, None])
    swap = lambda p: pair(part(p, 1), part(p, 0))
    swapped = _vmap.vmap(swap, PairSpec((1, None)), PairSpec((None, 1)), axis_size=3)(both)
    np.testing.assert_array_equal(part(swapped, 1), square)
    np.testing.assert_array_equal(part(swapped, 0), jnp.arange(3.0))
    with pytest.raises(ValueError, match="axis_size must be specified"):
        _vmap.vmap(swap, PairSpec((1, None)), PairSpec((None, 1)))(both)


def test_values_of_values_are_differentiated():
    f = lambda q, x: squares(part(pair(q, x), 0)) * part(pair(q, x), 1)
    value = shrink(MATRIX)
    by_value, by_number = transforms.grad(f, (0, 1))(value, 3.0)
    np.testing.assert_array_equal(by_value, 6 * grow(value))
    assert by_number == squares(value)


@dataclass(frozen=True)
class SplitRows(hijax.HiPspec):
    spec: phlox.P

    def to_lo(self):
        return self.spec, self.spec


def test_a_spec_splits_the_arrays_of_a_value():
    mesh = phlox.make_mesh((1,), ("i",))
    rows = phlox.P("i")
    split = _shard_map.shard_map(shrink, mesh=mesh, in_specs=rows, out_specs=SplitRows(rows), check_vma=False)
    joined = _shard_map.shard_map(grow, mesh=mesh, in_specs=(SplitRows(rows),), out_specs=rows, check_vma=False)
    for way in (lambda f: f, phlox.jit):
        np.testing.assert_array_equal(way(lambda x: joined(split(x)))(MATRIX), grow(shrink(MATRIX)))
        slopes = way(transforms.grad(lambda x: (joined(split(x)) ** 2).sum()))(MATRIX)
        np.testing.assert_array_equal(slopes, 2 * grow(shrink(MATRIX)))


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


def test_values_made_before_and_inside_of_a_loop_have_one_structure():
    value = shrink(MATRIX)
    turn = lambda c: (c[0] + 1, shrink(2 * grow(c[1])), value)
    count, last, same = phlox.lax.while_loop(lambda c: c[0] < 3, turn, (0, value, value))
    assert count == 3
    np.testing.assert_allclose(grow(last), 8 * grow(same), rtol=1e-6)


def test_arrays_beside_values_must_be_real_to_be_differentiated():
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        transforms.grad(lambda x, q: x * squares(q), (0, 1))(3, shrink(MATRIX))
