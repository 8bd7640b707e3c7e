"""The further forms of the rules of `custom_vjp` and `custom_gradient`."""

import pytest

import phlox
import phlox.numpy as jnp
from phlox.errors import OptionError, TreeError, UnsupportedError


def _logging(name, factor):
    """The square, whose backward rule logs the cotangent and the argument."""
    f = phlox.custom_vjp(lambda x: x**2)
    f.defvjp_with_logs(lambda x: (x**2, x), lambda x, ct: ((factor * x * ct,), {name: {"ct": ct, "x": x}}))
    return f


def test_logs_are_dropped_if_nobody_reads_them():
    f = _logging("f", 5)
    assert phlox.grad(f)(3.0) == 15 and phlox.jit(phlox.grad(f))(3.0) == 15
    assert phlox.grad(lambda x: f(f(x)))(1.0) == 25
    f.defvjp_with_logs(lambda x: (x**2, x), lambda x, ct: (5 * x * ct,))
    with pytest.raises(TreeError, match="must return a pair"):
        phlox.grad(f)(3.0)


def test_logs_of_a_backward_pass():
    f, g = _logging("f", 5), _logging("g", 7)
    expected = (945.0,), {"g": {"ct": 1.0, "x": 9.0}, "f": {"ct": 63.0, "x": 3.0}}
    for h in (lambda x: g(f(x)), phlox.jit(lambda x: g(f(x))), lambda x: g(phlox.jit(phlox.jit(f))(x))):
        assert phlox.vjp(h, 3.0)[1].with_logs(1.0) == expected
        assert phlox.jit(lambda x, h=h: phlox.vjp(h, x)[1].with_logs(1.0))(3.0) == expected
    _, logs = phlox.vmap(lambda x: phlox.vjp(f, x)[1].with_logs(x))(jnp.arange(3.0))
    assert logs["f"]["ct"].tolist() == [0, 1, 2]
    assert phlox.vjp(jnp.sin, 0.0)[1].with_logs(1.0) == ((1.0,), {})


@pytest.mark.parametrize("where", [phlox.checkpoint, phlox.vmap, lambda f: lambda x: phlox.lax.map(f, x)])
def test_logs_do_not_leave_other_programs(where):
    x = jnp.ones(2)
    out, pullback = phlox.vjp(where(_logging("f", 5)), x)
    assert pullback(out)[0].tolist() == [5, 5]
    with pytest.raises(UnsupportedError, match="with_logs"):
        pullback.with_logs(out)


def test_a_key_is_logged_once():
    f = _logging("f", 5)
    with pytest.raises(OptionError, match="'f' a second time"):
        phlox.vjp(lambda x: f(f(x)), 1.0)[1].with_logs(1.0)


def test_accumulators_add_cotangents():
    f = phlox.custom_vjp(lambda n, x, tree: x * tree["a"], nondiff_argnums=(0,))

    def backward(n, residuals, ct, x, tree):
        assert n == 7
        x.accum(ct * residuals[1]["a"])
        tree["a"].accum(ct * residuals[0])
        tree["a"].accum(ct * residuals[0])

    f.defvjp_with_accums(lambda n, x, tree: (x * tree["a"], (x, tree)), backward)
    gradients = phlox.grad(f, (1, 2))(7, 2.0, {"a": 3.0, "unused": 1.0})
    assert gradients == (3, {"a": 4, "unused": 0})
    batch = phlox.vmap(phlox.grad(lambda x: f(7, x, {"a": 3.0})))(jnp.ones(2))
    assert batch.tolist() == [3, 3]


def test_rematerialization_runs_after_the_forward_rule():
    f = phlox.custom_vjp(jnp.sin)
    f.defremat(lambda x: (jnp.sin(x), x), lambda res, x: (jnp.sin(x), 10 * res), lambda res, ct: (res * ct,))
    assert phlox.grad(f)(2.0) == 20 and phlox.grad(phlox.checkpoint(f))(2.0) == 20
    f.defremat_with_logs(lambda x: (x, x), lambda res, x: (x, x), lambda res, ct: ((0 * ct,), None))
    assert phlox.grad(f)(2.0) == 20  # the rules that are there stay


def test_custom_gradient_with_options():
    @phlox.custom_gradient(with_logs=True)
    def f(x):
        return x**2, lambda ct: ((5 * x * ct,), {"ct": ct})

    @phlox.custom_gradient(remat=True)
    def g(x):
        return x**2, lambda x: (x**2, lambda ct: 5 * x * ct)

    assert phlox.grad(f)(3.0) == 15 and phlox.grad(g)(3.0) == 15
    assert phlox.vjp(f, 3.0)[1].with_logs(2.0) == ((30.0,), {"ct": 2.0})


def test_wrong_results_of_custom_gradient():
    product = phlox.custom_gradient(lambda x, y: (x * y, lambda ct: (ct,)))
    with pytest.raises(TreeError, match=r"of <lambda> must .* of the 2 arguments, got a tuple of 1"):
        phlox.grad(product)(1.0, 2.0)
    for result in (1.0, (1.0,), (1.0, 2.0)):
        with pytest.raises(TreeError, match=r"^custom_gradient: <lambda> must return a pair \(value, rule\), got"):
            phlox.custom_gradient(lambda x, result=result: result)(1.0)


def test_largest_and_smallest_are_laid_out():
    mesh = phlox.make_mesh((1,), ("x",))
    sharding = phlox.NamedSharding(mesh, phlox.P("x"))
    for reduce, value in ((phlox.lax.reduce_max, 3), (phlox.lax.reduce_min, 1)):
        result = reduce(jnp.array([[1, 3]]), (1,), out_sharding=sharding)
        assert result.sharding == sharding and result.tolist() == [value]
