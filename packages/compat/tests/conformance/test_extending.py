"""Primitives that are stated as JAX has it: the same source, run with jax and with phlox."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import jax.extend.core
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir
import numpy as np
import pytest

import phlox

X, Y, Z = (np.asarray(v, np.float32) for v in ([1.5, 2, 3], [4, 5, -6], [0.5, 0, 9]))
_made: dict[Any, Any] = {}


def multiply_add(m: Any) -> Any:
    """The primitive of JAX's own tutorial, with the rules that users write."""
    if m in _made:
        return _made[m]
    core = importlib.import_module(f"{m.__name__}.extend.core")
    ad, batching, mlir = (
        importlib.import_module(f"{m.__name__}.interpreters.{name}") for name in ("ad", "batching", "mlir")
    )
    prim = core.Primitive("tutorial_multiply_add")
    bind = prim.bind

    @prim.def_impl
    def impl(x: Any, y: Any, z: Any) -> Any:
        return np.add(np.multiply(x, y), z)

    @prim.def_abstract_eval
    def abstract_eval(xs: Any, ys: Any, zs: Any) -> Any:
        assert xs.shape == ys.shape == zs.shape
        return m.core.ShapedArray(xs.shape, xs.dtype)

    mlir.register_lowering(prim, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def jvp(primals: Any, tangents: Any) -> Any:
        x, y, z = primals
        xt, yt, zt = (ad.instantiate_zeros(t) if type(t) is ad.Zero else t for t in tangents)
        return bind(x, y, z), bind(xt, y, bind(x, yt, zt))

    ad.primitive_jvps[prim] = jvp

    def transpose(ct: Any, x: Any, y: Any, z: Any) -> Any:
        if type(ct) is ad.Zero:
            return tuple(ct if ad.is_undefined_primal(a) else None for a in (x, y, z))
        zero = np.zeros(ct.shape, ct.dtype)
        return (
            bind(ct, y, zero) if ad.is_undefined_primal(x) else None,
            bind(x, ct, zero) if ad.is_undefined_primal(y) else None,
            ct if ad.is_undefined_primal(z) else None,
        )

    ad.primitive_transposes[prim] = transpose

    def batch(args: Any, dims: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
        return bind(*(batching.bdim_at_front(x, d, size) for x, d in zip(args, dims, strict=True))), 0

    batching.primitive_batchers[prim] = batch
    _made[m] = bind
    return bind


USES = {
    "impl": lambda m, f: f(X, Y, Z),
    "jit": lambda m, f: m.jit(f)(X, Y, Z),
    "jvp": lambda m, f: m.jvp(f, (X, Y, Z), (Y, Z, X)),
    "grad": lambda m, f: m.jit(m.grad(lambda *a: f(*a).sum(), (0, 1, 2)))(X, Y, Z),
    "grad of a square": lambda m, f: m.grad(lambda x: f(x, x, x).sum())(m.numpy.asarray(X)),
    "vmap": lambda m, f: m.vmap(f, (0, None, 1))(np.stack([X, Y]), Y, np.stack([Z, X], 1)),
    "vmap of grad": lambda m, f: m.jit(m.vmap(m.grad(lambda x, y: f(x, y, x).sum()), (0, None)))(np.stack([X, Y]), Y),
    "eval_shape": lambda m, f: np.zeros(m.eval_shape(f, X, Y, Z).shape),
}


@pytest.mark.parametrize("use", USES)
def test_a_primitive_of_the_tutorial(use: str) -> None:
    mine, theirs = (USES[use](m, multiply_add(m)) for m in (phlox, jax))
    for a, b in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_it_prints_as_jax_prints_it() -> None:
    args = [m.numpy.asarray(X) for m in (phlox, jax)]
    mine, theirs = (str(m.make_jaxpr(multiply_add(m))(x, x, x)) for m, x in zip((phlox, jax), args, strict=True))
    assert mine == theirs


def inverse(m: Any, closed: Any) -> Any:
    """The interpreter of JAX's tutorial: runs a program backwards, by the inverse of each operation."""
    core = importlib.import_module(f"{m.__name__}.extend.core")
    p, np_, lax = core.primitives, m.numpy, m.lax
    rules = {p.exp_p: np_.log, p.tanh_p: np_.arctanh, p.neg_p: lax.neg}

    def run(*outs: Any) -> Any:
        jaxpr = closed.jaxpr
        env = dict(zip(jaxpr.outvars, outs, strict=True))
        for eqn in reversed(jaxpr.eqns):
            assert not isinstance(eqn.invars[0], core.Literal)
            env[eqn.invars[0]] = rules[eqn.primitive](env[eqn.outvars[0]])
        return env[jaxpr.invars[0]]

    return run


def test_an_interpreter_of_programs() -> None:
    for m in (phlox, jax):
        f = lambda x, m=m: m.numpy.exp(-m.numpy.tanh(x))
        back = m.jit(inverse(m, m.make_jaxpr(f)(1.0)))
        np.testing.assert_allclose(back(f(0.3)), 0.3, rtol=1e-5)


def test_programs_as_functions() -> None:
    for m in (phlox, jax):
        core = importlib.import_module(f"{m.__name__}.extend.core")
        closed = m.make_jaxpr(lambda x: m.lax.cond(x > 0, m.numpy.sin, m.numpy.cos, x))(1.0)
        (out,) = core.jaxpr_as_fun(closed)(2.0)
        np.testing.assert_allclose(out, np.sin(2.0), rtol=1e-6)
        assert len(list(core.subjaxprs(closed.jaxpr))) == 2
        eqn = closed.eqns[-1]
        params = eqn.primitive.get_bind_params(eqn.params)
        assert eqn.primitive is core.primitives.cond_p
        np.testing.assert_allclose(eqn.primitive.bind(1, 2.0, **params)[0], np.sin(2.0), rtol=1e-6)


def test_small_words() -> None:
    for m in (phlox, jax):
        core = importlib.import_module(f"{m.__name__}.extend.core")
        aval = m.core.ShapedArray((2, 3), np.dtype("float32"))
        assert core.mapped_aval(3, 1, aval).shape == (2,)
        assert core.unmapped_aval(4, 0, aval).shape == (4, 2, 3)
        assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == m.float0
        assert core.valid_jaxtype(1.0)
        assert not core.valid_jaxtype("x")
        assert core.concrete_or_error(int, 3.7) == 3
        with pytest.raises(TypeError):
            m.jit(lambda x, core=core: core.concrete_or_error(int, x))(1)


SCATTER = lambda m: m.lax.ScatterDimensionNumbers((), (0,), (0,))
#: what are primitives in jax and functions in phlox
COMPOSED = {
    "tile": lambda m, x: m.lax.tile_p.bind(x, reps=(2, 3)),
    "stack": lambda m, x: m.lax.stack_p.bind(x, x + 1, axis=1),
    "unstack": lambda m, x: m.lax.unstack_p.bind(x, axis=1),
    "device_put": lambda m, x: m.lax.device_put_p.bind(
        x, x, devices=(None, m.devices()[0]), srcs=(None, None), copy_semantics=(None, None)
    ),
    "scatter_sub": lambda m, x: m.lax.scatter_sub_p.bind(
        x[0], m.numpy.array([[1]]), m.numpy.array([1.0]), dimension_numbers=SCATTER(m), indices_are_sorted=False,
        unique_indices=False, mode=m.lax.GatherScatterMode.CLIP, update_jaxpr=None, update_consts=(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_primitives_that_are_functions(name):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    mine = COMPOSED[name](phlox, phlox.numpy.asarray(x))
    functions = {
        "tile": lambda x: jax.lax.tile(x, (2, 3)),
        "stack": lambda x: jax.lax.stack([x, x + 1], 1),
        "unstack": lambda x: list(jax.lax.unstack(x, 1)),
        "device_put": lambda x: [x, x],
        "scatter_sub": lambda x: x[0].at[1].add(-1),
    }
    theirs = functions[name](jax.numpy.asarray(x))
    several = isinstance(mine, list)
    assert several == getattr(phlox.lax, name + "_p").multiple_results == getattr(jax.lax, name + "_p").multiple_results
    for a, b in zip(*((mine, theirs) if several else ([mine], [theirs])), strict=True):
        np.testing.assert_array_equal(a, b)
    assert repr(getattr(phlox.lax, name + "_p")) == str(getattr(jax.lax, name + "_p"))


def test_every_primitive_of_jax_lax_has_a_name():
    assert isinstance(phlox.lax.after_all_p.bind(phlox.lax.create_token_p.bind()), type(phlox.lax.create_token()))
    missing = [name for name in dir(jax.lax) if name.endswith("_p") and not hasattr(phlox.lax, name)]
    assert not missing


def scale(m: Any) -> Any:
    """A primitive whose lowering rule builds MLIR by jaxlib's bindings."""
    mlir = importlib.import_module(f"{m.__name__}.interpreters.mlir")
    if m is phlox:
        from phlox_compat.interpreters import _mlir_helpers as helpers
    else:
        helpers = mlir
    from jaxlib.mlir.dialects import stablehlo

    prim = importlib.import_module(f"{m.__name__}.extend.core").Primitive("tutorial_scale")
    prim.def_abstract_eval(lambda x, *, factors: x)

    def rule(ctx: Any, x: Any, *, factors: Any) -> Any:
        (aval,) = ctx.avals_in
        constant = helpers.ir_constant(np.asarray(factors, aval.dtype))
        (inner,) = mlir.lower_fun(m.numpy.sin, multiple_results=False)(ctx, x)
        inner = inner if isinstance(inner, type(x)) or hasattr(inner, "type") else inner[0]
        return [stablehlo.multiply(constant, inner)]

    mlir.register_lowering(prim, rule, platform="cpu")
    return lambda x: prim.bind(x, factors=(1, 2, 3))


def test_rules_that_build_mlir() -> None:
    mine, theirs = (m.jit(scale(m))(X) for m in (phlox, jax))
    np.testing.assert_array_equal(mine, theirs)


def product(m: Any) -> Any:
    """A bilinear primitive, stated by JAX's helpers."""
    name = m.__name__
    core = importlib.import_module(f"{name}.extend.core")
    ad, batching, mlir = (importlib.import_module(f"{name}.interpreters.{x}") for x in ("ad", "batching", "mlir"))
    prim = core.Primitive("tutorial_product")
    prim.def_impl(lambda x, y, *, factor: m.jit(lambda x, y: prim.bind(x, y, factor=factor))(x, y))

    @prim.def_abstract_eval
    def abstract_eval(x: Any, y: Any, *, factor: float) -> Any:
        return m.core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype)

    mlir.register_lowering(prim, mlir.lower_fun(lambda x, y, *, factor: factor * x * y, multiple_results=False))
    bind = lambda x, y: prim.bind(x, y, factor=2.0)
    ad.defbilinear(
        prim,
        lambda ct, x, y, *, factor: prim.bind(ct, y, factor=factor),
        lambda ct, x, y, *, factor: ad.add_jaxvals(prim.bind(x, ct, factor=factor), m.numpy.zeros_like(ct)),
    )
    batching.defbroadcasting(prim)
    assert batching.broadcast(m.numpy.ones(2), 3, 1, None).shape == (2, 3)
    return bind


ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
BILINEAR = {
    "grad": lambda m, f: m.grad(lambda x, y: (f(x, y) ** 2).sum(), (0, 1))(X, Y),
    "jvp": lambda m, f: m.jvp(f, (X, Y), (Z, X)),
    "vmap": lambda m, f: m.vmap(f)(ROWS, ROWS),
    "vmap of one": lambda m, f: m.vmap(f, (0, None))(ROWS, X),
    "vmap of other axes": lambda m, f: m.vmap(f, (0, 1))(ROWS, ROWS.T),
    "vmap of a scalar": lambda m, f: m.vmap(f, (0, None))(ROWS, np.float32(3)),
    "vmap(grad)": lambda m, f: m.vmap(m.grad(lambda x, y: (f(x, y) ** 2).sum(), (0, 1)), (0, None))(ROWS, X),
}


@pytest.mark.parametrize("use", BILINEAR)
def test_helpers_for_rules(use: str) -> None:
    mine, theirs = (jax.tree.leaves(BILINEAR[use](m, product(m))) for m in (phlox, jax))
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
