"""Bad input: each kind has its own error, which names the argument or tree path, and says what to write instead."""

import ast
import importlib
import pickle
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from docstring_examples import modules
from phlox import errors, export, jit, lax
from phlox.experimental.layout import with_layout_constraint
from phlox.experimental.multihost_utils import host_local_array_to_global_array
from phlox.scipy import linalg

X = jnp.ones((2, 3))


def refuse(kind, run):
    """Runs, expects `kind`, and checks the three parts that every message has."""
    with pytest.raises(kind) as caught:
        run()
    error = caught.value
    assert type(error) is kind
    assert error.what
    assert error.where is not None
    assert error.where.file == __file__, f"points at {error.where} instead of the user's line"
    assert "at " + __file__ in str(error)
    return error


def test_negative_lengths():
    for create in (jnp.zeros, jnp.indices, lambda shape: phlox.nn.one_hot(jnp.arange(2), shape[1])):
        error = refuse(errors.ShapeError, lambda create=create: create((2, -1)))
        assert "negative" in error.what


def test_shapes_that_do_not_match():
    error = refuse(errors.ShapeError, lambda: jnp.ones((2, 3)) + jnp.ones(4))
    assert error.shapes == [(2, 3), (4,)]
    error = refuse(errors.ShapeError, lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)))
    assert "f32[2,3]" in error.what
    assert error.instead
    refuse(errors.ShapeError, lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))]))
    refuse(errors.ShapeError, lambda: jnp.reshape(jnp.ones(6), (4, 2)))
    refuse(errors.AxisError, lambda: jnp.sum(jnp.ones(3), axis=1))
    for kind in (TypeError, ValueError):  # whoever catches what NumPy or jax raise goes on doing so
        with pytest.raises(kind):
            jnp.ones(3) + jnp.ones(4)


def test_unknown_dtypes():
    error = refuse(errors.DtypeError, lambda: jnp.zeros(3, "strange"))
    assert error.dtype == "strange"
    assert "float32" in error.instead
    refuse(errors.DtypeError, lambda: jnp.ones(3).astype("foo"))
    refuse(errors.DtypeError, lambda: phlox.lax.sin(jnp.arange(3)))
    refuse(errors.DtypeError, lambda: phlox.lax.add(jnp.ones(3), jnp.arange(3)))
    with phlox.numpy_dtype_promotion("strict"):
        refuse(errors.TypePromotionError, lambda: jnp.ones(3) + jnp.arange(3))


def test_sixty_four_bits_that_are_not_available_are_announced():
    with pytest.warns(UserWarning, match="Explicitly requested dtype float64 requested in zeros is not available"):
        assert jnp.zeros(3, "float64").dtype == np.float32


def test_donated_and_deleted_arrays():
    f = phlox.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.arange(3.0)
    f(x)
    assert x.is_deleted()
    error = refuse(errors.DeletedArrayError, lambda: f(x))
    assert "argument x" in error.what
    refuse(errors.DeletedArrayError, lambda: x + 1)
    refuse(errors.DeletedArrayError, lambda: np.asarray(x))
    y = jnp.ones(2)
    y.delete()
    error = refuse(errors.DeletedArrayError, lambda: phlox.jit(lambda d: d["a"] * 2)({"a": y}))
    assert "d['a']" in error.what
    refuse(errors.DeletedArrayError, lambda: repr(y))
    # The class of jaxlib, as programs catch it.
    with pytest.raises(errors.JaxRuntimeError, match="deleted"):
        y.block_until_ready()
    pair = phlox.jit(lambda d, x: d["a"] + x[:2]).lower({"a": jnp.ones(2)}, jnp.ones(3)).compile()
    error = refuse(errors.DeletedArrayError, lambda: pair({"a": y}, jnp.ones(3)))
    assert "d['a']" in error.what


def test_an_array_that_is_donated_and_passed_twice():
    x = jnp.ones(3)
    for donated in (0, 1, (0, 1)):
        f = phlox.jit(lambda x, d: (x + 1, d["a"] + 1), donate_argnums=donated)
        for call in (f, f.lower(x, {"a": x}).compile()):
            error = refuse(errors.DeletedArrayError, lambda call=call: call(x, {"a": x}))
            assert "arguments x and d['a'] are the same array, of type f32[3]" in error.what


def test_xla_prints_nothing_about_donated_arrays(capfd):
    f = phlox.jit(lambda tree: {"a": tree["a"] + 1, "b": tree["b"] * 2}, donate_argnums=0)
    tree = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2))}
    f(tree)
    uses = [
        lambda: f(tree), lambda: tree["a"] + 1, lambda: tree["a"][0], lambda: phlox.jit(lambda d: d["b"] * 2)(tree),
        lambda: lax.sin(tree["a"]), lambda: phlox.grad(lambda x: x.sum())(tree["a"]), lambda: jnp.copy(tree["b"]),
        lambda: print(tree["a"]), lambda: tree["a"].block_until_ready(), lambda: phlox.device_get(tree),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.DeletedArrayError):
            use()
    assert capfd.readouterr() == ("", "")


def test_donation_that_no_output_can_use_is_announced_and_harmless():
    f = phlox.jit(lambda x: x.sum(), donate_argnums=0)
    x = jnp.ones(3)
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: float32\[3\]\.\nNo output"):
        f(x)
    assert not x.is_deleted()


def test_constraints_that_are_no_shardings_are_type_errors():
    for wrong in (3, "x", phlox.devices()[0], None):
        refuse(errors.ArgumentError, lambda wrong=wrong: phlox.lax.with_sharding_constraint(jnp.ones(2), wrong))


def test_tracers_that_escape():
    kept = []
    phlox.jit(lambda x: kept.append(x * 2) or x)(1.0)
    error = refuse(errors.UnexpectedTracerError, lambda: kept[0] + 1)
    assert "return the value" in error.instead
    refuse(errors.UnexpectedTracerError, lambda: phlox.jit(lambda y: y + kept[0])(1.0))
    refuse(errors.UnexpectedTracerError, lambda: phlox.jit(lambda y: y)(kept[0]))
    phlox.vmap(lambda x: kept.append(x) or x)(jnp.ones(2))
    refuse(errors.UnexpectedTracerError, lambda: kept[-1] * 2)
    phlox.grad(lambda x: kept.append(x) or x)(1.0)
    refuse(errors.UnexpectedTracerError, lambda: jnp.sin(kept[-1]))


def test_arguments_that_are_no_arrays():
    def dense(x, w, b, activation):
        return activation(x @ w + b)

    args = jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4), jnp.tanh
    error = refuse(errors.ArgumentError, lambda: phlox.jit(dense)(*args))
    assert error.argument == "activation"
    assert "static_argnums=3" in error.instead
    assert phlox.jit(dense, static_argnums=3)(*args).shape == (2, 4)
    error = refuse(errors.ArgumentError, lambda: phlox.jit(lambda n, x: phlox.grad(jnp.sin, argnums=n)(x))(0, 1.0))
    assert "static_argnums" in error.instead
    error = refuse(errors.ArgumentError, lambda: phlox.jit(lambda p: p)({"a": [1.0, "text"]}))
    assert error.argument == "p['a'][1]"
    error = refuse(errors.ArgumentError, lambda: phlox.grad(lambda p: p["w"])({"w": "text"}))
    assert error.argument == "p['w']"
    refuse(errors.ArgumentError, lambda: phlox.vmap(lambda x: x)("text"))
    refuse(errors.ArgumentError, lambda: jnp.sin("text"))
    refuse(errors.ArgumentError, lambda: jnp.add([1, 2], 3))
    refuse(errors.ArgumentError, lambda: jnp.add(None, 3))
    refuse(errors.ArgumentError, lambda: jnp.array(["a"]))


def test_results_that_are_no_arrays():
    error = refuse(errors.ArgumentError, lambda: phlox.jit(lambda x: {"a": (x, "text")})(1.0))
    assert error.argument == "result['a'][1]"


@pytest.mark.parametrize(
    "call",
    [
        lambda f: phlox.vmap(f)(X),
        lambda f: phlox.pmap(f)(X[:1]),
        lambda f: lax.fori_loop(0, 3, lambda i, x: f(x), 1.0),
        lambda f: jit(lambda n: lax.fori_loop(0, n, lambda i, x: f(x), 1.0))(3),
        lambda f: lax.map(f, X),
        lambda f: lax.map(f, X, batch_size=1),
        lambda f: phlox.make_jaxpr(f)(X),
        lambda f: phlox.eval_shape(f, X),
        lambda f: jnp.vectorize(f)(X),
    ],
)
def test_results_that_are_no_arrays_are_those_of_the_users_function(call):
    error = refuse(errors.ArgumentError, lambda: call(lambda x: (x, ["text"])))
    assert re.search(
        rf"^function <lambda> at {re.escape(__file__)}:\d+ returned .* at output component \[1\]\[0\]", error.what
    )


def test_static_arguments_that_cannot_be_keys():
    error = refuse(errors.StaticArgumentError, lambda: phlox.jit(lambda x, n: x, static_argnums=1)(1.0, [2]))
    assert error.argument == "n"
    error = refuse(errors.StaticArgumentError, lambda: phlox.jit(lambda *xs: xs[0], static_argnums=1)(1.0, [2]))
    assert error.argument == 1
    error = refuse(errors.StaticArgumentError, lambda: phlox.jit(lambda x, n: x, static_argnames="n")(1.0, n={}))
    assert error.argument == "n"
    refuse(errors.OptionError, lambda: phlox.jit(lambda x: x, static_argnums=3))
    refuse(errors.OptionError, lambda: phlox.jit(lambda x: x, static_argnames="y"))


def test_mismatched_tree_structures():
    error = refuse(errors.TreeError, lambda: phlox.tree.map(lambda a, b: a, {"a": 1, "b": [1]}, {"a": 1, "b": [1, 2]}))
    assert phlox.tree_util.keystr(error.path) == "['b']"
    assert error.expected == "a list of 1"
    assert error.got == "a list of 2"
    _, vjp_fun = phlox.vjp(lambda x: {"a": x, "b": x}, 1.0)
    error = refuse(errors.TreeError, lambda: vjp_fun((1.0, 1.0)))
    assert "dict" in str(error)
    assert "tuple" in str(error)
    assert "{'a': *, 'b': *}" in error.instead
    assert "(*, *)" in error.instead
    refuse(errors.FunctionTreeError, lambda: phlox.jvp(lambda x: x, ({"a": 1.0},), ([1.0],)))
    refuse(errors.TreeError, lambda: phlox.vmap(lambda x, y: x, in_axes=(0, {"a": 0}))(jnp.ones(2), {"b": jnp.ones(2)}))


#: the function and its option -> a call with an option whose tree is no prefix
PREFIXES = {
    "jit in_shardings": lambda x, p: phlox.jit(lambda x: x, in_shardings=((p, p),))(x),
    "jit out_shardings": lambda x, p: phlox.jit(lambda x: x, out_shardings=(p, p))(x),
    "with_sharding_constraint shardings": lambda x, p: phlox.lax.with_sharding_constraint(x, [p, p]),
    "checkpoint prevent_cse": lambda x, p: phlox.checkpoint(lambda x: x, prevent_cse=({"a": True},))(x),
    "make_array_from_process_local_data sharding": lambda x, p: phlox.make_array_from_process_local_data([p, p], x),
    "make_array_from_process_local_data global_shape": lambda x, p: phlox.make_array_from_process_local_data(
        p, x, [(3,), (3,)]
    ),
    "reshard out_shardings": lambda x, p: phlox.reshard(x, [p, p]),
    "symbolic_args_specs shapes_specs": lambda x, p: export.symbolic_args_specs(x, ["a", "b"]),
    "with_layout_constraint layouts": lambda x, p: with_layout_constraint(x, [None, None]),
    "host_local_array_to_global_array pspecs": lambda x, p: host_local_array_to_global_array(x, p.mesh, [p.spec] * 2),
    "shard_map in_specs": lambda x, p: phlox.shard_map(lambda x: x, mesh=p.mesh, in_specs=[p.spec], out_specs=p.spec)(
        x
    ),
    "shard_map out_specs": lambda x, p: phlox.shard_map(
        lambda x: x, mesh=p.mesh, in_specs=p.spec, out_specs=[p.spec] * 2
    )(x),
    "sizes of x": lambda x, p: phlox.pad_axes(lambda x: x, {"x": {"a": "n"}})(x),
}


@pytest.mark.parametrize("option", PREFIXES)
def test_trees_of_options_that_are_no_prefix(option):
    sharding = phlox.NamedSharding(phlox.sharding.Mesh(phlox.devices()[:1], "i"), phlox.P())
    error = refuse(errors.TreeError, lambda: PREFIXES[option](jnp.ones(3), sharding))
    assert error.what.startswith(f"{option} specification must be a tree prefix of the corresponding value")
    assert "tree.map" not in error.what


def test_unequal_vmap_sizes():
    error = refuse(errors.AxisSizeError, lambda: phlox.vmap(lambda x, y: x)(jnp.ones(5), {"k": jnp.ones((3, 2))}))
    assert "one axis had size 5: axis 0 of argument x of type float32[5]" in error.what
    assert "one axis had size 3: axis 0 of argument y['k'] of type float32[3,2]" in error.what
    refuse(errors.AxisSizeError, lambda: phlox.vmap(lambda x: x, in_axes=1)(jnp.ones(5)))
    refuse(errors.AxisSizeError, lambda: phlox.vmap(lambda x: x, in_axes=None)(jnp.ones(5)))
    refuse(errors.AxisSizeError, lambda: phlox.vmap(lambda x: x, axis_size=4)(jnp.ones(5)))
    refuse(errors.OptionError, lambda: phlox.vmap(lambda x: x, out_axes=None)(jnp.ones(5)))


def test_too_few_devices():
    error = refuse(errors.DeviceError, lambda: phlox.pmap(lambda x: x)(jnp.ones((99, 2))))
    assert (error.wanted, error.available) == (99, phlox.local_device_count())
    assert "num_cpu_devices" in error.instead
    refuse(errors.DeviceError, lambda: phlox.pmap(lambda x: x, devices=phlox.devices()[:2])(jnp.ones(3)))
    refuse(errors.AxisSizeError, lambda: phlox.pmap(lambda x, y: x)(jnp.ones(2), jnp.ones(3)))
    refuse(errors.BackendError, lambda: phlox.devices("strange"))


def test_arguments_on_different_devices():
    a, b = (phlox.device_put(1.0, d) for d in phlox.devices()[:2])
    error = refuse(errors.DeviceError, lambda: a + b)
    assert len(error.devices) == 2
    refuse(errors.DeviceError, lambda: phlox.jit(lambda x, y: x + y)(a, b))


def test_unbound_axis_names():
    error = refuse(errors.AxisNameError, lambda: phlox.lax.psum(jnp.ones(2), "i"))
    assert error.axis == "i"
    refuse(errors.AxisNameError, lambda: phlox.vmap(lambda x: phlox.lax.axis_index("j"), axis_name="i")(jnp.ones(2)))
    with pytest.raises(NameError):
        phlox.lax.psum(jnp.ones(2), "i")


@pytest.mark.parametrize(
    "use, kind",
    [
        (lambda x: 1 if x > 0 else 2, errors.TracerBoolConversionError),
        (lambda x: [1, 2][x.astype(int)], errors.TracerIntegerConversionError),
        (lambda x: range(x.astype(int)), errors.TracerIntegerConversionError),
        (lambda x: np.sin(x), errors.TracerArrayConversionError),
        (lambda x: float(x), errors.ConcretizationTypeError),
        (lambda x: x.item(), errors.ConcretizationTypeError),
        (lambda x: jnp.ones(3)[jnp.ones(3) * x > 0], errors.NonConcreteBooleanIndexError),
    ],
)
def test_values_that_are_not_known_yet(use, kind):
    def user_function(x):
        return use(x)

    error = refuse(kind, lambda: phlox.jit(user_function)(1.0))
    assert error.instead
    if kind is errors.TracerBoolConversionError:
        assert "numpy.where" in error.instead
        assert "argument x" in error.what
        assert "user_function" in error.what


def test_numpy_arrays_of_what_is_no_number():
    for x in (np.array(["a"]), np.array([object()]), np.array(["2020-01-01"], "datetime64[D]")):
        for take in (phlox.device_put, phlox.numpy.asarray, phlox.jit(lambda x: x)):
            assert "ndarray" in str(refuse(errors.ArgumentError, lambda take=take, x=x: take(x)))


def test_derivatives_of_what_has_none():
    refuse(errors.DerivativeError, lambda: phlox.grad(lambda x: x * 2)(jnp.ones(3)))
    error = refuse(errors.DerivativeError, lambda: phlox.grad(lambda x: x * 2)(1))
    assert error.argument == "x"
    refuse(errors.DerivativeError, lambda: phlox.grad(lambda x: x.astype(int))(1.0))
    refuse(errors.DerivativeError, lambda: phlox.grad(lambda x: x)(1j))
    refuse(errors.ArgumentError, lambda: phlox.grad(lambda x, y: x, argnums=1)(1.0))
    error = refuse(errors.ShapeError, lambda: phlox.jvp(jnp.sin, (1.0,), (jnp.ones(2),)))
    refuse(errors.DtypeError, lambda: phlox.jvp(jnp.sin, (1.0,), (1,)))


def test_tracebacks_leave_out_our_frames():
    def user_function(x):
        raise KeyError("the user's own error")

    def rule(*_):
        raise KeyError("the user's own error")

    identity = phlox.custom_vjp(lambda x: x)
    identity.defvjp(lambda x: (x, x), rule)
    forward, backward = phlox.custom_jvp(user_function), phlox.custom_vjp(user_function)
    forward.defjvp(rule)
    backward.defvjp(rule, rule)
    x = jnp.ones(2)
    calls = {
        "jit": lambda: phlox.jit(user_function)(x),
        "jit in jit": lambda: phlox.jit(lambda x: phlox.jit(user_function)(x))(x),
        "grad": lambda: phlox.grad(user_function)(1.0),
        "value_and_grad": lambda: phlox.value_and_grad(user_function)(1.0),
        "jvp": lambda: phlox.jvp(user_function, (x,), (x,)),
        "linearize": lambda: phlox.linearize(user_function, x),
        "vjp": lambda: phlox.vjp(user_function, x),
        "pullback": lambda: phlox.vjp(identity, x)[1](x),
        "custom_jvp": lambda: forward(x),
        "rule of custom_jvp": lambda: phlox.jvp(forward, (x,), (x,)),
        "custom_vjp": lambda: backward(x),
        "rule of custom_vjp": lambda: phlox.vjp(backward, x),
        "vmap": lambda: phlox.vmap(user_function)(x),
        "pmap": lambda: phlox.pmap(user_function)(x),
        "checkpoint": lambda: phlox.checkpoint(user_function)(x),
        "make_jaxpr": lambda: phlox.make_jaxpr(user_function)(x),
        "eval_shape": lambda: phlox.eval_shape(user_function, x),
        "closure_convert": lambda: phlox.closure_convert(user_function, x),
        "lower": lambda: phlox.jit(user_function).lower(x),
        "trace": lambda: phlox.jit(user_function).trace(x),
        "map": lambda: phlox.lax.map(user_function, x),
        "scan": lambda: phlox.lax.scan(lambda c, x: user_function(x), x, x),
    }
    for name, call in calls.items():
        with pytest.raises(KeyError) as caught:
            call()
        assert not [str(entry.path) for entry in caught.traceback if "/phlox/" in str(entry.path)], name
        assert not hasattr(caught.value, "__notes__")
    with phlox.config.scope(traceback_filtering="quiet_remove_frames"), pytest.raises(KeyError) as caught:
        phlox.jit(lambda x: phlox.jit(user_function)(x))(x)
    assert caught.value.__notes__ == [
        "For simplicity, frames of phlox are not in this traceback. JAX_TRACEBACK_FILTERING=off shows them."
    ]
    with phlox.config.scope(traceback_filtering="off"), pytest.raises(KeyError) as caught:
        phlox.jit(user_function)(1.0)
    assert sum("/phlox/" in str(entry.path) for entry in caught.traceback) > 2
    with phlox.config.scope(traceback_filtering="tracebackhide"), pytest.raises(KeyError) as caught:
        phlox.jit(user_function)(1.0)
    inner = [entry for entry in caught.traceback if "/phlox/" in str(entry.path)][1:]
    assert len(inner) > 2
    assert all(entry.frame.f_locals.get("__tracebackhide__") for entry in inner)


def test_every_class_is_documented_with_its_fix():
    for name in errors.__all__:
        cls = getattr(errors, name)
        if cls is errors.JaxRuntimeError:  # jaxlib's
            continue
        assert cls.__doc__, name
    assert issubclass(errors.PhloxError, Exception)


def test_a_tracer_has_the_methods_of_arrays_until_they_are_called():
    seen = []
    phlox.jit(lambda x: (seen.append(hasattr(x, "devices") and hasattr(x, "delete")), x)[1])(1.0)
    assert seen == [True]
    for name in ("devices", "delete", "is_deleted", "unsafe_buffer_pointer"):
        with pytest.raises(phlox.errors.ConcretizationTypeError, match=name):
            phlox.jit(lambda x, name=name: getattr(x, name)())(1.0)


WARNINGS = {
    "donated": lambda: phlox.jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones((3, 4))),
    "dtype": lambda: jnp.zeros(3, "float64"),
    "update": lambda: jnp.ones(3, "uint8").at[0].multiply(jnp.float32(2.5)),
    "rank": lambda: phlox.jit(lambda x, y: x + y)(jnp.ones(3), jnp.ones((2, 3))),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_are_at_the_users_line(name):
    make = WARNINGS[name]
    with phlox.config.scope(numpy_rank_promotion="warn"), pytest.warns() as caught:
        make()
    line = make.__code__.co_firstlineno
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line)}


def classes_below(kind):
    return {kind}.union(*(classes_below(c) for c in kind.__subclasses__()))


def test_all_errors_are_public_and_say_so():
    for name in modules(Path(phlox.__file__).parent):
        importlib.import_module(name)
    ours = [c for c in classes_below(errors.PhloxError) if c.__module__.partition(".")[0] == "phlox"]
    assert len(ours) > 40
    for kind in ours:
        assert kind.__module__ == "phlox.errors"
        assert getattr(errors, kind.__name__) is kind


def while_positive(x):
    while x > 0 and x < 10:
        x = x - 1
    return x


def while_nested(x):
    while (
        x
        > 0
    ):  # fmt: skip
        x = x - 1
    return x


def if_positive(x):
    if x > 0:
        return x
    return -x


def asserting(x):
    assert x > 0
    return x


class Model:
    """A class that nobody registered."""

    def __init__(self):
        self.weights = np.ones(3)


@pytest.mark.parametrize(
    ("run", "hints"),
    [
        (lambda: phlox.jit(while_nested)(3), ["phlox.lax.while_loop"]),
        (lambda: phlox.jit(while_positive)(3), ["a & b"]),
        (lambda: phlox.jit(if_positive)(3), ["phlox.lax.cond", "phlox.numpy.where", "static_argnums"]),
        (lambda: phlox.jit(lambda x: 1 if x > 0 else 2)(3), ["phlox.lax.cond"]),
        (lambda: phlox.jit(lambda x: [k for k in range(3) if k > x])(3), ["phlox.numpy.where"]),
        (lambda: phlox.jit(lambda x: 0 < x < 3)(3), ["(a < b) & (b < c)"]),
        (lambda: phlox.jit(lambda x: not x)(3), ["phlox.numpy.logical_not"]),
        (lambda: phlox.jit(lambda x: max(x, 2))(3), ["phlox.numpy.maximum"]),
        (lambda: phlox.grad(phlox.jit(if_positive))(3.0), ["phlox.lax.cond"]),
        (lambda: phlox.vmap(if_positive)(jnp.ones(2)), ["phlox.lax.cond"]),
        (lambda: phlox.jit(asserting)(3), ["checkify.check"]),
        (lambda: phlox.random.key(0) + 1, ["phlox.random.split", "phlox.random.fold_in"]),
        (lambda: -phlox.random.key(0), ["phlox.random.split", "phlox.random.fold_in"]),
        (lambda: phlox.jit(lambda m: m)(Model()), ["phlox.tree_util.register_dataclass(Model", "static_argnums=0"]),
        (lambda: phlox.grad(lambda m: 1.0)(Model()), ["phlox.tree_util.register_dataclass(Model"]),
        (lambda: phlox.random.normal((3,)), ["phlox.random.normal(phlox.random.key(0)"]),
    ],
)
def test_hints_fit_what_was_written(run, hints):
    with pytest.raises(errors.PhloxError) as caught:
        run()
    for hint in hints:
        assert hint in caught.value.instead


def test_a_condition_whose_source_is_not_there_has_a_hint_too():
    names = {}
    exec("def f(x):\n    if x:\n        return 1\n", names)
    with pytest.raises(errors.TracerBoolConversionError) as caught:
        phlox.jit(names["f"])(3)
    assert "phlox.lax.cond" in caught.value.instead


#: NumPy's own
READERS = {"jnp.asarray(numpy.fromfile(...))", "jnp.asarray(numpy.fromiter(...))"}


def test_hints_can_be_copied():
    """What they name is found under `phlox`, as people import it."""
    for file in Path(phlox.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "instead":
                parts = [
                    n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                ]
                text = " ".join(parts)
                bare = re.search(r"(?<!phlox\.)\b(numpy|lax|random|tree_util|nn|scipy|debug)\.[a-z]", text)
                assert bare is None or text in READERS or "float0" in text, (file, text)


def test_tracebacks_show_the_public_name():
    try:
        jnp.ones(3) + jnp.ones(4)
    except errors.ShapeError as error:
        assert "\nphlox.errors.ShapeError: " in "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "run",
    [
        lambda: jnp.ones(3) + jnp.ones(4),
        lambda: jnp.sum(jnp.ones(3), axis=1),
        lambda: lax.sin(jnp.arange(3)),
        lambda: phlox.jit(lambda x: int(x))(1.0),
        lambda: phlox.vmap(lambda x, y: x)(jnp.ones(2), jnp.ones(3)),
        lambda: phlox.config.update("enable_x64", "perhaps"),
        lambda: lax.cond(True, lambda: (1,), lambda: [1]),
        lambda: jnp.ones(3)["a"],
        lambda: phlox.grad(lambda x: x)(1),
    ],
)
def test_errors_are_pickled_with_their_place_and_data(run):
    with pytest.raises(errors.PhloxError) as caught:
        run()
    error = caught.value
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.where.line == error.where.line
    assert copy.where.column == error.where.column
    assert vars(copy).keys() == vars(error).keys()


#: what people search for: JAX's words for an error, which is the first sentence of ours
WORDS = [
    (errors.DtypeError, "Passing complex start/stop/step to jnp.arange is no longer supported", lambda: jnp.arange(1j)),
    (errors.ShapeError, "Cannot broadcast to shape with fewer dimensions", lambda: jnp.broadcast_to(X, (3,))),
    (errors.DtypeError, "Complex values have no ordering and cannot be clipped", lambda: jnp.clip(1j)),
    (errors.DtypeError, "cov: dtype must be a subclass of float or complex", lambda: jnp.cov(X, dtype=int)),
    (errors.DtypeError, "corrcoef: dtype must be a subclass of float or complex", lambda: jnp.corrcoef(X, dtype=int)),
    (errors.ShapeError, "attempt to get argmin of an empty sequence", lambda: jnp.argmin(jnp.ones(0))),
    (errors.ShapeError, "Array.__contains__: search array must be one-dimensional", lambda: 1 in X),
    (errors.ShapeError, "repeated axis", lambda: jnp.expand_dims(X, (1, 1))),
    (errors.ShapeError, "duplicate value in 'axis': (0, 0)", lambda: jnp.sum(X, (0, 0))),
    (errors.AxisError, "cannot be interpreted as an integer", lambda: lax.squeeze(X, [None])),
    (errors.ArgumentError, "None is not a valid value for jnp.array", lambda: jnp.array([0.0, None])),
    (errors.ShapeError, "xp and fp must be one-dimensional arrays of equal size", lambda: jnp.interp(1.0, X, X)),
    (errors.DtypeError, "jnp.hypot is not well defined for complex-valued inputs", lambda: jnp.hypot(1j, 2j)),
    (errors.OptionError, "unsupported keyword arguments for mode 'edge'", lambda: jnp.pad(X, 1, "edge", end_values=1)),
    (
        errors.IndexingError,
        "take_along_axis indices must be of integer type, got float32",
        lambda: jnp.take_along_axis(X, X),
    ),
    (errors.IndexingError, "non-empty jnp.take", lambda: jnp.take(jnp.ones((2, 0)), jnp.array([1]), 1)),
    (errors.UnsupportedError, "Unimplemented padding mode 'foo' for np.pad", lambda: jnp.pad(X, 1, "foo")),
    (errors.ShapeError, "Number of tensordot axes", lambda: jnp.tensordot(X, X, 3)),
    (errors.ShapeError, "axis1 and axis2 can not be same", lambda: jnp.trace(X, axis1=1, axis2=-1)),
    (errors.ShapeError, "rot90 requires its first argument to have ndim at least two", lambda: jnp.rot90(X[0])),
    (errors.DtypeError, "when you meant `phlox.numpy.ones((2, 3))`", lambda: jnp.ones(2, 3)),
    (errors.ShapeError, "The input must be non-scalar to take a cumulative product", lambda: jnp.cumulative_prod(1)),
    (errors.ShapeError, "initial value must be a scalar. Got array of shape (2, 3)", lambda: jnp.sum(X, initial=X)),
    (errors.DtypeError, "jnp.any: where must be None or a boolean array", lambda: jnp.any(X, where=X)),
    (errors.OptionError, "Invalid order 'inf' for vector norm", lambda: jnp.linalg.norm(X[0], "inf")),
    (errors.OptionError, "only one of rtol and rcond may be specified", lambda: jnp.linalg.pinv(X, 0.1, rcond=0.1)),
    (errors.OptionError, "ind must be a positive integer", lambda: jnp.linalg.tensorinv(X, 0)),
    (errors.DtypeError, "qr does not accept dtype float16", lambda: jnp.linalg.qr(X.astype("float16"))),
    (errors.ShapeError, "length of `a` along the last axis must be at least 2", lambda: linalg.companion(X[:, :1])),
    (errors.ShapeError, "length of f along the last axis must be at least 2", lambda: linalg.leslie(X[:, :1], X)),
    (errors.ShapeError, "must be nonzero", lambda: linalg.fiedler_companion(X[:, :0])),
    (errors.OptionError, "n must be a positive integer", lambda: linalg.helmert(0)),
    (errors.OptionError, "n must be a positive power of 2", lambda: linalg.hadamard(3)),
    (errors.OptionError, "Expected kind to be one of", lambda: linalg.invpascal(3, "bad")),
    (errors.OptionError, "scale must be", lambda: linalg.dft(4, "bad")),
    (errors.DtypeError, "dtype must be", lambda: linalg.dft(4, dtype=float)),
    (errors.OptionError, "padding argument", lambda: lax.conv(X[None, None], X[None, None], (1, 1), (3, 3))),
    (errors.OptionError, "Unknown gather mode", lambda: X.at[0].get(mode="bad")),
]


@pytest.mark.parametrize(("kind", "words", "run"), WORDS, ids=[words for _, words, _ in WORDS])
def test_the_words_that_people_search_for(kind, words, run):
    with pytest.raises(kind) as caught:
        run()
    assert words in str(caught.value).split("\n")[0]


def test_words_of_shapes_and_traced_indices():
    pairs = (
        ("requires contracting dimensions to have the same shape", lambda: X @ X),
        ("Cannot concatenate arrays along axis 0: numbers of dimensions", lambda: jnp.concatenate([X, X[0]])),
        ("slice_sizes must be less than or equal to", lambda: phlox.lax.dynamic_slice(X[0], (0,), (5,))),
        ("add got incompatible shapes for broadcasting", lambda: X + X.reshape(3, 2)),
        ("Incompatible shapes for broadcasting: shapes=[(2, 3), (2,)]", lambda: X + X[:, 0]),
        ("Array boolean indices must be concrete; got bool[2,3]", lambda: phlox.jit(lambda x: x[x > 1])(X)),
        ("Array slice indices must be static", lambda: phlox.jit(lambda n: X[:n])(1)),
        ("size argument of jnp.nonzero must be static", lambda: phlox.jit(jnp.nonzero)(X)),
        ("Unknown backend: 'moon'", lambda: phlox.devices("moon")),
    )
    for words, call in pairs:
        with pytest.raises(errors.PhloxError, match=re.escape(words)):
            call()


def test_words_of_strict_modes_and_traced_values():
    with phlox.numpy_rank_promotion("raise"):
        error = refuse(errors.ShapeError, lambda: X + X[0])
    assert "Operands could not be broadcast together for add on shapes (2, 3) (3,)" in error.what
    with phlox.numpy_dtype_promotion("strict"):
        error = refuse(errors.TypePromotionError, lambda: X.at[0].set(jnp.arange(3)))
    assert "Input dtypes ('float32', 'int32') have no available implicit dtype promotion path" in error.what
    error = refuse(errors.ConcretizationTypeError, lambda: phlox.jit(lambda stop: jnp.arange(2, stop))(3))
    assert "It arose in the jnp.arange argument 'stop'" in error.what
    error = refuse(errors.ConcretizationTypeError, lambda: phlox.jit(phlox.nn.one_hot)(3, 5))
    assert "concrete value is expected: one_hot's argument `num_classes`" in error.what
    for name in ("tobytes", "tolist"):
        error = refuse(errors.ConcretizationTypeError, lambda: phlox.jit(lambda x: getattr(x, name)())(1.0))
        assert f"The {name}() method was called on traced array" in error.what
    for number in (int, float, complex):
        error = refuse(errors.ConcretizationTypeError, lambda: phlox.jit(lambda x: number(x))(1.0))
        assert "Abstract tracer value encountered where concrete value is expected" in error.what
    error = refuse(errors.TracerIntegerConversionError, lambda: phlox.jit(jnp.zeros)(2))
    assert "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions." in error.what
    for fun in (
        lambda n: jnp.indices((n,)),
        lambda n: jnp.bincount(jnp.arange(3), length=n),
        lambda n: phlox.random.choice(phlox.random.key(0), 3, (n,)),
        lambda n: phlox.lax.dynamic_slice_in_dim(X, 0, n),
    ):
        refuse(errors.TracerIntegerConversionError, lambda: phlox.jit(fun)(2))


def test_errors_that_programs_catch():
    with pytest.raises(errors.JAXTypeError):
        jit(lambda x: bool(x))(1.0)
    with pytest.raises(errors.JAXIndexError):
        jit(lambda x: x[x > 1])(X)
    assert issubclass(errors.KeyReuseError, errors.JAXTypeError)
