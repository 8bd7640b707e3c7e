"""Derivatives and batching by their own algebra: identities that hold whatever the function is."""

import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import grad, hessian, jacfwd, jacrev, jit, jvp, linearize, make_jaxpr, vjp, vmap
from phlox.errors import ArgumentError, ConcretizationTypeError, OptionError


def f(x, y):
    return jnp.sin(x * y) * jnp.exp(-x) + jnp.where(x > 0, x**3, y)


X, Y = np.array([0.5, -1.5, 2.0], np.float32), np.array([1.0, 0.25, -0.5], np.float32)


def close(a, b, bound=1e-5):
    """Compares two trees of arrays; a list of numbers counts as an array."""
    b = np.asarray(b) if isinstance(b, list) else b
    for x, y in zip(phlox.tree.leaves(a), phlox.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=bound, atol=bound)


def test_forward_and_reverse_mode_are_adjoint():
    t, ct = np.array([1.0, -2.0, 0.5], np.float32), np.array([0.3, 0.7, -1.0], np.float32)
    _, pushed = jvp(f, (X, Y), (t, 2 * t))
    _, pull = vjp(f, X, Y)
    pulled = pull(ct)
    close(np.dot(ct, pushed), np.dot(pulled[0], t) + np.dot(pulled[1], 2 * t))


def test_linearize_is_jvp_that_can_be_called_again():
    out, f_lin = linearize(f, X, Y)
    close(out, f(X, Y))
    for t in (X, Y, np.ones(3, np.float32)):
        close(f_lin(t, Y), jvp(f, (X, Y), (t, Y))[1])
    assert not any(e.primitive.name in ("sin", "exp", "cos") for e in f_lin.func.args[0].eqns), (
        "only linear work is left"
    )


def test_jacobians_agree():
    for argnums in (0, 1, (0, 1)):
        close(jacfwd(f, argnums)(X, Y), jacrev(f, argnums)(X, Y))
    scalar = lambda x: f(x, Y).sum()
    close(hessian(scalar)(X), jacrev(jacfwd(scalar))(X), 1e-4)
    close(hessian(scalar)(X), np.asarray(hessian(scalar)(X)).T, 1e-4)
    tree = lambda p: {"a": p["x"] * 2, "b": (p["x"] @ p["x"])}
    forward, backward = jacfwd(tree)({"x": X}), jacrev(tree)({"x": X})
    assert phlox.tree.structure(forward) == phlox.tree.structure(backward)
    close(forward, backward)
    assert forward["b"]["x"].shape == (3,)
    for transform in (jacfwd, jacrev):  # in a program the basis is computed; it was an argument, once for each call
        program = make_jaxpr(lambda p, transform=transform: transform(tree)(p))({"x": X})
        assert program.consts == []
        close(jit(transform(tree))({"x": X}), forward)
    pair = {"a": X, "b": Y[:2].reshape(1, 2)}
    product = lambda p: p["a"][:2] * p["b"]
    close(jit(jacfwd(product))(pair), jacrev(product)(pair))


def test_transformations_commute():
    scalar = lambda x, y: f(x, y).sum()
    direct = grad(scalar)(X, Y)
    close(jit(grad(scalar))(X, Y), direct)
    close(grad(jit(scalar))(X, Y), direct)
    close(vmap(grad(lambda x, y: f(x, y)))(X, Y), direct)
    close(grad(lambda x, y: vmap(f)(x, y).sum())(X, Y), direct)
    close(jit(vmap(grad(jit(lambda x, y: f(x, y)))))(X, Y), direct)
    close(vmap(jit(grad(lambda x, y: f(x, y))))(X, Y), direct)
    second = vmap(grad(grad(lambda x, y: f(x, y))))(X, Y)
    close(grad(lambda x: grad(scalar)(x, Y).sum())(X), second, 1e-4)
    close(jvp(lambda x: grad(scalar)(x, Y), (X,), (np.ones(3, np.float32),))[1], second, 1e-4)
    close(grad(lambda x: jvp(lambda x: f(x, Y), (x,), (jnp.ones(3),))[1].sum())(X), second, 1e-4)


def test_perturbations_are_not_confused():
    # d/dx [x · d/dy (x + y)] = 1, and not 2.
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert jvp(lambda x: x * jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,))[1] == 1.0
    assert grad(lambda x: jvp(lambda y: y * x, (1.0,), (x,))[1])(3.0) == 6.0


def test_higher_derivatives_of_tanh():
    g = jnp.tanh
    t = np.tanh(0.5)
    expected = [t, 1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
    for value in expected:
        close(g(0.5), np.float32(value), 1e-4)
        g = grad(g)


def test_python_control_flow_is_differentiated_as_it_runs():
    def loops(x, n):
        total = 0.0
        for k in range(n):
            total = total + x**k if k % 2 else total * x
        return total

    def recursive(x, n):
        return x if n == 0 else jnp.sin(recursive(x, n - 1)) * x

    for fun in (loops, recursive):
        for n in (1, 2, 5):
            with phlox.enable_x64(True):
                h = 1e-6
                slope = (fun(0.7 + h, n) - fun(0.7 - h, n)) / (2 * h)
                close(grad(fun)(0.7, n), slope, 1e-6)


def test_results_that_do_not_depend_on_the_argument():
    assert grad(lambda x: 3.0)(1.0) == 0.0
    assert grad(lambda x: jnp.floor(x))(1.5) == 0.0
    assert grad(lambda x: phlox.lax.stop_gradient(x) * x)(3.0) == 3.0
    close(vmap(lambda x: 2.0)(X), np.full(3, 2.0, np.float32))
    close(grad(lambda p: p["a"])({"a": 1.0, "b": X}), {"a": 1.0, "b": np.zeros(3)})


def test_aux_and_argnums():
    (value, aux), gradient = phlox.value_and_grad(lambda x: (x**2, {"kept": x + 1}), has_aux=True)(3.0)
    assert (float(value), float(aux["kept"]), float(gradient)) == (9.0, 4.0, 6.0)
    assert grad(lambda x: (x**2, {"k": "text", "x": x}), has_aux=True)(3.0) == (6.0, {"k": "text", "x": 3.0})
    pair = grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 3.0)
    assert isinstance(pair, tuple)
    assert [float(g) for g in pair] == [3.0, 2.0]
    assert grad(lambda x, y: x * y, argnums=-1)(2.0, 3.0) == 2.0
    assert grad(lambda x, *, k: x * k)(2.0, k=5.0) == 5.0
    out, _pull, aux = vjp(lambda x: (x * 2, x), 3.0, has_aux=True)
    assert (float(out), float(aux)) == (6.0, 3.0)
    assert jvp(lambda x: (x * 2, x), (3.0,), (1.0,), has_aux=True)[2] == 3.0
    for transform in (jacfwd, jacrev, hessian):
        assert transform(lambda x: (x, {"k": "text", "x": x}), has_aux=True)(3.0)[1] == {"k": "text", "x": 3.0}
    for transform in (grad, phlox.value_and_grad, jacfwd, jacrev, hessian):
        with pytest.raises(ArgumentError, match="argnums must be an int or a sequence of ints, got None"):
            transform(lambda x: x, argnums=None)(3.0)


@pytest.mark.parametrize("transform", [phlox.jit, phlox.vmap, grad])
def test_tracers_are_not_pickled(transform):
    with pytest.raises(ConcretizationTypeError, match=r"Pickling needs the value of f32\[\], which is traced"):
        transform(pickle.dumps)(jnp.ones(2) if transform is phlox.vmap else 1.0)


def test_integer_inputs_have_tangents_of_no_type():
    gradient = grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(2.0, 3)
    assert gradient[1].dtype == phlox.float0
    zero = np.zeros((), phlox.float0)
    assert jvp(lambda x, n: x * n, (2.0, 3), (1.0, zero))[1] == 3.0
    assert vjp(lambda x, n: x * n, 2.0, 3)[1](1.0)[1].dtype == phlox.float0


def test_complex_derivatives_follow_the_convention():
    z = 1.0 + 2.0j
    close(grad(lambda z: z.real**2 + z.imag**3)(z), np.complex64(2 - 12j))
    close(grad(lambda z: z**3, holomorphic=True)(z), np.complex64(3 * z**2))
    close(grad(jnp.abs)(z), np.complex64(np.conj(z) / abs(z)))


def test_vjp_functions_are_pytrees():
    _, pull = vjp(lambda x: jnp.sin(x) * x, X)
    leaves, tree = phlox.tree.flatten(pull)
    again = tree.unflatten(leaves)
    close(again(np.ones(3, np.float32)), pull(np.ones(3, np.float32)))
    close(jit(lambda pull, ct: pull(ct))(pull, X), pull(X))
    close(vmap(pull)(np.eye(3, dtype=np.float32))[0], jacrev(lambda x: jnp.sin(x) * x)(X))


def test_residuals_of_a_jitted_function_are_not_computed_twice():
    jaxpr = make_jaxpr(grad(jit(lambda x: jnp.sin(jnp.exp(x)))))(1.0)
    text = str(jaxpr)
    assert text.count("= exp ") == 1
    assert text.count("= cos ") == 1


# --- batching -------------------------------------------------------------------------------------------


def test_axes_of_arguments_and_results():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    for axis in (-3, -2, -1, 0, 1, 2):
        close(vmap(lambda r: r.sum(), in_axes=axis)(x), x.sum(tuple(i for i in range(3) if i != axis % 3)))
        out = vmap(lambda r: r * 2, in_axes=axis, out_axes=axis)(x)
        close(out, x * 2)
    a, b = vmap(lambda r: (r, r.sum()), out_axes=(1, 0))(x)
    assert (a.shape, b.shape) == ((3, 2, 4), (2,))
    nested = {"p": x, "q": (np.ones(2, np.float32), 5.0)}
    out = vmap(lambda d: d["p"].sum() * d["q"][0] + d["q"][1], in_axes=({"p": 0, "q": (0, None)},))(nested)
    close(out, x.sum((1, 2)) + 5)
    close(vmap(lambda x, *, k: x + k)(x, k=np.array([1.0, 2.0], np.float32)), x + np.array([1, 2])[:, None, None])
    close(vmap(lambda: 1.0, axis_size=3)(), np.ones(3))
    close(vmap(lambda x: x, out_axes=None, in_axes=None, axis_size=2)(3.0), 3.0)


def test_nested_batches():
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    outer = vmap(lambda a: vmap(lambda b: a * b)(X))
    close(outer(X), np.outer(X, X))
    close(vmap(vmap(lambda v: v + 1))(x), x + 1)
    close(vmap(lambda a, b: jnp.dot(a, b), (None, 0))(X, np.stack([X, Y])), [X @ X, X @ Y])


@pytest.mark.parametrize("op", ["psum", "pmean", "pmax", "pmin"])
def test_collectives_over_a_batch(op):
    reduce = {"psum": np.sum, "pmean": np.mean, "pmax": np.max, "pmin": np.min}[op]
    collective = getattr(phlox.lax, op)
    close(vmap(lambda x: collective(x, "i"), axis_name="i")(X), np.full(3, reduce(X)))
    close(vmap(lambda x: collective({"a": x, "b": 2.0 * x}, "i")["b"], axis_name="i")(X), np.full(3, reduce(2 * X)))
    close(jit(vmap(jit(lambda x: x - collective(x, "i")), axis_name="i"))(X), X - reduce(X))
    two = vmap(vmap(lambda x: collective(x, ("i", "j")), axis_name="j"), axis_name="i")
    close(two(np.stack([X, Y])), np.full((2, 3), reduce(np.stack([X, Y]))))
    one = vmap(vmap(lambda x: collective(x, "i"), axis_name="j"), axis_name="i")
    close(one(np.stack([X, Y])), np.stack([reduce(np.stack([X, Y]), 0)] * 2))
    with phlox.enable_x64(True):
        x = X.astype(np.float64)
        loss = lambda x: (vmap(lambda v: jnp.sin(v * 2) * collective(v**2, "i"), axis_name="i")(x) * Y).sum()
        h, d = 1e-6, Y.astype(np.float64)
        close(np.dot(grad(loss)(x), d), (loss(x + h * d) - loss(x - h * d)) / (2 * h), 1e-5)


def test_gradients_of_extrema_among_examples():
    # Each example's derivative is the sum of the derivatives of the examples' results, as that of psum is.
    x = np.array([1.0, 3.0, 3.0, 2.0])
    close(vmap(grad(lambda x: phlox.lax.pmax(x, "i")), axis_name="i")(x), [0.0, 2.0, 2.0, 0.0])
    close(vmap(grad(lambda x: phlox.lax.pmin(x, "i")), axis_name="i")(x), [4.0, 0.0, 0.0, 0.0])


def test_axis_index_and_size():
    close(vmap(lambda x: phlox.lax.axis_index("i"), axis_name="i")(X), [0, 1, 2])
    close(vmap(lambda x: x * phlox.lax.psum(1, "i"), axis_name="i")(X), X * 3)
    grid = vmap(vmap(lambda x: phlox.lax.axis_index(("i", "j")), axis_name="j"), axis_name="i")
    close(grid(np.ones((2, 3))), np.arange(6).reshape(2, 3))


def test_random_keys_are_mapped():
    keys = phlox.random.split(phlox.random.key(0), 4)
    drawn = vmap(lambda k: phlox.random.normal(k, (2,)))(keys)
    for k, row in zip(keys, drawn, strict=True):
        np.testing.assert_array_equal(row, phlox.random.normal(k, (2,)))


@pytest.mark.parametrize("transform", [jacfwd, jacrev, hessian])
def test_jacobians_of_empty_trees(transform):
    assert transform(lambda x: ())(1.0) == () == transform(lambda x: x)(()) == transform(lambda x: 1.0)(())


def test_errors_of_hessian_name_it():
    for f, x in ((jnp.sin, 1), (jnp.sin, 1j), (lambda x: x > 0, 1.0), (3, 1.0), (jnp.sin, "a")):
        with pytest.raises(phlox.errors.PhloxError, match="hessian") as caught:
            hessian(f)(x)
        assert "jac" not in caught.value.what


@pytest.mark.parametrize("transform", [jvp, grad, jacfwd, jacrev, hessian, vjp, linearize])
def test_derivatives_at_python_numbers_give_way_in_promotions(transform):
    run = {
        jvp: lambda f: jvp(f, (1.0,), (1.0,))[1],
        vjp: lambda f: vjp(f, 1.0)[1](1.0)[0],
        linearize: lambda f: linearize(f, 1.0)[1](1.0),
    }.get(transform, lambda f: transform(f)(1.0))
    assert run(lambda x: x * x).weak_type
    if transform in (jacfwd, jacrev):
        assert transform(lambda x: x * jnp.ones(2))(1.0).weak_type == (transform is jacrev)


def test_vmap_forms_no_words_for_calls_that_work(monkeypatch):
    monkeypatch.setattr(phlox._api.jit.arguments, "leaf_names", None)
    assert vmap(lambda x, y: x + y, axis_size=2)(jnp.ones(2), y=jnp.ones(2)).tolist() == [2, 2]


def test_what_nobody_wants_of_a_pullback_is_not_computed():
    out, pullback = vjp(lambda x, y: x * y, X, Y)
    wished = pullback.with_refs(phlox.ad.DontWant(), phlox.ad.GradValue())
    found = jit(lambda: wished(out)).trace()
    assert [eqn.primitive.name for eqn in found.jaxpr.eqns] == ["mul"]
    nothing, of_y = wished(out)
    assert nothing == phlox.ad.DidntWant()
    close(of_y, pullback(out)[1])


def test_closed_over_arrays_are_shown_where_they_are_used_if_a_flag_says_so():
    def closing(x):
        return jnp.sin(X) + x, Y

    with phlox._base.config.scope(use_simplified_jaxpr_constants=True):
        program = make_jaxpr(closing)(1.0)
    assert "sin [...]:f32[3]" in str(program)
    assert program.consts == []
    assert str(program.jaxpr.outvars[1]) == "[...]:f32[3]"
    close(phlox.core.eval_jaxpr(program.jaxpr, [], 1.0), closing(1.0))
    assert make_jaxpr(closing).__module__ == "phlox"


def test_python_may_ask_for_values_of_what_is_differentiated_outside_of_programs():
    asked = {
        "int": lambda x: x * int(x),
        "bool": lambda x: x * 2 if x else x,
        "item": lambda x: x * x.item(),
        "range": lambda x: sum(x for _ in range(int(x))),
        "split": lambda x: x * len(jnp.split(jnp.ones(4), x)),
        "arange": lambda x: x * jnp.arange(x).sum(),
    }
    slopes = {"int": 2.0, "bool": 2.0, "item": 2.0, "range": 2.0, "split": 2.0, "arange": 1.0}
    for name, f in asked.items():
        assert float(phlox.grad(f)(2.0)) == slopes[name], name
        assert float(phlox.jvp(f, (2.0,), (1.0,))[1]) == slopes[name], name
        with pytest.raises(phlox.errors.ConcretizationTypeError):
            phlox.jit(phlox.grad(f))(2.0)
    with pytest.raises(phlox.errors.ConcretizationTypeError):  # the derivative would be lost
        phlox.grad(lambda x: float(x) * x)(2.0)


def test_stacked_scalars_of_a_batch_are_rows():
    # Put together one by one in turn, they made a batch of differential equations take 1.8 times as long.
    text = phlox.jit(phlox.vmap(lambda x: jnp.stack([x[0] * x[1], x[1]]))).lower(jnp.ones((64, 2))).as_text()
    assert "dimension = 0 : i64}> : (tensor<1x64xf32>, tensor<1x64xf32>)" in text
    x = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    got = phlox.vmap(lambda row: jnp.stack([row[0], row[1] * row[2], 1.0]))(x)
    np.testing.assert_array_equal(got, np.stack([x[:, 0], x[:, 1] * x[:, 2], np.ones(4)], axis=1))


def test_results_are_arrays_where_a_function_returns_its_numpy_argument():
    for same in (lambda x: x, jnp.squeeze, jnp.asarray, jnp.real, lambda x: x.astype("float32")):
        x = np.ones((2, 3), np.float32)
        results = [vmap(same)(x), jvp(same, (x,), (x,))[0], linearize(same, x)[0], vjp(same, x)[0]]
        results.append(phlox.value_and_grad(same)(x[0, 0])[0])
        assert all(isinstance(y, phlox.Array) and y.dtype == x.dtype for y in results)


def test_functions_whose_name_is_no_text():
    """As objects of libraries whose ``__name__`` is an attribute of another kind."""

    class Named:
        __name__ = 3.0

        def __call__(self, x):
            return x * 2

    assert phlox.vmap(phlox.grad(phlox.jit(Named())))(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert phlox.checkpoint(Named())(1.0) == 2


def dense(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def test_arguments_that_may_not_be_saved_are_put_in_again():
    params, x = {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3)}, jnp.ones((4, 2))
    out, pullback = vjp(dense, params, x)
    expected = pullback(jnp.ones_like(out))
    for flags in [(False, True), ({"w": False, "b": True}, True), ((True, False), True)]:
        out, pullback = vjp(dense, params, x, saveable_args=flags)
        assert repr(pullback.args_res[0]) == "{'b': NotNeeded(), 'w': NotSaveable()}"
        assert len(phlox.tree.leaves(pullback)) == 2
        with pytest.raises(OptionError, match=r"not-saveable residuals: .*args\[0\]\['w'\]"):
            pullback(jnp.ones_like(out))
        restored = [pullback.replace(args_res=[params, x]), pullback]
        pullback.args_res[0]["w"] = params["w"]
        for one in restored:
            phlox.tree.map(np.testing.assert_array_equal, one(jnp.ones_like(out)), expected)


def test_a_pullback_without_its_weights_goes_from_one_program_to_another():
    w, x = jnp.arange(6.0).reshape(2, 3), jnp.ones((4, 2))
    forward = jit(lambda w, x: vjp(jnp.matmul, x, w, saveable_args=(True, False)))

    @jit
    def backward(pullback, w, ct):
        pullback.args_res[1] = w
        return pullback(ct)

    out, pullback = forward(w, x)
    dx, dw = backward(pullback, w, jnp.ones_like(out))
    np.testing.assert_array_equal(dx, jnp.ones_like(out) @ w.T)
    np.testing.assert_array_equal(dw, x.T @ jnp.ones_like(out))


def test_placeholders_are_in_no_class_of_the_user():
    """Its class may refuse what is no array."""

    class Pair:
        def __init__(self, a, b):
            assert a.ndim == b.ndim == 1
            self.a, self.b = a, b

    phlox.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c))
    _, pullback = vjp(lambda p: jnp.sin(p.a) * 2 + p.b, Pair(jnp.ones(2), jnp.ones(2)))
    assert repr(pullback.args_res) == "[(NotNeeded(), NotNeeded())]"
    _, pullback = vjp(lambda p: p.a * p.b, Pair(X, X), saveable_args=((False, True),))
    pullback.args_res[0] = Pair(X, X)
    np.testing.assert_array_equal(pullback(X)[0].a, X * X)


def test_trees_of_bools_must_fit_the_arguments():
    for flags, said in [((True,), "prefix"), (((True, False), True), "leaf"), ("no", "'no'"), ((1, True), "is 1")]:
        with pytest.raises(OptionError, match=said):
            vjp(jnp.matmul, X, X, saveable_args=flags)
    with pytest.raises(OptionError, match="saveable_args must be a tree prefix"):
        vjp(dense, {"w": X, "b": X}, X, saveable_args=({"w": True, "c": True}, True))


def test_in_nzs_leaves_arguments_out_of_the_derivative():
    split = lambda x, y: {"a": jnp.sin(x), "b": (x * y, jnp.cos(y))}
    for flags, nonzero in [((True, False), {"a": True, "b": (True, False)}), (True, {"a": True, "b": (True, True)})]:
        out, pullback = vjp(split, 2.0, 3.0, in_nzs=flags)
        assert pullback.out_nzs == nonzero
        dx, dy = pullback(phlox.tree.map(jnp.ones_like, out))
        np.testing.assert_allclose(dx, np.cos(2.0) + 3.0, rtol=1e-6)
        np.testing.assert_allclose(dy, 2.0 - np.sin(3.0) if flags is True else 0.0, rtol=1e-6)
        _, linear = linearize(split, 2.0, 3.0, in_nzs=flags)
        assert linear.out_nzs == nonzero
        tangent = linear(1.0, 1.0)["b"]
        np.testing.assert_allclose(tangent, (5.0, -np.sin(3.0)) if flags is True else (3.0, 0.0), rtol=1e-6)
