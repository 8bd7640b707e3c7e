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
@pytest.mark.parametrize("way", [lambda f: f, phlox.jit])
def test_logs_leave_other_programs(where, way):
    x = jnp.array([1.0, 3.0])
    out, pullback = phlox.vjp(way(where(_logging("f", 5))), x)
    (ct,), logs = pullback.with_logs(out)
    assert ct.tolist() == pullback(out)[0].tolist() == [5, 135]
    assert logs["f"]["ct"].tolist() == [1, 9] and logs["f"]["x"].tolist() == [1, 3]


def test_logs_of_a_loop_are_in_the_order_of_its_turns():
    f = _logging("f", 2)
    for reverse in (False, True):
        loop = lambda x, reverse=reverse: phlox.lax.scan(
            lambda c, a: (f(c) * a, None), x, jnp.arange(1.0, 4.0), reverse=reverse
        )
        _, pullback = phlox.vjp(lambda x: loop(x)[0], 1.0)
        (ct,), logs = pullback.with_logs(1.0)
        assert logs["f"]["x"].tolist() == ([18, 3, 1] if reverse else [1, 1, 2]) and ct == pullback(1.0)[0]
    _, logs = phlox.vjp(lambda x: phlox.lax.fori_loop(0, 3, lambda i, c: f(c), x), 2.0)[1].with_logs(1.0)
    assert logs["f"]["x"].tolist() == [2, 4, 16]


def test_logs_of_branches_say_which_ran():
    branches = [_logging("a", 2), _logging("b", 2), lambda x: x, lambda x: _logging("a", 2)(x[None])[0]]
    f = lambda i, x: phlox.lax.switch(i, branches, x)

    @phlox.jit
    def logs_of(i):
        return phlox.vjp(lambda x: f(i, x), 3.0)[1].with_logs(1.0)[1]

    for i, ran in enumerate(["a", "b", None, "a"]):
        logs = logs_of(i)
        assert sorted(logs) == ["a", "b"] and all(x.index == i for x in logs.values())
        assert [x is None for x in logs["a"].branches] == [False, True, True, False]
        for key, log in logs.items():
            for n, entry in enumerate(log.branches):
                if entry is not None:
                    assert jnp.all(entry["x"] == (3 if n == i and key == ran else 0))
    nested = lambda x: phlox.lax.scan(lambda c, i: (f(i, c), None), x, jnp.array([1, 2, 0]))[0]
    _, logs = phlox.vjp(nested, 2.0)[1].with_logs(1.0)
    assert logs["a"].index.tolist() == [1, 2, 0] and logs["a"].branches[0]["x"].tolist() == [0, 0, 4]


def test_logs_of_branches_under_vmap_are_stacked():
    f = phlox.vmap(lambda x: phlox.lax.cond(x > 2, _logging("f", 2), lambda x: x, x))
    x = jnp.array([1.0, 3.0])
    assert phlox.grad(lambda x: f(x).sum())(x).tolist() == [1, 6]
    _, logs = phlox.vjp(f, x)[1].with_logs(jnp.ones(2))
    assert logs["f"]["ct"].tolist() == [0, 1]
    nested = phlox.vmap(lambda x: f(x).sum())
    _, logs = phlox.vjp(nested, jnp.stack([x, x]))[1].with_logs(jnp.ones(2))
    assert logs["f"]["ct"].tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("check_vma", [True, False])
def test_logs_of_devices_are_stacked(check_vma, kind):
    def backward(x, ct):
        return (2 * x * ct,), {"x": x, "sum": x.sum(), "large": x > 2, "count": (x > 2).sum()}

    f = phlox.custom_vjp(lambda x: x**2)
    f.defvjp_with_logs(lambda x: (x**2, x), backward)
    mesh = phlox.make_mesh((2,), ("i",), axis_types=(phlox.sharding.AxisType[kind],))
    mapped = phlox.shard_map(f, mesh=mesh, in_specs=phlox.P("i"), out_specs=phlox.P("i"), check_vma=check_vma)
    with phlox.set_mesh(mesh):
        _, logs = phlox.vjp(lambda x: mapped(x).sum(), jnp.arange(4.0))[1].with_logs(1.0)
    expected = {"x": [0, 1, 2, 3], "sum": [1, 5], "large": [False, False, False, True], "count": [0, 1]}
    assert {key: x.tolist() for key, x in logs.items()} == expected
    assert logs["large"].dtype == bool and logs["count"].dtype == jnp.int32


def test_logs_do_not_leave_loops_of_unknown_length():
    f = lambda x: phlox.lax.while_loop(lambda x: x < 100, _logging("f", 2), x)
    out, pullback = phlox.vjp(f, 2.0)
    with pytest.raises(UnsupportedError, match="inside of scan"):
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
