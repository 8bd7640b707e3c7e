"""custom_jvp and custom_vjp: the rules are called, checked and composed as in jax."""

import functools

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("custom derivatives")
X = np.array([0.5, -1.0, 2.0], np.float32)


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


def with_jvp(m, **options):
    @functools.partial(m.custom_jvp, **options)
    def f(x, y):
        return {"s": m.numpy.sin(x) * y, "n": y}

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return f(x, y), {"s": 10 * tx * y + 100 * ty, "n": ty}

    return f


def with_vjp(m):
    @m.custom_vjp
    def f(x, y):
        return m.numpy.sin(x) * y, y

    def backward(saved, ct):
        _x, y = saved
        return 10 * ct[0] * y, 100 * ct[0] + ct[1]

    f.defvjp(lambda x, y: (f(x, y), (x, y)), backward)
    return f


FIRST = {
    "custom_jvp": lambda m: lambda x, y: with_jvp(m)(x, y)["s"],
    "custom_vjp": lambda m: lambda x, y: with_vjp(m)(x, y)[0],
}
kinds = pytest.mark.parametrize("kind", FIRST)


@kinds
def test_under_every_transformation(kind):
    f = FIRST[kind]
    total = lambda m: lambda x, y: (f(m)(x, y) * np.arange(1.0, 4.0, dtype=np.float32)).sum()
    y = X[::-1].copy()
    both(lambda m, x, y: f(m)(x, y), X, y, what="value")
    both(lambda m, x, y: m.grad(total(m), (0, 1))(x, y), X, y, what="grad")
    both(lambda m, x, y: m.value_and_grad(total(m))(x, y), X, y, what="value_and_grad")
    both(lambda m, x, y: m.vjp(f(m), x, y)[1](x), X, y, what="vjp")
    both(lambda m, x, y: m.vmap(f(m))(x, y), X, y, what="vmap")
    both(lambda m, x, y: m.vmap(f(m), (0, None))(x, 2.0), X, y, what="vmap over one")
    both(lambda m, x, y: m.vmap(m.grad(lambda x, y: f(m)(x, y), (0, 1)))(x, y), X, y, what="vmap of grad")
    both(lambda m, x, y: m.grad(lambda x: m.vmap(f(m))(x, y).sum())(x), X, y, what="grad of vmap")
    both(lambda m, x, y: m.jacrev(f(m))(x, y), X, y, what="jacrev")
    both(
        lambda m, x, y: m.grad(lambda x: m.grad(lambda x: f(m)(x, y).sum() ** 2)(x).sum())(x), X, y, what="grad of grad"
    )
    both(lambda m, x, y: m.jvp(f(m), (x, y), (x, y)), X, y, what="jvp")
    both(lambda m, x, y: m.jacfwd(f(m))(x, y), X, y, what="jacfwd")
    both(lambda m, x, y: m.linearize(f(m), x, y)[1](x, y), X, y, what="linearize")
    both(lambda m, x, y: m.pmap(f(m))(x, y), X, y, what="pmap", jit=False)


@kinds
def test_a_function_without_a_rule(kind):
    """jax raises AttributeError; the error of phlox is the one of every rule that is missing."""
    for m, error in ((phlox, phlox.errors.MissingRuleError), (jax, AttributeError)):
        bare = getattr(m, kind)(lambda x: x * 2)
        for call in (bare, m.grad(lambda x, bare=bare: bare(x).sum()), m.jit(bare)):
            with pytest.raises(error):
                call(X)


def test_arguments_that_are_not_differentiated():
    def scaled(m):
        @functools.partial(m.custom_jvp, nondiff_argnums=(0, 2))
        def f(g, x, n):
            return g(x) * n

        f.defjvp(lambda g, n, primals, tangents: (f(g, *primals, n), 5 * n * tangents[0]))
        return f

    def clipped(m):
        @functools.partial(m.custom_vjp, nondiff_argnums=(1,))
        def f(x, limit):
            return x

        f.defvjp(lambda x, limit: (x, None), lambda limit, _, ct: (m.numpy.clip(ct, -limit, limit),))
        return f

    both(lambda m, x: m.grad(lambda x: scaled(m)(m.numpy.sin, x, 3).sum())(x), X)
    both(lambda m, x: m.grad(lambda x: (clipped(m)(x, 0.5) ** 2).sum())(x), X)
    both(lambda m, x: m.vmap(m.grad(lambda x: clipped(m)(x, 0.5) ** 2))(x), X)

    def by_name(m):
        f = functools.partial(m.custom_jvp, nondiff_argnames=("n",))(lambda x, n: x * n)
        f.defjvp(lambda n, primals, tangents: (f(*primals, n), 5 * tangents[0]))
        return f

    both(lambda m, x: m.grad(lambda x: by_name(m)(x, n=2).sum())(x), X, jit=False)

    def sampled(m):
        f = functools.partial(m.custom_jvp, nondiff_argnums=(1,))(lambda x, key: x * m.random.uniform(key))
        f.defjvp(lambda key, primals, tangents: (f(*primals, key), 5 * tangents[0]))
        return lambda x: m.value_and_grad(f)(x, m.random.key(m.numpy.sum(x).astype(int)))

    both(lambda m, x: m.vmap(sampled(m))(x), X)
    both(lambda m, x: sampled(m)(x), X[0])


def test_defjvps():
    def f(m):
        made = m.custom_jvp(lambda x, y: x * y)
        made.defjvps(lambda t, out, x, y: 3 * t * y, None)
        return made

    both(lambda m, x: m.jvp(f(m), (x, x), (x, x)), X)
    both(lambda m, x: m.grad(lambda x, y: f(m)(x, y).sum(), (0, 1))(x, x), X)

    def g(m):
        made = m.custom_jvp(lambda x, y: m.numpy.sin(x) + y)
        made.defjvps(lambda t, out, x, y: t * out, lambda t, out, x, y: 2 * t)
        return made

    both(lambda m, x: m.jacfwd(g(m), (0, 1))(x, x), X)


def test_default_and_keyword_arguments():
    def f(m):
        @m.custom_jvp
        def scaled(x, y=2.0):
            return x * y

        scaled.defjvp(lambda primals, tangents: (scaled(*primals), 7 * tangents[0]))
        return scaled

    def g(m):
        @m.custom_vjp
        def scaled(x, y=2.0):
            return x * y

        scaled.defvjp(lambda x, y: (x * y, y), lambda y, ct: (7 * ct, None))
        return scaled

    for made in (f, g):
        both(lambda m, x, made=made: m.grad(lambda x: made(m)(x).sum())(x), X)
        both(lambda m, x, made=made: m.grad(lambda x: made(m)(x, y=3.0).sum())(x), X)
        both(lambda m, x, made=made: m.grad(lambda x: made(m)(y=3.0, x=x).sum())(x), X)

    def named_only(m):
        @m.custom_jvp
        def scaled(x, *, y=2.0):
            return x * y

        scaled.defjvp(lambda primals, tangents: (scaled(*primals), 7 * tangents[0]))
        return scaled

    both(lambda m, x: (named_only(m)(x), m.jit(named_only(m))(x=x), m.grad(lambda x: named_only(m)(x).sum())(x)), X)


def test_trees_and_integers():
    def f(m):
        @m.custom_vjp
        def pick(tree, i):
            return m.numpy.asarray(tree["a"])[i] * tree["b"]

        pick.defvjp(
            lambda tree, i: (pick(tree, i), (tree, i)), lambda saved, ct: ({"a": saved[0]["a"] * 0 + ct, "b": ct}, None)
        )
        return pick

    both(lambda m, x: m.grad(lambda t: f(m)(t, 1))({"a": x, "b": np.float32(2)}), X)
    both(lambda m, x: m.jit(m.grad(lambda t, i: f(m)(t, i)))({"a": x, "b": np.float32(2)}, 1), X)
    both(lambda m, x: m.vmap(lambda t, i: f(m)(t, i), (None, 0))({"a": x, "b": np.float32(2)}, np.arange(3)), X)


def test_methods_and_names():
    class Model:
        pass

    for m in (phlox, jax):

        @m.custom_jvp
        def documented(x):
            """Doubles."""
            return 2 * x

        documented.defjvp(lambda p, t: (documented(*p), t[0]))
        assert documented.__name__ == "documented" and documented.__doc__ == "Doubles."
        Model.f = documented
        assert Model.f is documented


def jvp_rule(rule):
    def make(m):
        f = m.custom_jvp(lambda x: x * 2)
        f.defjvp(rule)
        return lambda x: m.jvp(f, (x,), (x,))

    return make


def vjp_rule(forward, backward):
    def make(m):
        f = m.custom_vjp(lambda x: x * 2)
        f.defvjp(forward, backward)
        return m.grad(lambda x: f(x).sum())

    return make


WRONG = {
    "jvp returns no pair": jvp_rule(lambda p, t: p[0]),
    "jvp returns three": jvp_rule(lambda p, t: (p[0], t[0], 1)),
    "jvp, tangent of other structure": jvp_rule(lambda p, t: (p[0] * 2, (t[0],))),
    "jvp, tangent of other shape": jvp_rule(lambda p, t: (p[0] * 2, t[0].sum())),
    "jvp, tangent of other dtype": jvp_rule(lambda p, t: (p[0] * 2, t[0].astype("int32"))),
    "fwd returns no pair": vjp_rule(lambda x: x, lambda r, ct: (ct,)),
    "bwd returns no tuple": vjp_rule(lambda x: (x * 2, None), lambda r, ct: ct),
    "bwd returns too many": vjp_rule(lambda x: (x * 2, None), lambda r, ct: (ct, ct)),
    "bwd, other shape": vjp_rule(lambda x: (x * 2, None), lambda r, ct: (ct.sum(),)),
    "bwd, other structure": vjp_rule(lambda x: (x * 2, None), lambda r, ct: ({"a": ct},)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name):
    both(lambda m, x: WRONG[name](m)(x), X, jit=False)


def test_jvp_of_custom_vjp_is_refused():
    both(lambda m, x: m.jvp(lambda x: with_vjp(m)(x, x)[0], (x,), (x,)), X, jit=False)
    both(lambda m, x: m.jacfwd(lambda x: with_vjp(m)(x, x)[0])(x), X, jit=False)


def test_closed_over_tracers():
    def f(m, x, scale):
        @m.custom_jvp
        def g(y):
            return y * scale

        g.defjvp(lambda p, t: (g(*p), 3 * t[0] * scale))
        return g(x)

    both(lambda m, x: m.grad(lambda x: f(m, x, 2.0).sum())(x), X)
    both(lambda m, x: m.jit(lambda x, s: m.grad(lambda x: f(m, x, s).sum())(x))(x, 2.0), X)
    both(lambda m, x: m.vmap(lambda s: f(m, x, s))(x), X)


def test_partial_functions_take_their_arguments_as_they_are():
    def f(m):
        fun = functools.partial(lambda x, y, a: x + y * a, a=0.5)
        made = m.custom_jvp(fun)
        made.defjvp(lambda p, t: m.jvp(fun, p, t))
        return made

    both(lambda m, x: m.grad(lambda x: f(m)(*x))((x[0], x[1])), X)
    for m in (phlox, jax):
        with pytest.raises(TypeError, match="could not be resolved to positions: a"):
            f(m)(1.0, 2.0, a=0.1)


def test_values_are_concrete_at_compile_time():
    def f(m, kind, x):
        def fun(x):
            assert x == 0  # a Python condition on a value
            return x + 1

        made = getattr(m, kind)(fun)
        if kind == "custom_jvp":
            made.defjvp(lambda p, t: (made(*p), t[0]))
        else:
            made.defvjp(lambda x: (made(x), None), lambda _, ct: (ct,))
        with m.ensure_compile_time_eval():
            return made(m.numpy.zeros(())) + x

    for kind in ("custom_jvp", "custom_vjp"):
        for way in (lambda m, g: m.jit(g), lambda m, g: m.vmap(g), lambda m, g: m.grad(lambda x: g(x).sum())):
            both(lambda m, x: way(m, functools.partial(f, m, kind))(x), X)


def test_trees_whose_nodes_take_no_none():
    class Filled(list):
        pass

    def unflatten(_, children):
        assert children[0] is not None
        return Filled(children)

    for m in (phlox, jax):
        m.tree_util.register_pytree_node(Filled, lambda x: (x, None), unflatten)

    def f(m):
        made = m.custom_vjp(lambda x: x[0])
        made.defvjp(lambda x: (x[0], None), lambda _, ct: (Filled([3 * ct]),))
        return made

    both(lambda m: m.grad(f(m))(Filled([1.0]))[0])


def test_words_of_missing_rules_and_arguments():
    for m in (phlox, jax):
        for kind, rule in (("custom_jvp", "JVP"), ("custom_vjp", "VJP")):

            def foo(x, y, *, z=None):
                return x

            f = getattr(m, kind)(foo)
            for call in (f, lambda x: m.grad(f)(x)):
                with pytest.raises(AttributeError, match=f"No {rule} defined for {kind} function foo using def"):
                    call(2.0)
            f.defjvp(lambda p, t: (p, t)) if rule == "JVP" else f.defvjp(lambda x, y: (x, y), lambda r, ct: (ct, ct))
            begin = rf"The input arguments to the {kind}-decorated function .*foo.*\n"
            with pytest.raises(TypeError, match=begin + "missing a required argument: 'y'"):
                f(0.5)
            with pytest.raises(TypeError, match=begin + ".*could not be resolved to positions: z"):
                f(0.5, 0.1, z=1.0)


def in_a_loop(m, f, x):
    return m.lax.scan(lambda x, _: (f(x), None), x, None, length=1)[0]


WORDS = {
    "jvp, structure": r"Custom JVP rule rule for function f must produce a pair \(list or tuple of length two\) where the "
    r"first element represents the primal output \(equal in value to the output of the custom_jvp-decorated function f, "
    r"and in particular of the same container/pytree structure\), but instead the JVP rule output's first element had "
    r"container/pytree structure:\n    \(float32\[\], float32\[\]\)\nwhile the custom_jvp-decorated function f had output "
    r"container/pytree structure:\n    float32\[\]\.",
    "jvp, types": r"and in particular with leaves of the same shape/dtype\), but instead the JVP rule output's first "
    r"element had shapes/dtypes of:\n    float32\[3\]\nwhile the custom_jvp-decorated function f had output "
    r"shapes/dtypes of:\n    float32\[\]",
    "jvp, tangents": r"Custom JVP rule must produce primal and tangent outputs with corresponding shapes and dtypes. "
    r"Expected float32\[\] \(tangent type of float32\[\]\) but got float32\[3\].",
    "fwd, structure": r"Custom VJP fwd rule rule for function f must produce a pair \(list or tuple of length two\) where "
    r"the first element represents the primal output \(equal to the output of the custom_vjp-decorated function f\) and "
    r"the second element represents residuals \(i.e. values stored from the forward pass for use on the backward pass\), "
    r"but instead the fwd rule output's first element had container/pytree structure:\n    "
    r"\(float32\[\], float32\[\]\)\nwhile the custom_vjp-decorated function f had output container/pytree structure",
    "fwd, types": r"but instead the fwd rule output's first element had shapes/dtypes of:\n    float32\[3\]\nwhile the "
    r"custom_vjp-decorated function f had output shapes/dtypes of:\n    float32\[\]",
}


@pytest.mark.parametrize("name", WORDS)
def test_words_of_wrong_rules(name):
    for m in (phlox, jax):
        three = lambda x: m.numpy.stack([x] * 3)
        wrong = {"structure": lambda x: (x, x), "types": three, "tangents": lambda x: x}[name.split(", ")[1]]

        def f(x):
            return x

        def rule(p, t=None):
            if t is None:
                return wrong(p), None
            return wrong(p[0]), three(t[0]) if name == "jvp, tangents" else wrong(t[0])

        if name.startswith("jvp"):
            f = m.custom_jvp(f)
            f.defjvp(rule)
            run = lambda x: m.jvp(lambda x: in_a_loop(m, f, x), (x,), (x,))
        else:
            f = m.custom_vjp(f)
            f.defvjp(lambda x: rule(x), lambda _, ct: (ct,))
            f.fwd.__name__ = "rule"
            run = m.grad(lambda x: in_a_loop(m, f, x))
        with pytest.raises(TypeError, match=WORDS[name]):
            run(np.float32(1))


@pytest.fixture
def twice():
    def make(m):
        @m.custom_jvp
        def f(x):
            return 2.0 * x

        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
        return f

    return make


@pytest.mark.whole
def test_custom_jvp_functions_are_transposed(twice):
    for m in (phlox, jax):
        f = twice(m)
        (ct,) = m.linear_transpose(f, 1.0)(3.0)
        assert float(ct) == 6.0
        grads = m.grad(lambda x, m=m, f=f: m.linear_transpose(f, x)(x)[0] * x)(3.0)
        assert float(grads) == 12.0
    solve = lambda m: m.grad(
        lambda b: m.lax.custom_linear_solve(twice(m), b, lambda mv, y: y / 2, transpose_solve=lambda mv, y: y / 2).sum()
    )(m.numpy.ones(3))
    agree(outcome(solve, phlox, ()), outcome(solve, jax, ()), NEAR, "a solve with a custom_jvp function")


# A backward rule may return other cotangents than zero where it gets zeros: flax's fp8 layers update their statistics.
UNMOVED = {
    "a rule without a cotangent": lambda m, f, ignore, x, y: ignore(f(x, y)[0], x),
    "stop_gradient": lambda m, f, ignore, x, y: m.lax.stop_gradient(f(x, y)[0]) + x,
    "an unused result": lambda m, f, ignore, x, y: f(x, y) and x,
    "a branch": lambda m, f, ignore, x, y: m.lax.cond(y > 0, lambda q: q * 0 + x, lambda q: x, f(x, y)[0]),
    "integers": lambda m, f, ignore, x, y: f(x, y)[0].astype(int) + x,
    "a jitted function": lambda m, f, ignore, x, y: ignore(m.jit(f)(x, y)[0], x),
    "small floats": lambda m, f, ignore, x, y: ignore(f(x, y)[0].astype("bfloat16").astype("float32"), x),
    "scan": lambda m, f, ignore, x, y: m.lax.scan(lambda c, _: (ignore(f(c, y)[0], c), None), x, None, length=3)[0],
    "checkpoint": lambda m, f, ignore, x, y: m.checkpoint(lambda x: ignore(f(x, y)[0], x))(x),
    "only zeros": lambda m, f, ignore, x, y: ignore(ignore(f(x, y)[0], x), 1.0),
}


@pytest.mark.parametrize("case", UNMOVED)
@pytest.mark.whole
def test_backward_rules_get_zeros(case):
    def gradients(m, x, y):
        @m.custom_vjp
        def f(x, y):
            return x * 2, y + 1

        f.defvjp(lambda x, y: (f(x, y), y), lambda y, cts: (None, y * 10 + cts[1]))

        @m.custom_vjp
        def ignore(a, b):
            return a + b

        ignore.defvjp(lambda a, b: (a + b, None), lambda _, ct: (None, ct))
        return m.grad(lambda x, y: UNMOVED[case](m, f, ignore, x, y), (0, 1))(x, y)

    both(gradients, np.float32(1.5), np.float32(2))
    both(lambda m, x, y: m.vmap(functools.partial(gradients, m))(x, y), np.float32([1.5, 0.5]), np.float32([2, -3]))
