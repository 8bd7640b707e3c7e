"""What libraries take from jax's inside: every name of the table is there, and does what the library needs."""

import ast
import functools
import importlib
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import phlox
import phlox.adopted
import phlox.numpy as jnp
from phlox._base.source import is_internal
from phlox.extend.core import Primitive
from phlox_compat import jax_internals
from phlox_compat.as_jax._class_names import _RAISED_BY_FUNCTIONS
from phlox_compat.jax_internals import _tracebacks


def module(name):
    return importlib.import_module(f"phlox.adopted.{name}")


@pytest.mark.parametrize("entry", jax_internals.TABLE, ids=lambda entry: f"{entry.module} {' '.join(entry.names)}")
def test_every_name_is_there(entry):
    assert entry.libraries
    view = module(entry.module)
    for name in entry.names:
        if name == "*":
            assert all(jax_internals.import_home(home) for home in entry.homes)
        else:
            getattr(view, name)
            assert name in dir(view)


@pytest.mark.parametrize("name", jax_internals.UNAVAILABLE)
def test_what_is_not_there_says_what_to_use(name):
    with pytest.raises(ModuleNotFoundError, match="instead: ") as caught:
        module(name)
    assert caught.value.jax_name == name


def test_transformations_of_functions():
    lu = module("jax.extend.linear_util")

    @lu.transformation_with_aux
    def doubled(factor, *args):
        out = yield tuple(factor * x for x in args), {}
        yield out, "aux"

    fun, aux = doubled(lu.wrap_init(lambda x, y: x + y), 2)
    with pytest.raises(lu.StoreException):
        aux()
    assert fun.call_wrapped(1, 2) == 6
    assert aux() == "aux"

    @lu.transformation2
    def negated(f, sign, *args):
        return sign * f(*args)

    assert negated(lu.wrap_init(lambda x: x), -1).call_wrapped(3) == -3


def test_dtypes_and_shardings_of_jax_inside():
    to_complex = module("jax._src.dtypes").to_complex_dtype
    assert [to_complex(d) for d in ("int8", "bfloat16", "float32", "complex64")] == [np.complex64] * 4
    assert [to_complex(d) for d in ("int64", "float64", "complex128")] == [np.complex128] * 3
    dtype = module("jax._src.dtypes").dtype
    assert [dtype(x) for x in (1, float, np.float64(2), jnp.ones(2, "bfloat16"))] == [
        "int32",
        *["float32"] * 2,
        "bfloat16",
    ]
    with pytest.raises(ValueError, match="None"):
        dtype(None)
    assert module("jax._src.api")._dtype(np.ones(2)) == "float32"
    canonical, sharding = module("jax._src.sharding_impls").canonicalize_sharding, phlox.sharding
    assert canonical(None, "f") is None
    named = sharding.NamedSharding(phlox.make_mesh((1,), ("i",)), phlox.P("i"))
    assert canonical(named, "f") is named
    with pytest.raises(TypeError, match="neither a NamedSharding nor"):
        canonical("i", "f")
    full_lower = module("jax._src.core").full_lower
    assert full_lower(3) == 3 and phlox.jit(full_lower)(2.0) == 2.0


def test_parameters_of_jax():
    """quax reads the groups of a scan's operands, and binds with parameters that only JAX has."""
    from phlox_compat.jax_internals._parameters import jax_parameters

    module("jax._src.core").take_current_trace
    closed = phlox.make_jaxpr(lambda xs: phlox.lax.scan(lambda c, x: (c * x, c + x), 1.0, xs))(jnp.arange(3.0))
    (eqn,) = closed.eqns
    params = jax_parameters(eqn.primitive, eqn.params)
    flattree = module("jax._src.flattree")
    consts, carry, xs = params["ft_in"].update(["c", "x"]).unpack()
    assert (list(consts), carry.vals, xs.map(str.upper).vals) == ([], ["c"], ["X"])
    assert repr(params["ft_out"]) == repr(flattree.pack((flattree.nones(1), flattree.nones(1))))
    last, stacked = eqn.primitive.bind(1.0, jnp.arange(3.0), **params)
    assert float(last) == 0 and stacked.tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match="3 values for the groups of 2"):
        params["ft_in"].update("abc")
    primitives = module("jax.extend.core.primitives")
    assert primitives.exp_p.bind(np.float32(0), accuracy=None) == 1
    made = primitives.broadcast_in_dim_p.bind(jnp.ones(()), shape=(2,), broadcast_dimensions=(), sharding=None)
    assert made.shape == (2,)


def test_functions_that_libraries_hash():
    partial = module("jax._src.util").HashablePartial
    f = lambda *xs, y: (xs, y)
    assert partial(f, 1, y=2) == partial(f, 1, y=2) and hash(partial(f, 1, y=2)) == hash(partial(f, 1, y=2))
    assert partial(f, 1, y=2) != partial(f, 2, y=2) and partial(f, 1, y=2)(3) == ((1, 3), 2)


def test_threefry_of_words():
    threefry = module("jax._src.random.threefry2x32")
    words = threefry.threefry_seed(jnp.asarray(3))
    np.testing.assert_array_equal(words, [0, 3])
    np.testing.assert_array_equal(threefry.threefry_split(words, (2,)), phlox.random.split(phlox.random.PRNGKey(3)))


def test_saved_residuals():
    residuals = module("jax._src.ad_checkpoint").saved_residuals(lambda x, y: jnp.sin(x * y), 1.0, 2.0)
    origins = [origin.split(" from /")[0] for _, origin in residuals]
    assert sorted(origins) == ["from the argument x", "from the argument y", "output of cos"]
    assert residuals[0][0].shape == ()


def test_values_are_compared_as_tinygp_does():
    check_close = module("jax._src.public_test_util").check_close
    bounds = {"float32": 5e-4, "float64": 5e-7}
    check_close({"a": jnp.ones(3), "n": 1}, {"a": np.ones(3, np.float32) + 1e-4, "n": 1}, atol=bounds, rtol=bounds)
    for other in (np.ones(3, np.float32) + 1e-4, 1.0):
        with pytest.raises(AssertionError, match="mean"):
            check_close(jnp.ones(3), other, err_msg="mean")


def test_parameters_to_bind_a_custom_jvp_hold_its_function():
    """equinox's `finalise_fn` calls the function in place of the equation."""
    (eqn,) = phlox.make_jaxpr(phlox.nn.relu)(1.0).eqns
    params = eqn.primitive.get_bind_params(eqn.params)
    np.testing.assert_array_equal(params["subfuns"][0].call_wrapped(np.float32(-1)), [0])
    np.testing.assert_array_equal(eqn.primitive.bind(np.float32(-1), **params), [0])


def test_a_function_of_partly_known_values():
    pe = module("jax.interpreters.partial_eval")
    fun = module("jax.extend.linear_util").wrap_init(lambda x, y: (x * 2, jnp.sin(y), y + 1))
    unknown = pe.PartialVal.unknown(phlox.core.ShapedArray((3,), "float32"))
    _, outs, _ = pe.trace_to_jaxpr_nounits(fun, [unknown, pe.PartialVal.known(jnp.float32(0))])
    assert [out.is_known() for out in outs] == [False, True, True]
    assert outs[0].get_aval().shape == (3,)
    assert float(outs[2].get_known()) == 1


def test_traces():
    core = module("jax.core")
    outside, seen = core.get_opaque_trace_state(convention="flax"), []

    def f(x):
        seen.append(core.get_opaque_trace_state())
        assert seen[0] == core.get_opaque_trace_state() and seen[0] != outside
        assert not core.trace_state_clean()
        with core.take_current_trace() as trace:
            assert core.trace_state_clean()
            assert isinstance(jnp.ones(2) + 1, phlox.Array)
            with core.set_current_trace(trace):
                assert core.get_opaque_trace_state() == seen[0]
        assert core.find_top_trace((x,)).main is x._trace.main
        return x

    phlox.jit(f)(1.0)
    assert outside == core.get_opaque_trace_state() and core.trace_state_clean()


def test_results_of_custom_rules_are_made_in_the_trace_of_the_caller():
    """A variable of flax notes the trace in which it is made, and refuses to be changed in another one."""
    state = module("jax.core").get_opaque_trace_state

    class Noting:
        def __init__(self, value):
            self.value, self.trace = value, state()

    phlox.tree_util.register_pytree_node(Noting, lambda x: ((x.value,), None), lambda _, leaves: Noting(*leaves))
    valid = []

    @phlox.custom_vjp
    def f(x):
        return Noting(jnp.sin(x.value))

    def forward(x):
        out = f(x)
        valid.append(out.trace == state())
        return out, x.value

    f.defvjp(forward, lambda x, ct: (Noting(ct.value * jnp.cos(x)),))

    @phlox.custom_jvp
    def g(x):
        return Noting(x.value * 2)

    @g.defjvp
    def _(primals, tangents):
        out = g(*primals)
        valid.append(out.trace == state())
        return out, Noting(tangents[0].value * 2)

    for h in (f, g):
        loss = lambda x, h=h: h(Noting(x)).value
        phlox.grad(loss)(1.0), phlox.jit(phlox.grad(loss))(1.0), phlox.grad(phlox.grad(loss))(1.0)
        phlox.vmap(phlox.grad(loss))(jnp.ones(2))
    assert valid and all(valid)


def test_batching_rules_with_the_axis():
    p = Primitive("compat_test_batched")
    p.def_impl(lambda x: x)
    module("jax.interpreters.batching").axis_primitive_batchers[p] = lambda size, name, _main, args, dims: (
        args[0] * size,
        dims[0],
    )
    assert phlox.vmap(p.bind)(jnp.ones(4)).tolist() == [4.0] * 4


def test_lowering_rules_run_when_they_are_used():
    p = Primitive("compat_test_mlir")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    mlir = module("jax.interpreters.mlir")
    mlir.register_lowering(p, lambda ctx, x: [ctx.builder.add(x, x)])
    assert p.bind(1.0) == 1.0
    with pytest.raises(phlox.errors.UnsupportedError, match="builds MLIR, and failed"):
        phlox.jit(p.bind)(1.0)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    mlir.register_lowering(p, lambda ctx, x: [x], platform="cuda")
    assert phlox.jit(p.bind)(1.0) == 2.0


def test_primitives_of_classes_that_mark_their_operands():
    """As kfac_jax has them: methods in place of calls, and a lowering rule that builds nothing."""

    class Tag(module("jax.extend.core").Primitive):
        multiple_results = True

        def impl(self, *args):
            return args[:1]

        def abstract_eval(self, *args):
            return args[:1], module("jax.core").no_effects

    tag = Tag("compat_test_tag")
    module("jax.interpreters.mlir").register_lowering(tag, lambda ctx, *args: args[:1])
    assert tag.bind(3.0, 2.0) == (3.0,)
    assert [float(x) for x in phlox.jit(tag.bind)(3.0, 2.0)] == [3.0]


def test_arguments_marked_as_differentiated():
    core, ad = module("jax.core"), module("jax.interpreters.ad")
    with core.take_current_trace() as parent:
        trace = ad.JVPTrace(parent, core.TraceTag())
        x = ad.JVPTracer(trace, jnp.float32(3), jnp.float32(1))
        with core.set_current_trace(trace):
            y, constant = jnp.sin(x) * x, jnp.sin(2.0)
    assert isinstance(y, ad.JVPTracer) and not isinstance(constant, ad.JVPTracer)
    assert float(y.tangent) == pytest.approx(math.sin(3) + 3 * math.cos(3))


def test_the_function_that_ran_has_the_result():
    lu = module("jax.extend.linear_util")

    @lu.transformation_with_aux2
    def with_count(f, store, *args):
        store.store(len(args))
        return f(*args)

    (f, count), (g, other) = (with_count(lu.wrap_init(lambda *xs: xs)) for _ in range(2))
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(count, other)
    g.call_wrapped(1, 2)
    assert lu.merge_linear_aux(count, other) == (False, 2)
    f.call_wrapped(1)
    with pytest.raises(lu.StoreException, match="both"):
        lu.merge_linear_aux(count, other)


def test_traces_of_libraries():
    """As quax has them: tracers of a class of its own, and JAX's name for what a trace does."""
    core = module("jax.core")

    class Doubled(core.Tracer):
        def __init__(self, trace, value):
            self._trace = trace
            self.value = value

        @property
        def aval(self):
            return phlox.typeof(self.value)

    class Doubling(core.Trace):
        def process_primitive(self, primitive, tracers, params):
            values = [2 * t.value if isinstance(t, Doubled) else t for t in map(self.full_raise, tracers)]
            return Doubled(self, primitive.bind(*values, **params))

    trace, ones = Doubling(), jnp.ones(2)
    x = Doubled(trace, ones)
    found = trace.process(module("jax.lax").add_p, (x, ones), {})
    assert x._trace is trace and found.value.tolist() == [3.0, 3.0]


def test_traces_of_libraries_bind_under_the_trace_outside():
    """haiku's graphs of modules are made so, eagerly and while a program is traced."""
    core = module("jax.core")
    current = module("jax._src.core")
    names = []

    class Logged(core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, phlox.typeof(value))
            self.value = value

    class Logging(core.Trace):
        def __init__(self, outside):
            super().__init__()
            self.outside = outside

        def process_primitive(self, primitive, tracers, params):
            names.append(primitive.name)
            values = [t.value if isinstance(t, Logged) else t for t in tracers]
            results = primitive.bind_with_trace(self.outside, values, list(map(phlox.typeof, values)), params)
            return phlox.tree.map(lambda value: Logged(self, value), results)

    def logged(x):
        with current.take_current_trace() as outside:
            trace = Logging(outside)
            with current.set_current_trace(trace):
                return jnp.dot(Logged(trace, x), np.float32([1, 1])).value

    assert logged(jnp.ones(2)) == phlox.jit(logged)(jnp.ones(2)) == 2
    assert names == ["dot_general", "dot_general"]


def test_classes_that_libraries_ask_for():
    """flax annotates with the first. orbax asks of each writer of checkpoints whether it is the second."""
    checkify = module("jax._src.checkify")
    error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "not positive"))(-1.0)
    assert isinstance(error.get_exception(), checkify.JaxException)
    base = module("jax.experimental.array_serialization.serialization").GlobalAsyncCheckpointManagerBase
    assert isinstance(base, type) and not isinstance(error, base)


def test_the_registry_of_containers():
    registry = module("jax._src.tree_util")._registry
    assert list in registry and dict in registry and type(None) in registry
    assert int not in registry
    children, shape = registry[dict].to_iter({"b": [1, 2], "a": 3})
    assert children == [3, [1, 2]]
    assert registry[dict].from_iter(shape, [4, 5]) == {"a": 4, "b": 5}


def test_arguments_by_number_and_name():
    infer = module("jax._src.api_util").infer_argnums_and_argnames
    signature = inspect.signature(lambda x, y, *, z: None)
    assert infer(signature, 1, None) == ((1,), ("y",))
    assert infer(signature, None, ["x", "z"]) == ((0,), ("x", "z"))
    assert infer(signature, None, None) == ((), ())


def test_types_take_a_sharding():
    aval = phlox.typeof(jnp.ones((2, 3)))
    assert phlox.core.ShapedArray(aval.shape, aval.dtype, sharding=aval.sharding) is aval
    assert aval.to_tangent_aval() is aval


def test_types_take_what_jax_says_of_memory_and_manual_axes():
    aval = phlox.typeof(jnp.ones((2, 3)))
    assert repr(aval.memory_space) == "MemorySpace.Device"  # drjax, in the type of its broadcast
    same = {"memory_space": aval.memory_space, "manual_axis_type": aval.manual_axis_type, "layout": None}
    assert phlox.core.ShapedArray(aval.shape, aval.dtype, **same) is aval
    varying = phlox.sharding.ManualAxisType(varying={"i"})
    assert phlox.core.ShapedArray((2,), "float32", manual_axis_type=varying).vma == {"i"}


def test_the_physical_mesh_is_that_of_the_with_statement():
    environment = module("jax.interpreters.pxla").thread_resources.env
    mesh = phlox.sharding.Mesh(np.array(phlox.devices()[:1]), ("data",))
    assert environment.physical_mesh.empty
    with mesh:
        assert environment.physical_mesh is mesh
    with phlox.set_mesh(mesh):
        assert environment.physical_mesh.empty and environment.physical_mesh.axis_names == ()


def test_types_of_tangents_by_the_older_name():
    assert phlox.typeof(jnp.ones(3)).at_least_vspace() is phlox.typeof(jnp.ones(3))
    assert str(phlox.typeof(jnp.arange(3)).at_least_vspace()) == "float0[3]"


def test_primitives_say_whether_they_call_a_jaxpr():
    primitives = module("jax.extend.core.primitives")
    assert primitives.call_p.call_primitive and primitives.closed_call_p.call_primitive
    for other in (primitives.jit_p, primitives.add_p, primitives.custom_jvp_call_p, Primitive("calls_nothing")):
        assert other.call_primitive is False


def test_functions_of_transformations_are_recognized():
    for make in (phlox.jit, phlox.vmap, phlox.pmap, phlox.grad):
        assert "api_boundary" in make(lambda x: x).__globals__
    assert "api_boundary" not in test_primitives_say_whether_they_call_a_jaxpr.__globals__


def test_name_scopes_of_equations():
    def f(x):
        with phlox.named_scope("outer"):
            y = jnp.sin(x)
            with phlox.named_scope("inner"):
                return y * 2

    source_info_util = module("jax._src.source_info_util")
    lines = [source_info_util.summarize(eqn.source_info) for eqn in phlox.make_jaxpr(f)(1.0).eqns]
    first = f.__code__.co_firstlineno
    assert lines == [f"{__file__}:{first + 2} (f)", f"{__file__}:{first + 4} (f)"]
    assert [str(eqn.source_info.name_stack) for eqn in phlox.make_jaxpr(f)(1.0).eqns] == ["outer", "outer/inner"]
    names = [str(eqn.source_info.name_stack) for eqn in phlox.make_jaxpr(phlox.grad(f))(1.0).eqns]
    assert names[0] == "jvp(outer)" and names[-2] == "transpose(jvp(outer))/inner"
    below = phlox.named_scope("layer")(phlox.vmap(lambda x: phlox.jit(f)(f(x))))
    names = [str(eqn.source_info.name_stack) for eqn in phlox.make_jaxpr(below)(jnp.ones(2)).eqns]
    assert names == ["layer/vmap(outer)", "layer/vmap(outer)/inner", "layer/vmap()"]


def test_clients_that_have_started():
    phlox.devices()
    assert module("jax._src.xla_bridge")._backends["cpu"].platform == "cpu"


def test_types_of_references():
    kind = module("jax._src.state.types").AbstractRef
    assert isinstance(phlox.typeof(phlox.new_ref(1.0)), kind) and not isinstance(phlox.typeof(1.0), kind)


def test_former_hijax_operations_cannot_be_used():
    hijax = module("jax.experimental.hijax")

    class Mine(hijax.HiPrimitive):
        pass

    with pytest.raises(phlox.errors.UnsupportedError, match="hijax"):
        Mine("mine").bind(1)


def test_jaxprs_without_what_is_not_used():
    pe, core = module("jax.interpreters.partial_eval"), module("jax.core")
    x, y = phlox.numpy.arange(3), phlox.numpy.ones(3)
    avals = [phlox.typeof(phlox.numpy.float32(1))] * 2
    jaxpr, out_avals, consts = pe.trace_to_jaxpr_dynamic(lambda a, b: [a * y, b + x, x + 1], avals)
    assert [aval.shape for aval in out_avals] == [(3,)] * 3 and len(jaxpr.invars) == 4 == 2 + len(consts)
    some = pe.trace_to_jaxpr_dynamic(lambda a, b: [a * y], avals, keep_inputs=[True, False], auto_dce=True)
    assert len(some[0].invars) == 1 + len(some[2])
    pruned, used = pe.dce_jaxpr(jaxpr, [False, False, True])
    assert sum(used) == 1 and not any(used[-2:])
    kept = [c for c, u in zip(consts, used, strict=False) if u]
    assert core.eval_jaxpr(pruned, kept)[0].tolist() == [1, 2, 3]
    assert len(pe.dce_jaxpr(jaxpr, True, instantiate=True)[0].invars) == 4

    closed = phlox.make_jaxpr(lambda a, b: (a * y, b + x))(1.0, 2.0)
    small, used_consts, used_inputs = pe.dce_jaxpr_consts(closed, [True, False])
    assert (sum(used_consts), used_inputs, small.num_consts) == (1, [True, False], 1)
    assert core.eval_jaxpr(small, small.consts, 5.0)[0].tolist() == [5, 5, 5]
    assert pe.convert_constvars_jaxpr(closed.jaxpr).all_invars == closed.all_invars
    assert pe.close_jaxpr(pe.convert_constvars_jaxpr(closed.jaxpr)).consts == []


def test_instructions_to_the_compiler_change_no_results():
    compute_on = module("jax.experimental.compute_on").compute_on
    metadata = module("jax.experimental.xla_metadata")
    assert compute_on(lambda x: x + 1, compute_type="device_host", out_memory_spaces=None)(1) == 2
    assert compute_on(compute_type="gpu_stream:1", out_memory_spaces=None)(lambda x: x + 1)(1) == 2
    device, host = phlox.memory.Space.Device, phlox.memory.Space.Host
    f = compute_on(lambda x: (x, {"a": x}), compute_type="device_host", out_memory_spaces=(device, {"a": host}))
    for here, there in (f(phlox.numpy.ones(2)), phlox.jit(f)(phlox.numpy.ones(2))):
        assert (here.sharding.memory_kind, there["a"].sharding.memory_kind) == ("device", "pinned_host")
    with pytest.raises(TypeError, match="is no string"):
        compute_on(lambda x: x, compute_type=3, out_memory_spaces=device)
    with compute_on("device_host"), metadata.set_xla_metadata(a=1), metadata.fuse_limit():
        assert metadata.xla_metadata_call(lambda x: x, a=1)(3) == metadata.must_fuse_call("1")(lambda x: x)(3)
    with pytest.raises(phlox.errors.OptionError, match="Invalid compute type moon"):
        compute_on(lambda x: x, compute_type="moon", out_memory_spaces=None)
    assert module("jax.experimental.shard_alike").shard_alike(1, 2) == (1, 2)
    assert module("jax.experimental.scheduling_groups").scheduling_group("a")(abs)(-1) == 1


_RULES = [
    ("i j, j k -> i k", {}, True),
    ("... (i j) -> ... i j", {}, True),
    ("(i j) -> i", {"j": 2}, True),
    ("i j -> i", {"reduction_factors": ("j",)}, True),
    ("i ->", {}, True),
    *[(text, {}, False) for text in ("i", "i -> j -> k", "(i) -> i", "1 -> i", "i; -> i", "(i j -> i", "i ... -> i")],
    ("(i j) -> i j", {"j": 2}, False),
    ("(i j) -> i", {}, False),
    ("i -> i", {"k": 2}, False),
    ("i -> i", {"need_replication_factors": ("k",)}, False),
]


@pytest.mark.parametrize(("text", "factors", "is_rule"), _RULES, ids=str)
def test_rules_for_partitioning_are_checked(text, factors, is_rule):
    partitioning = module("jax.experimental.custom_partitioning")
    f = partitioning.custom_partitioning(lambda x: x)
    if is_rule:
        f.def_partition(None, sharding_rule=text, **factors)
        assert repr(f.sharding_rule).startswith("SdyShardingRule((")
    else:
        with pytest.raises(ValueError):
            f.def_partition(None, sharding_rule=text, **factors)


def test_functions_with_rules_for_their_partitioning_run():
    partitioning = module("jax.experimental.custom_partitioning")
    f = partitioning.custom_partitioning(lambda x, n: x * n, static_argnums=(1,))
    f.def_partition(lambda *_: None, infer_sharding_from_operands=lambda *_: None, sharding_rule="i -> i")
    assert phlox.jit(lambda x: f(x, 2))(3.0) == 6 and f.sharding_rule.result_mappings == (("i",),)
    mapping = partitioning.ArrayMapping(partitioning.BATCHING, partitioning.CompoundFactor("a", "b"))
    assert partitioning.SdyShardingRule((mapping,), (mapping,), a=2, b=3).factor_sizes == {"a": 2, "b": 3}
    with pytest.raises(ValueError, match="at least two factors"):
        partitioning.CompoundFactor("a")


def test_the_attached_devices_are_a_topology():
    topologies = module("jax.experimental.topologies")
    topology = topologies.get_attached_topology()
    assert topologies.make_mesh(topology, (len(topology.devices),), ("x",)).size == len(phlox.devices())
    with pytest.raises(phlox.errors.UnsupportedError, match="devices that are there"):
        topologies.get_topology_desc("v5e:2x2", "tpu")


def test_code_stays_small():
    folder = Path(jax_internals.__file__).parent
    for part, most in {".": 1900, "_hijax": 1050, "_pallas": 1600}.items():
        assert sum(len(file.read_text().splitlines()) for file in (folder / part).glob("*.py")) <= most


def test_frames_of_files_are_hidden_and_shown(tmp_path):
    file = tmp_path / "layers.py"
    file.write_text("")
    for _ in range(2):
        _tracebacks.register_exclusion(str(file))
    assert is_internal(str(file)) and not is_internal(str(tmp_path / "other.py"))
    _tracebacks._exclude_paths.remove(str(file))
    assert str(file) not in _tracebacks._exclude_paths and not is_internal(str(file))


def test_element_types_of_a_library():
    dtypes = module("jax._src.dtypes")
    core = module("jax._src.core")

    class Rules:  # as flax's fp8_ops.fp32_max_grad: cotangents are accumulated by their maximum
        physical_element_aval = staticmethod(lambda dtype: core.ShapedArray((), np.dtype("float32")))
        convert_from = staticmethod(lambda dtype, other: other == np.float32)
        convert_to = staticmethod(lambda other, dtype: other == np.float32)
        tangent_dtype = staticmethod(lambda dtype: dtype)

        @staticmethod
        def add(dtype, x, y):
            return to(jnp.maximum(to(x, np.float32), to(y, np.float32)), dtype)

        @staticmethod
        def zero(dtype):
            assert dtypes.supports_inf(np.float32) and not dtypes.supports_inf(jnp.float8_e4m3fn)
            return to(np.float32(-np.inf), dtype)

    class Largest(dtypes.ExtendedDType):
        _rules = Rules
        name = "largest32"

        class type(dtypes.extended):
            pass

    largest = Largest()
    to = phlox.lax.convert_element_type
    assert phlox.dtypes.issubdtype(largest, phlox.dtypes.extended)
    assert isinstance(phlox.random.key(0).dtype, dtypes.ExtendedDType)

    @phlox.custom_vjp
    def scaled(x, scale):
        return x * to(scale, np.float32)

    scaled.defvjp(lambda x, scale: (scaled(x, scale), x), lambda x, ct: (ct, to(x, largest)))

    def loss(scale, xs):
        scale = to(scale, largest)
        _, ys = phlox.lax.scan(lambda carry, x: (carry, scaled(x, scale)), 0.0, xs)
        return ys.sum() + scaled(1.5, scale)

    for transform in (phlox.grad, lambda f: phlox.jit(phlox.grad(f))):
        assert transform(loss)(2.0, jnp.array([1.0, 4.0, 3.0])) == 4.0
    array = phlox.jit(lambda x: to(x, largest))(jnp.arange(3.0))
    assert array.dtype == largest and to(array, np.float32).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(phlox.errors.DtypeError, match="cannot become largest32"):
        to(1, largest)


def test_where_a_function_runs():
    core = module("jax.extend.core")
    seen = []

    def f(x):
        seen.append((core.unsafe_am_i_under_a_jit_DO_NOT_USE(), core.unsafe_am_i_under_a_vmap_DO_NOT_USE()))
        seen.append((core.unsafe_get_axis_names_DO_NOT_USE(), core.nonempty_axis_env_DO_NOT_USE()))
        return x

    f(1.0)
    phlox.jit(f)(1.0)
    phlox.vmap(f, axis_name="i")(jnp.ones(2))
    assert seen == [(False, False), ([], False), (True, False), ([], False), (False, True), (["i"], True)]


def test_options_and_shardings_of_xla():
    backend, sharding = module("jax.extend.backend"), module("jax.extend.sharding")
    assert backend.get_default_device() == phlox.devices()[0]
    options = backend.get_compile_options(1, 1, [phlox.devices()[0]], {"xla_cpu_enable_fast_math": False})
    assert (options.num_replicas, options.num_partitions) == (1, 1)
    assert options.device_assignment.replica_count() == 1
    with pytest.raises(ValueError, match="shape"):
        backend.get_compile_options(2, 1, [0])
    cleared = []

    class Cache:
        def cache_clear(self):
            cleared.append(self)

    cache = Cache()
    backend.register_backend_cache(cache, "tests")
    backend.clear_in_memory_compilation_cache()
    assert cleared == [cache]
    replicated = sharding.get_hlo_sharding_from_serialized_proto(b"")
    assert replicated.is_replicated()
    assert (
        sharding.get_hlo_sharding_from_serialized_proto(sharding.get_serialized_proto_from_hlo_sharding(replicated))
        == replicated
    )
    mlir = module("jax.extend.mlir")
    text = phlox.jit(lambda x: x + 1).lower(1.0).as_text()
    assert mlir.serialize_portable_artifact(text, "1.0.0").startswith(b"ML\xefR")


def test_rules_of_reductions_and_derivatives():
    ad, batching = module("jax.interpreters.ad"), module("jax.interpreters.batching")
    total = Primitive("documentation_total")
    total.def_impl(lambda x, axes: x.sum(axes))
    total.def_abstract_eval(lambda x, axes: phlox.typeof(np.zeros(np.zeros(x.shape).sum(axes).shape, x.dtype)))
    batching.defreducer(total)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for dim in range(3):
        expected = phlox.vmap(lambda y: y.sum(0), in_axes=dim)(x)
        assert (phlox.vmap(lambda y: total.bind(y, axes=(0,)), in_axes=dim)(x) == expected).all()
    exponential = Primitive("documentation_exponential")
    exponential.def_impl(jnp.exp)
    exponential.def_abstract_eval(lambda x: x)
    ad.defjvp2(exponential, lambda t, out, x: t * out)
    assert phlox.grad(exponential.bind)(2.0) == jnp.exp(2.0)
    with pytest.raises(NotImplementedError, match="Transpose rule"):
        ad.get_primitive_transpose(exponential)
    batching.fancy_primitive_batchers[exponential] = lambda axis, args, dims: (
        exponential.bind(*args) * axis.size,
        dims[0],
    )
    assert phlox.vmap(exponential.bind)(jnp.zeros(3)).tolist() == [3, 3, 3]
    name_p = module("jax.ad_checkpoint").name_p
    jaxpr = phlox.make_jaxpr(lambda x: phlox.ad_checkpoint.checkpoint_name(x, "a"))(1.0)
    assert [eqn.params["name"] for eqn in jaxpr.eqns if eqn.primitive is name_p] == ["a"]


@pytest.mark.parametrize("home", ["jax.interpreters.xla", "jax._src.dispatch"])
def test_a_primitive_is_executed_by_its_lowering_rule(home):
    # s2fft and wrappers of C libraries: def_impl(partial(xla.apply_primitive, primitive)).
    mlir = module("jax.interpreters.mlir")
    doubled = Primitive("doubled_by_apply_primitive")
    doubled.def_impl(functools.partial(module(home).apply_primitive, doubled))
    doubled.def_abstract_eval(lambda x, *, by: x)
    mlir.register_lowering(doubled, mlir.lower_fun(lambda x, *, by: 2 * x + by, multiple_results=False))
    assert doubled.bind(jnp.arange(2.0), by=1).tolist() == [1, 3]
    assert phlox.jit(lambda x: doubled.bind(x, by=3))(1.0) == 5


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("promote_dtypes", (1, jnp.ones(2, "bfloat16")), ["bfloat16", "bfloat16"]),
        ("promote_dtypes_inexact", (True, jnp.arange(2)), ["float32", "float32"]),
        ("promote_dtypes_complex", (jnp.arange(2), 1.5), ["complex64", "complex64"]),
        ("promote_args", ("f", jnp.int8(1), jnp.float16(2)), ["float16", "float16"]),
        ("promote_args_inexact", ("f", jnp.int8(1), 2), ["float32", "float32"]),
        ("ensure_arraylike", ("f", True, np.float32(1)), ["bool", "float32"]),
    ],
)
def test_operands_are_promoted_as_orthax_and_cuthbert_need_it(name, args, expected):
    arrays = getattr(module("jax._src.numpy.util"), name)(*args)
    assert all(isinstance(x, phlox.Array) for x in arrays)
    assert [x.dtype.name for x in arrays] == expected


def test_operands_are_checked_and_get_one_rank():
    util = module("jax._src.numpy.util")
    assert [x.shape for x in util.promote_args("f", jnp.ones((2, 3)), jnp.ones(3), 1)] == [(2, 3), (1, 3), ()]
    assert util.ensure_arraylike("f", 2).shape == ()
    util.check_arraylike("f", 1.0, jnp.ones(2))
    with pytest.raises(TypeError, match=r"f requires ndarray or scalar arguments.*list"):
        util.check_arraylike("f", 1.0, [1.0])


def test_axes_and_versions_as_torchax_reads_them():
    canonicalize_axis = jax_internals.find("jax._src.util.canonicalize_axis")
    assert canonicalize_axis(-1, 3) == 2
    with pytest.raises(ValueError, match="axis 3 is out of bounds for array of dimension 3"):
        canonicalize_axis(3, 3)
    assert jax_internals.find("jax.version._version") == jax_internals.JAX_VERSION


def test_functions_that_name_errors_raise_them():
    raised = {}
    for path in Path(phlox.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                names = {x.id if isinstance(x, ast.Name) else getattr(x, "attr", "") for x in ast.walk(function)}
                raised.setdefault(function.name, set()).update(names)
    for error, classes in _RAISED_BY_FUNCTIONS.items():
        for functions in classes.values():
            assert [name for name in functions.split() if error not in raised.get(name, ())] == []
