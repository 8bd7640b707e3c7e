"""Finding mistakes: nan and infinity checks, leaks, checked programs, refusals of tracing and running, checkify."""

import gc
import re

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, lax
from phlox._ir.jaxpr import Jaxpr, JaxprEqn, Var
from phlox._ir.primitive import primitive
from phlox._trace.checks import check_jaxpr
from phlox.experimental import checkify

FLOAT = np.float32


def line_of(error):
    """The text of the user's line that an error names."""
    return error.where.text()


def caught(run, flag="debug_nans"):
    with phlox.config.scope(**{flag: True}), pytest.raises(FloatingPointError) as info:
        run()
    assert isinstance(info.value, errors.InvalidValueError)
    return info.value


# --- debug_nans and debug_infs ------------------------------------------------------------------------------


def user(x):
    y = x - 2
    z = jnp.log(y)  # the line
    return z * 2


def step(carry, x):
    carry = carry - x
    return carry, jnp.sqrt(carry)  # the step


def root(x):
    return jnp.sqrt(x)  # the root


XS = np.ones(6, FLOAT)
PLACES = {
    "eager": (lambda: user(jnp.float32(1)), "log", "# the line", ()),
    "jit": (lambda: phlox.jit(user)(1.0), "log", "# the line", ()),
    "jit in jit": (lambda: phlox.jit(lambda x: phlox.jit(user)(x) + 1)(1.0), "log", "# the line", ("user",)),
    "vmap": (lambda: phlox.vmap(user)(jnp.arange(4.0)), "log", "# the line", ()),
    "jit of vmap": (lambda: phlox.jit(phlox.vmap(user))(jnp.arange(4.0)), "log", "# the line", ()),
    "value_and_grad": (lambda: phlox.value_and_grad(user)(1.0), "log", "# the line", ()),
    "jit of value_and_grad": (lambda: phlox.jit(phlox.value_and_grad(user))(1.0), "log", "# the line", ()),
    "backward": (lambda: phlox.grad(lambda x: root(x) * 0.0)(0.0), "mul", "# the root", ()),
    "jit of backward": (lambda: phlox.jit(phlox.grad(lambda x: root(x) * 0.0))(0.0), "mul", "# the root", ()),
    "jit of backward of jit": (
        lambda: phlox.jit(phlox.grad(lambda x: phlox.jit(root)(x) * 0.0))(0.0), "mul", "# the root", ("root",),
    ),
    "scan": (lambda: lax.scan(step, 3.0, XS), "sqrt", "# the step", ("turn 3 of scan",)),
    "jit of scan": (
        lambda: phlox.jit(lambda x: lax.scan(step, 3.0, x))(XS), "sqrt", "# the step", ("turn 3 of scan",),
    ),
    "scan backwards": (
        lambda: phlox.jit(lambda x: lax.scan(step, 3.0, x, reverse=True))(XS), "sqrt", "# the step", ("turn 3 of scan",),
    ),
    "while": (
        lambda: lax.while_loop(lambda x: x > -9, lambda x: jnp.log(x - 1), 2.5), "log", "while_loop",
        ("turn 1 of while",),
    ),
    "cond": (
        lambda: phlox.jit(lambda x: lax.cond(x > 0, lambda y: y, user, x))(-1.0), "log", "# the line",
        ("branch 0 of cond",),
    ),
    "checkpoint": (lambda: phlox.jit(phlox.checkpoint(user))(1.0), "log", "# the line", ("user",)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_the_first_nan_is_named(name):
    run, operation, line, path = PLACES[name]
    error = caught(run)
    assert (error.primitive, error.value) == (operation, "nan")
    assert line in line_of(error)
    assert error.path == path
    assert f"= {operation} " in error.equation
    for part in path:
        assert part in str(error)


def test_the_line_of_a_cached_function_is_that_of_the_call():
    """`jnp.linalg.norm` is traced once for its types, with the line of the first call."""
    phlox.jit(lambda x: jnp.linalg.norm(x))(XS)

    def f(x):
        return jnp.linalg.norm(x - jnp.inf) - jnp.linalg.norm(x)  # another line

    assert "# another line" in line_of(caught(lambda: phlox.jit(f)(XS * np.inf)))


def test_custom_rules_are_searched():
    twice = phlox.custom_jvp(lambda x: user(x) * 2)
    twice.defjvp(lambda primals, tangents: (twice(*primals), tangents[0]))
    error = caught(lambda: phlox.jit(twice)(1.0))
    assert error.primitive == "log"
    assert "# the line" in line_of(error)


def test_infinities():
    def f(x):
        return 1 / x

    assert caught(lambda: phlox.jit(f)(0.0), "debug_infs").primitive == "div"
    with phlox.debug_nans(True):
        assert np.isinf(phlox.jit(f)(0.0))
    with phlox.debug_infs(True):
        assert np.isnan(phlox.jit(lambda x: x + jnp.nan)(0.0))
    assert caught(lambda: jnp.asarray(1e5, jnp.float16) * 2, "debug_infs").value == "inf"


def test_good_programs_pass_and_share_nothing_with_others():
    f = phlox.jit(lambda x: jnp.log(x))
    assert np.isnan(f(-1.0))
    caught(lambda: f(-1.0))
    assert np.isnan(f(-1.0))
    with phlox.debug_nans(True):
        assert f(1.0) == 0
        assert lax.log(1.0) == 0
        assert phlox.random.split(phlox.random.key(0)).shape == (2,)
        assert phlox.jit(lambda x: (x, x + 1))(1) == (1, 2)
    with pytest.raises(FloatingPointError), phlox.debug_nans(True):
        lax.log(-1.0)
    assert np.isnan(lax.log(-1.0))


def test_values_that_no_result_has_are_no_mistake():
    def safe_log(x):
        return lax.cond(x > 0, jnp.log, jnp.zeros_like, x)

    def log(x):
        y = jnp.log(x)  # the line
        return y

    x = jnp.array([-1.0, 0.0, 1.0])
    with phlox.debug_nans(True), phlox.debug_infs(True):
        np.testing.assert_array_equal(phlox.vmap(safe_log)(x), 0)
        np.testing.assert_array_equal(phlox.vmap(phlox.grad(safe_log))(x), [0, 0, 1])
        assert jnp.linspace(2.0, 3.0, 1) == 2
    assert np.isnan(jnp.linspace(2.0, 3.0, 1, retstep=True)[1])
    # A nan that is selected is one of the operation which gave it.
    error = caught(lambda: phlox.vmap(lambda x: lax.cond(x > 0, jnp.sin, log, x))(x))
    assert error.primitive == "log" and "# the line" in line_of(error)


def test_one_trace_serves_with_and_without_the_check():
    traced = []

    @phlox.jit
    def f(x):
        traced.append(x.shape)
        return x * 2

    f(1.0)
    with phlox.debug_nans(True):
        f(1.0)
    assert len(traced) == 1


def test_donated_arguments_are_kept_for_the_search():
    f = phlox.jit(lambda x: jnp.log(x), donate_argnums=0)
    assert caught(lambda: f(jnp.array([-1.0]))).primitive == "log"


def test_what_no_operation_gives_alone():
    """Fused, the sum of squares overflows nowhere or everywhere; here the search is made to find nothing."""
    f = phlox.jit(lambda x: x + 0)
    with phlox.debug_nans(True):
        f(1.0)
        (entry,) = f._jit._store.entries.values()
        empty = Jaxpr([], entry.program.checks.jaxpr.invars, entry.program.checks.jaxpr.invars, [])
        entry.program.checks = entry.program.checks._replace(jaxpr=empty)
        with pytest.raises(errors.InvalidValueError, match="none of its operations") as info:
            f(float("nan"))
    assert info.value.primitive is None


# --- leaks --------------------------------------------------------------------------------------------------


class Model:
    kept = None


def keeps(x):
    Model.kept = jnp.sin(x)
    return x


LEAKS = {
    "jit": lambda: phlox.jit(keeps)(1.0),
    "grad": lambda: phlox.grad(keeps)(1.0),
    "vmap": lambda: phlox.vmap(keeps)(XS),
    "jvp": lambda: phlox.jvp(keeps, (1.0,), (1.0,)),
    "linearize": lambda: phlox.linearize(keeps, 1.0),
    "make_jaxpr": lambda: phlox.make_jaxpr(keeps)(1.0),
    "eval_shape": lambda: phlox.eval_shape(keeps, 1.0),
    "scan": lambda: lax.scan(lambda c, x: (c, keeps(x)), 0.0, XS),
    "inner jit": lambda: phlox.jit(lambda x: phlox.jit(keeps)(x))(1.0),
}


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_found(name):
    LEAKS[name]()  # nothing happens without the flag, and what was traced is traced again with it
    Model.kept = None
    with phlox.checking_leaks(), pytest.raises(errors.LeakedTracerError, match="Leaked") as info:
        LEAKS[name]()
    assert any("Model" in text or "'kept'" in text for _, holders in info.value.holders for text in holders)
    Model.kept = None


def test_leaks_are_found_in_lists_and_closures():
    seen = []
    with phlox.check_tracer_leaks(True), pytest.raises(errors.LeakedTracerError, match="a list"):
        phlox.jit(lambda x: seen.append(x * 2))(1.0)
    functions = []
    with phlox.check_tracer_leaks(True), pytest.raises(errors.LeakedTracerError, match=r"function .*lambda"):
        phlox.jit(lambda x: functions.append(lambda: x))(1.0)


def several(x):
    y = lax.scan(lambda c, a: (c + jnp.sin(a), c), 0.0, x)[0]
    z = lax.cond(y > 0, lambda: y, lambda: -y)
    return lax.while_loop(lambda c: c < 3.0, lambda c: c + 1.0, z) + y


def differentiable(x):
    @phlox.custom_jvp
    def forward(x):
        return x * 2

    @phlox.custom_vjp
    def backward(x, y):
        return jnp.sin(x) * y

    forward.defjvp(lambda p, t: (forward(*p), t[0] * 2))
    backward.defvjp(lambda x, y: (backward(x, y), (x, y)), lambda r, g: (g * jnp.cos(r[0]), g * r[1]))
    total = lax.fori_loop(0, 3, lambda i, c: c * jnp.sin(c), jnp.sum(phlox.checkpoint(jnp.sin)(x)))
    return forward(backward(total, x[0]))


ORDINARY = {
    "loops": lambda: several(XS),
    "jit of loops": lambda: phlox.jit(several)(XS),
    "grad": lambda: phlox.grad(differentiable)(XS),
    "jit of grad": lambda: phlox.jit(phlox.grad(differentiable))(XS),
    "grad of jit": lambda: phlox.grad(phlox.jit(differentiable))(XS),
    "vmap of grad": lambda: phlox.vmap(phlox.grad(differentiable))(np.ones((2, 3), FLOAT)),
    "jit of vmap of grad": lambda: phlox.jit(phlox.vmap(phlox.grad(differentiable)))(np.ones((2, 3), FLOAT)),
    "vmap of jit": lambda: phlox.vmap(phlox.jit(several))(np.ones((2, 3), FLOAT)),
    "hessian": lambda: phlox.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3))(XS),
    "jacfwd of jit": lambda: phlox.jacfwd(phlox.jit(lambda x: jnp.sin(x) * x))(XS),
    "linearize": lambda: phlox.linearize(phlox.jit(several), XS)[1](XS),
    "vjp": lambda: phlox.vjp(phlox.jit(differentiable), XS)[1](1.0),
    "make_jaxpr": lambda: phlox.make_jaxpr(several)(XS),
    "eval_shape": lambda: phlox.eval_shape(several, XS),
    "random": lambda: phlox.random.normal(phlox.random.key(0), (2,)),
    "pmap": lambda: phlox.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(XS[None]),
    "static": lambda: phlox.jit(lambda x, n: x * n, static_argnums=1)(XS, 3),
    "closed over": lambda: phlox.jit(lambda x: phlox.jit(lambda y: x * y)(x))(XS),
}


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("flag", ["check_tracer_leaks", "enable_checks"])
def test_ordinary_code_passes(flag, name):
    with phlox.config.scope(**{flag: True}):
        ORDINARY[name]()


def test_values_in_reference_cycles_are_no_leaks():
    def f(x):
        cycle = [x]
        cycle.append(cycle)
        return x + 1

    gc.disable()
    try:
        with phlox.checking_leaks():
            assert phlox.jit(f)(1.0) == 2
    finally:
        gc.enable()


# --- programs that are wrong --------------------------------------------------------------------------------


def test_malformed_programs_are_refused():
    aval, other = phlox.typeof(FLOAT(1)), phlox.typeof(np.int32(1))
    sin = primitive("sin")
    x, y, z = Var(aval), Var(aval), Var(other)
    check_jaxpr(Jaxpr([], [x], [y], [JaxprEqn([x], [y], sin, {})]))
    for wrong, message in [
        (Jaxpr([], [x], [y], []), "without a value"),
        (Jaxpr([], [], [y], [JaxprEqn([x], [y], sin, {})]), "without a value"),
        (Jaxpr([], [x, x], [x], []), "two values"),
        (Jaxpr([], [x], [x], [JaxprEqn([x], [x], sin, {})]), "two values"),
        (Jaxpr([], [x], [z], [JaxprEqn([x], [z], sin, {})]), "declares"),
    ]:
        with pytest.raises(errors.PhloxError, match=message):
            check_jaxpr(wrong)


# --- refusing -----------------------------------------------------------------------------------------------


def test_no_tracing():
    f = phlox.jit(lambda x: x * 2)
    f(1.0)
    ones = jnp.ones(3)
    with phlox.no_tracing(True):
        assert float(f(2.0)) == 4
        with pytest.raises(RuntimeError, match=r"no_tracing.*f32\[3\] and before f32\[\]"):
            f(ones)


def test_no_execution():
    f = phlox.jit(lambda x: x * 2)
    x = f(1.0)
    with phlox.no_execution(True):
        f.lower(x).compile()
        for run in (lambda: f(x), lambda: lax.neg(x)):
            with pytest.raises(RuntimeError, match="no_execution"):
                run()
    assert f(x) == 4


def test_sums_of_half_precision():
    x = jnp.ones((3, 1), jnp.bfloat16)
    jitted = phlox.jit(lambda x: primitive("reduce_sum")(x, axes=(0,)))
    primitive("reduce_sum")(x, axes=(0,)), jitted(x)  # what was met before is refused as well
    with phlox.allow_f16_reductions(False):
        with pytest.raises(ValueError, match="allow_f16_reductions"):
            primitive("reduce_sum")(x, axes=(0,))
        with pytest.raises(ValueError, match="allow_f16_reductions"):
            jitted(x)
        primitive("reduce_sum")(x, axes=(1,))
        assert jnp.sum(x) == 3  # in float32
    primitive("reduce_sum")(x, axes=(0,))


def test_old_keys():
    raw = phlox.random.PRNGKey(0)
    with phlox.legacy_prng_key("error"), pytest.raises(ValueError, match="old-style"):
        phlox.random.normal(raw)
    with phlox.legacy_prng_key("warn"), pytest.warns(UserWarning, match="old-style"):
        phlox.random.normal(raw)
    with phlox.enable_custom_prng(True):
        assert phlox.random.PRNGKey(0).dtype == phlox.random.key(0).dtype
        with pytest.warns(FutureWarning, match="old-style"):
            assert phlox.random.split(raw).dtype == phlox.random.key(0).dtype
    assert phlox.random.split(raw).dtype == np.uint32


# --- checkify: what conformance/test_checkify.py does not say ---------------------------------------------


def test_messages():
    def f(x, i):
        checkify.check(x > 0, "{} and {name}", x, name=x * 2)
        return jnp.arange(3.0)[i] / x

    error, _ = checkify.checkify(f, checkify.all_checks)(jnp.float32(-1), 0)
    assert re.fullmatch(r"-1\.0 and -2\.0 \(`check` failed at .*test_debugging.py:\d+ \(f\)\)", error.get())
    assert "checkify.check(x > 0" in error.get_exception().where.text()
    error, _ = phlox.jit(checkify.checkify(f, checkify.automatic_checks))(jnp.float32(0), 7)
    assert (
        error.get()
        == "out-of-bounds indexing for array of shape (3,): index 7 is out of bounds for axis 0 with size 3. "
    )
    error, _ = checkify.checkify(f, checkify.float_checks)(jnp.float32(0), 0)
    assert error.get() == "division by zero"
    error, _ = checkify.checkify(jnp.log, checkify.nan_checks)(jnp.float32(-1))
    assert error.get() == "nan generated by primitive: log."
    with pytest.raises(checkify.JaxRuntimeError, match="nan generated"):
        error.throw()
    assert str(checkify.init_error) == "Error(None)"


def test_batched_messages():
    def f(x):
        checkify.check(x > 0, "got {}", x)

    error, _ = phlox.vmap(checkify.checkify(f))(jnp.array([1.0, -2.0, -3.0]))
    lines = error.get().splitlines()
    assert [line.split(" (`check`")[0] for line in lines] == [
        "at mapped index 1: got -2.0",
        "at mapped index 2: got -3.0",
    ]
    error, _ = checkify.checkify(phlox.vmap(f))(jnp.array([1.0, -2.0, -3.0]))
    assert error.get().startswith("got -3.0")  # as in jax
    with pytest.raises(ValueError, match=r"got -3\.0"):
        phlox.vmap(f)(jnp.array([1.0, -2.0, -3.0]))


def test_checks_on_devices():
    def f(x):
        checkify.check(jnp.all(x > 0), "got {}", x[0])
        return lax.psum(x, "i")

    for x, wanted in (([[1.0]], True), ([[-1.0]], False)):
        error, out = checkify.checkify(phlox.pmap(f, axis_name="i"))(jnp.array(x))
        assert (error.get() is None) == wanted
        assert out.shape == (1, 1)
    with pytest.raises(ValueError, match="got -1"):
        error.throw()


def test_a_checked_loop_is_traced_once():
    traced = []

    @phlox.jit
    def f(x):
        traced.append(x)
        return lax.fori_loop(0, 3, lambda i, y: jnp.sqrt(y - 1), x)

    checked = checkify.checkify(f, checkify.nan_checks)
    for x in (9.0, 1.0, 2.0):
        checked(jnp.float32(x))
    assert len(traced) == 1


def test_checks_stay_though_nobody_reads_what_holds_them():
    def f(x):
        lax.scan(lambda c, y: (checkify.check(y > 0, "y"), c)[::-1], 0.0, x)
        return 1.0

    with pytest.raises(ValueError, match="compiled program"):
        phlox.jit(f)(XS)
    assert checkify.checkify(f)(XS - 1)[0].get().startswith("y ")


def test_batched_while_is_supported():
    def f(x):
        return lax.while_loop(lambda y: y < 3, lambda y: y + jnp.sqrt(y), x)

    checked = checkify.checkify(phlox.vmap(f), checkify.nan_checks)
    assert checked(jnp.array([1.0, 2.0]))[0].get() is None
    assert checked(jnp.array([1.0, -2.0]))[0].get() == "nan generated by primitive: sqrt."


def test_environment_is_described(capsys):
    text = phlox.print_environment_info(return_string=True)
    for word in ("phlox", "jaxlib", np.__version__, "python", "device info", "platform"):
        assert word in text
    assert phlox.print_environment_info() is None
    jax = pytest.importorskip("jax")
    assert f"jax:    {jax.__version__}\n" in phlox.print_environment_info(return_string=True)
    assert capsys.readouterr().out.strip() == text.strip()
