"""Stages ahead of time, names in programs, export and foreign functions: what phlox says and computes is what jax does.

Functions of no values (registering, folders) are in tests/unit: `ffi.TypeRegistration`, `ffi.register_ffi_type`,
`ffi.register_ffi_type_id`, `ffi.register_ffi_target_as_batch_partitionable`, `ffi.build_ffi_lowering_function`,
`ffi.ffi_lowering`, and annotations: `stages.CompilerOptions`.
"""

import collections
import re

import jax
import jax.export
import jax.ffi
import jax.stages
import numpy as np
import pytest

import phlox

W = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
ARGS = ({"w": W, "b": np.float32(2)}, 3.0)


def model(m):
    def layer(p, x, *, k):
        with m.named_scope("first"):
            h = m.numpy.sin(p["w"]) * x
        with m.named_scope("second"):
            h = m.named_call(lambda h: m.numpy.tanh(h) + p["b"], name="inner")(h)
        return {"h": h.sum(0), "k": h.shape[0] * k}

    return layer


def jitted(m, **options):
    return m.jit(model(m), static_argnames="k", **options)


def stages(m, **options):
    traced = jitted(m, **options).trace(*ARGS, k=2)
    lowered = traced.lower()
    return [traced, lowered, lowered.compile()]


@pytest.mark.parametrize("which", range(3), ids=["Traced", "Lowered", "Compiled"])
def test_what_a_stage_says(which):
    mine, theirs = stages(phlox)[which], stages(jax)[which]
    assert isinstance(mine, (phlox.stages.Traced, phlox.stages.Lowered, phlox.stages.Compiled)[which])
    assert isinstance(theirs, (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled)[which])
    for name in ("args_info", "in_avals", "in_tree", "out_tree", "donate_argnums"):
        assert str(getattr(mine, name)) == str(getattr(theirs, name)), name
    info = phlox.tree.leaves(mine.args_info)[0]
    assert isinstance(info, phlox.stages.ArgInfo) and (info.shape, info.donated) == ((), False)
    described = [[(x.shape, x.dtype) for x in m.tree.leaves(s.out_info)] for m, s in ((phlox, mine), (jax, theirs))]
    assert described[0] == described[1]


def test_lowering_forgets_weak_types():
    def weak(m):
        traced = m.jit(lambda x: (x + 1, 2, x > 0)).trace(1.0)
        lowered = traced.lower()
        return [[s.weak_type for s in stage.out_info] for stage in (traced, lowered, lowered.compile())]

    assert weak(phlox) == weak(jax) == [[True, True, True], [False] * 3, [False] * 3]


def test_traced_programs_print_alike():
    mine, theirs = stages(phlox)[0], stages(jax)[0]
    assert mine.fun_name == theirs.fun_name == "layer"
    assert str(mine.out_avals) == str(theirs.out_avals)
    normal = lambda text: re.sub(r"\s+", " ", re.sub(r" (out_)?sharding=None| accuracy=None", "", str(text)))
    assert normal(mine.jaxpr).replace("[accuracy=None]", "") == normal(theirs.jaxpr).replace("[accuracy=None]", "")


def test_donated_arguments_are_told():
    f = lambda m: m.jit(lambda x, y: (x + 1, y), donate_argnums=0).lower(np.ones(3, np.float32), {"y": 2.0})
    mine, theirs = f(phlox), f(jax)
    assert str(mine.args_info) == str(theirs.args_info)
    assert mine.donate_argnums == theirs.donate_argnums == (0,)


def test_jitted_functions_are_wrapped():
    for m in (phlox, jax):
        assert isinstance(jitted(m), m.stages.Wrapped)
        assert not isinstance(model(m), m.stages.Wrapped)


def test_costs_are_those_of_the_same_program():
    (_, lowered, compiled), (_, lowered_theirs, compiled_theirs) = stages(phlox), stages(jax)
    assert lowered.cost_analysis() == lowered_theirs.cost_analysis()
    assert set(compiled.cost_analysis()) == set(compiled_theirs.cost_analysis())
    for name in ("flops", "transcendentals"):
        assert compiled.cost_analysis()[name] == compiled_theirs.cost_analysis()[name]
    for name in ("argument_size_in_bytes", "output_size_in_bytes", "alias_size_in_bytes"):
        assert getattr(compiled.memory_analysis(), name) == getattr(compiled_theirs.memory_analysis(), name)


def test_compiled_functions_compute_the_same():
    mine, theirs = (s[2](*ARGS) for s in (stages(phlox), stages(jax)))
    assert sorted(mine) == sorted(theirs)
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name])
        assert str(mine[name].aval) == str(theirs[name].aval)


WRONG = {
    "structure": lambda c: c(ARGS[0]),
    "static": lambda c: c(*ARGS, k=2),
    "shape": lambda c: c({"w": np.ones((3, 3), np.float32), "b": np.float32(1)}, 3.0),
    "dtype": lambda c: c({"w": np.ones((2, 3), np.int32), "b": np.float32(1)}, 3.0),
}


@pytest.mark.parametrize("name", WRONG)
def test_compiled_functions_refuse_the_same(name):
    for m in (phlox, jax):
        with pytest.raises(TypeError):
            WRONG[name](stages(m)[2])


def test_layouts_and_shardings_are_alike():
    mine, theirs = stages(phlox)[2], stages(jax)[2]
    order = lambda m, formats: [f.layout.major_to_minor for f in m.tree.leaves(formats)]
    assert order(phlox, mine.input_formats) == order(jax, theirs.input_formats)
    assert order(phlox, mine.output_formats) == order(jax, theirs.output_formats)
    place = lambda m, shardings: [type(s).__name__ for s in m.tree.leaves(shardings)]
    assert place(phlox, mine.input_shardings) == place(jax, theirs.input_shardings)
    assert place(phlox, mine.output_shardings) == place(jax, theirs.output_shardings)


def test_shardings_over_a_mesh_of_one_device():
    found = []
    for m in (phlox, jax):
        place = m.NamedSharding(m.make_mesh((1, 1), ("a", "b"), (m.sharding.AxisType.Auto,) * 2), m.P("a", None))
        x = m.device_put(m.numpy.ones((4, 2)), place)
        for f in (m.jit(lambda x: x * 2), m.jit(lambda x: x * 2, in_shardings=place)):
            (args, _), out = f.lower(x).compile().input_shardings, f.lower(x).compile().output_shardings
            found.append([args[0].spec, out.spec])
    assert list(map(str, found[:2])) == list(map(str, found[2:]))


@pytest.mark.parametrize("platforms", [("cpu",), ("tpu",), ("cuda", "cpu")])
def test_lowering_for_other_platforms(platforms):
    for m in (phlox, jax):
        assert "stablehlo.sine" in stages(m)[0].lower(lowering_platforms=platforms).as_text()


def test_lowering_takes_the_branch_of_the_platform():
    for m in (phlox, jax):
        branches = {"cpu": m.numpy.sin, "cuda": m.numpy.cos, "default": m.numpy.tan}
        traced = m.jit(lambda x, m=m, branches=branches: m.lax.platform_dependent(x, **branches)).trace(1.0)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        assert "stablehlo.cosine" in text and "stablehlo.sine" not in text


def test_names_of_arguments():
    def f(x, y, *args, k, **more):
        return x["a"][0] + args[1] + k + more["z"] if y else 0

    def names(m):
        lowered = m.jit(f, static_argnums=1).lower({"a": (1.0,), "b": 2.0}, True, 3.0, 4.0, k=5.0, z=6.0)
        return re.findall(r'%arg\d: [^ ]* loc\("([^"]*)"\)', lowered.as_text(debug_info=True))

    assert names(phlox) == names(jax) == ["x['a'][0]", "args[1]", "k", "more['z']"]


def test_compiler_options():
    options = {"xla_backend_optimization_level": 1}
    results = [m.jit(model(m), static_argnames="k", compiler_options=options)(*ARGS, k=2) for m in (phlox, jax)]
    np.testing.assert_array_equal(results[0]["h"], results[1]["h"])
    for m in (phlox, jax):
        with pytest.raises(RuntimeError):
            stages(m)[1].compile({"no_such_option": 1})
        with pytest.raises(ValueError):
            stages(m)[1].as_text("no such dialect")


def test_the_objects_of_the_compiler():
    for m in (phlox, jax):
        lowered = stages(m)[1]
        assert type(lowered.compiler_ir()).__name__ == "Module"
        assert type(lowered.compiler_ir("hlo")).__name__ == "XlaComputation"
        assert lowered.as_text("hlo").startswith("HloModule jit_layer")


# --- names


def names(m, f, *args):
    """The names in the text for people, in the order of the text: jit(f)/scope/sin."""
    text = m.jit(f).lower(*args).as_text(debug_info=True)
    return set(re.findall(r'loc\("(jit[^"]*/[^"]*)"', text))


def scoped(m):
    def f(x):
        with m.named_scope("outer"):
            y = m.vmap(m.named_call(lambda x: m.numpy.sin(x) * x, name="example"))(x)
            return m.numpy.cos(y).sum()

    return f


SCOPED = {
    "plain": lambda m: scoped(m),
    "grad": lambda m: m.grad(m.named_call(scoped(m), name="loss")),
    "jvp": lambda m: lambda x: m.jvp(m.named_call(scoped(m), name="loss"), (x,), (x,)),
    "vmap": lambda m: lambda x: m.vmap(m.named_call(lambda y: m.numpy.tanh(y), name="row"))(x),
    "transpose": lambda m: lambda x: m.linear_transpose(m.named_call(lambda y: 2 * y, name="double"), x)(x),
}


@pytest.mark.parametrize("name", SCOPED)
def test_names_are_those_of_jax(name):
    x = np.ones(3, np.float32)
    mine, theirs = names(phlox, SCOPED[name](phlox), x), names(jax, SCOPED[name](jax), x)
    # What transformations themselves add (broadcasts of ones) has no counterpart; what the user wrote has.
    written = {n for n in theirs if n.rsplit("/", 1)[1] in ("sin", "cos", "mul", "tanh", "neg") and "//" not in n}
    assert written and written <= mine


def compiled_names(m, f, *args):
    """The names of operations in the compiled program, which profilers show."""
    return set(re.findall(r'op_name="([^"]*)"', m.jit(f).lower(*args).compile().as_text()))


def loops_and_functions(m):
    def f(x):
        with m.named_scope("layer"):
            y = m.numpy.sin(x) * m.lax.scan(lambda c, _: (m.numpy.cos(c), None), x, None, length=3)[0]
        return m.lax.cond(y > 0, m.numpy.sin, m.numpy.exp, y)

    return f


COMPILED = {
    "plain": lambda m: loops_and_functions(m),
    "jvp of jit": lambda m: lambda x: m.jvp(m.jit(loops_and_functions(m)), (x,), (x,)),
    "grad of jit": lambda m: m.grad(m.jit(loops_and_functions(m))),
    "grad": lambda m: m.grad(loops_and_functions(m)),
    "checkpoint": lambda m: m.named_scope("outer")(m.checkpoint(loops_and_functions(m))),
    "jit inside of a loop": lambda m: lambda x: m.lax.fori_loop(0, 3, lambda i, c: m.jit(m.numpy.sin)(c) * i, x),
}


@pytest.fixture
def names_of_stored_programs():
    """jax's cache takes programs for the same that differ in their names alone, unless this flag is set."""
    jax.config.update("jax_compilation_cache_include_metadata_in_key", True)
    yield
    jax.config.update("jax_compilation_cache_include_metadata_in_key", False)


@pytest.mark.parametrize("name", COMPILED)
def test_names_in_compiled_programs_are_those_of_jax(name, names_of_stored_programs):
    with phlox.config.scope(enable_compilation_cache=False):  # which knows programs without their names
        mine, theirs = (compiled_names(m, COMPILED[name](m), 0.5) for m in (phlox, jax))
    # jax calls the body of a scan once more, by a name of its own, which depends on its version.
    theirs = {re.sub("(closed_call|eval_jaxpr)/", "", n) for n in theirs}
    written = {n for n in theirs if n.rsplit("/", 1)[-1] in ("sin", "cos", "mul", "neg", "exp") and ";" not in n}
    assert written and written <= mine, written - mine


@pytest.mark.parametrize("name", ["<lambda>", "step", "a b<c>", "f 1", "_"])
def test_names_of_modules_are_those_of_jax(name):
    def f(x):
        return x + 1

    f.__name__ = name
    mine, theirs = (m.jit(f).lower(1.0).as_text().split(" attributes")[0] for m in (phlox, jax))
    assert mine == theirs


def test_name_stacks_in_printed_programs():
    texts = [m.make_jaxpr(scoped(m))(W[0]).pretty_print(name_stack=True) for m in (phlox, jax)]
    stacks = [re.findall(r"# \[(.*?)\]", text) for text in texts]
    assert stacks[0] == stacks[1] and len(stacks[0]) >= 4


# --- computing while tracing


def test_compile_time_eval_agrees():
    def f(m):
        def run(x):
            with m.ensure_compile_time_eval():
                n = m.numpy.arange(5).sum()
                assert not isinstance(n, m.core.Tracer if m is jax else type(x))
                return x * int(n) if n > 3 else x

        return run

    for transform in (lambda m, g: m.jit(g), lambda m, g: m.grad(g), lambda m, g: m.jit(m.grad(g))):
        mine, theirs = (transform(m, f(m))(2.0) for m in (phlox, jax))
        assert float(mine) == float(theirs)


def test_the_same_conditions_are_refused_at_compile_time():
    def f(m):
        def run(x):
            with m.ensure_compile_time_eval():
                return 1 if x > 0 else 2

        return run

    for m in (phlox, jax):
        with pytest.raises(TypeError):
            m.jit(f(m))(1.0)


# --- export


def exported(m, **options):
    return m.export.export(jitted(m), **options)(*ARGS, k=2)


def exported_pair(**options):
    return exported(phlox, **options), exported(jax, **options)


def through_bytes(m, made, order=0):
    """What another process gets. jax needs a package for this that it does not depend on, so its own is taken as it is."""
    return m.export.deserialize(made.serialize(vjp_order=order)) if m is phlox else made


def test_exported_functions_say_the_same():
    mine, theirs = exported_pair()
    assert isinstance(mine, phlox.export.Exported) and isinstance(theirs, jax.export.Exported)
    for name in (
        "fun_name",
        "in_tree",
        "out_tree",
        "platforms",
        "nr_devices",
        "module_kept_var_idx",
        "ordered_effects",
    ):
        assert str(getattr(mine, name)) == str(getattr(theirs, name)), name
    for name in ("in_avals", "out_avals"):
        assert str(getattr(mine, name)) == str(getattr(theirs, name)), name
    assert phlox.export.default_export_platform() == jax.export.default_export_platform()
    assert mine.has_vjp() == theirs.has_vjp()
    lowest, highest = (
        getattr(phlox.export, f"{w}_supported_calling_convention_version") for w in ("minimum", "maximum")
    )
    assert lowest <= mine.calling_convention_version <= highest
    # phlox numbers its own convention: phlox.export.minimum_supported_calling_convention_version is not jax's,
    # nor phlox.export.maximum_supported_calling_convention_version


@pytest.mark.parametrize("order", [0, 1, 2])
def test_exported_functions_compute_and_differentiate_alike(order):
    def run(m):
        made = through_bytes(m, exported(m), order)
        loss = lambda w: (made.call({"w": w, "b": ARGS[0]["b"]}, 3.0)["h"] ** 2).sum()
        for _ in range(order):
            loss = lambda w, inner=loss: (m.grad(inner)(w) * W).sum()
        return m.jit(loss)(W)

    np.testing.assert_allclose(run(phlox), run(jax), rtol=1e-5)


def test_exported_derivatives_take_and_return_the_same():
    mine, theirs = (made.vjp() for made in exported_pair())
    assert [a.str_short() for a in theirs.in_avals] == [a.short.replace("f32", "float32") for a in mine.in_avals]
    assert [a.str_short() for a in theirs.out_avals] == [a.short.replace("f32", "float32") for a in mine.out_avals]
    ones = [np.ones(a.shape, a.dtype) for a in mine.in_avals]
    for x, y in zip(mine.call(*ones), theirs.call(*ones), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


EXPORT_REFUSALS = {
    "not jitted": lambda m: m.export.export(model(m)),
    "shape": lambda m: exported(m).call({"w": W.T, "b": np.float32(1)}, 3.0),
    "dtype": lambda m: exported(m).call({"w": W.astype(np.int32), "b": np.float32(1)}, 3.0),
    "structure": lambda m: exported(m).call(W),
    "platform": lambda m: exported(m, platforms=("tpu",)).call(*ARGS),
    "foreign function": lambda m: m.export.export(m.jit(m.ffi.ffi_call("odd", m.ShapeDtypeStruct((), "float32"))))(),
}


@pytest.mark.parametrize("name", EXPORT_REFUSALS)
def test_export_refuses_the_same(name):
    for m in (phlox, jax):
        with pytest.raises(ValueError):
            EXPORT_REFUSALS[name](m)


def test_disabled_safety_checks():
    for m in (phlox, jax):
        check = m.export.DisabledSafetyCheck
        made = exported(m, platforms=("tpu",), disabled_checks=[check.platform()])
        assert made.call(*ARGS)["h"].shape == (3,)
        assert str(check.custom_call("odd")) == "custom_call:odd"
        assert check.custom_call("odd").is_custom_call() == "odd"
        odd = m.jit(m.ffi.ffi_call("odd", m.ShapeDtypeStruct((), "float32")))
        assert "odd" in m.export.export(odd, disabled_checks=[check.custom_call("odd")])().mlir_module()


def test_containers_in_exported_functions():
    for m in (phlox, jax):
        pair = collections.namedtuple("Pair", ["x", "y"])
        f = m.jit(lambda p: pair(p.y, {"o": collections.OrderedDict(z=p.x, a=None)}))
        m.export.register_namedtuple_serialization(pair, serialized_name="test_stages.Pair")
        with pytest.raises(ValueError):
            m.export.register_namedtuple_serialization(pair, serialized_name="another")
        out = through_bytes(m, m.export.export(f)(pair(1.0, 2))).call(pair(1.0, 2))
        assert isinstance(out, pair) and list(out.y["o"]) == ["z", "a"]
        assert (float(out.x), float(out.y["o"]["z"])) == (2, 1)

        class Box:
            def __init__(self, inside, label):
                self.inside, self.label = inside, label

        m.tree_util.register_pytree_node(
            Box, lambda b: ((b.inside,), b.label), lambda label, inside: Box(*inside, label)
        )
        m.export.register_pytree_node_serialization(
            Box, serialized_name="Box", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
        )
        made = through_bytes(m, m.export.export(m.jit(lambda b: Box(b.inside + 1, "out")))(Box(1.0, "in")))
        assert made.call(Box(2.0, "in")).label == "out" and float(made.call(Box(2.0, "in")).inside) == 3
        with pytest.raises(ValueError):
            made.call(Box(2.0, "other"))


SHAPES = [
    "a, 4, b",
    "a",
    "",
    "(a, 2)",
    "2*a, a*b",
    "a + 1",
    "a - 1",
    "a + a",
    "max(a, 3), mod(a, 2)",
    "floordiv(a, 2)",
    "a*b*a",
]


@pytest.mark.parametrize("text", SHAPES)
def test_symbolic_shapes_read_alike(text):
    mine, theirs = (m.export.symbolic_shape(text) for m in (phlox, jax))
    assert str(mine) == str(theirs)
    assert [phlox.export.is_symbolic_dim(n) for n in mine] == [jax.export.is_symbolic_dim(n) for n in theirs]


@pytest.mark.parametrize("text", ["a, _", "...", "a, ...", "_, 3, ..."])
def test_symbolic_shapes_like_another(text):
    like = (2, 3) if text == "a, _" else (2, 3, 4)
    mine, theirs = (m.export.symbolic_shape(text, like=like) for m in (phlox, jax))
    assert str(mine) == str(theirs)


@pytest.mark.parametrize("text", ["a, 4", "a, 3, ...", "_, 5"])
def test_symbolic_shapes_with_another_length(text):
    for m in (phlox, jax):
        with pytest.raises(ValueError):
            m.export.symbolic_shape(text, like=(2, 7))


@pytest.mark.parametrize("text", ["a b", "a // 2", "a,, b", "1.5", "_", "f(a)"])
def test_symbolic_shapes_that_cannot_be_read(text):
    for m in (phlox, jax):
        with pytest.raises(ValueError):
            m.export.symbolic_shape(text)


def test_symbolic_arguments():
    args = {"x": np.ones((3, 4), np.float32), "y": np.ones(3, np.int32)}
    for specs in ({"x": "a, 4", "y": "a"}, {"x": "a, ...", "y": None}, "a, ..."):
        mine, theirs = (m.export.symbolic_args_specs(args, specs) for m in (phlox, jax))
        assert str(mine) == str(theirs)
    for m in (phlox, jax):
        scope = m.export.SymbolicScope(["a >= 2"])
        a, other = m.export.symbolic_shape("a, b", scope=scope)
        assert a == m.export.symbolic_shape("a", scope=scope)[0] and a != other
        with pytest.raises(ValueError):
            a + m.export.symbolic_shape("a")[0]


# --- foreign functions


@pytest.fixture(scope="module")
def lapack():
    from jaxlib.cpu import _lapack

    _lapack.initialize()
    for name, handler in _lapack.registrations().items():
        phlox.ffi.register_ffi_target(name, handler)
        jax.ffi.register_ffi_target(name, handler)


def factor(m, a, **options):
    structs = [m.ShapeDtypeStruct(a.shape, a.dtype), m.ShapeDtypeStruct(a.shape[:-2], "int32")]
    call = m.ffi.ffi_call(
        "lapack_spotrf_ffi", structs, input_layouts=[(1, 0)], output_layouts=[(1, 0), None], **options
    )
    return call(a, uplo=np.uint8(ord("U")))


def spd(*shape):
    x = np.random.default_rng(0).normal(size=(*shape, 3, 3)).astype(np.float32)
    return x @ x.swapaxes(-1, -2) + np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    "method", [None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_foreign_functions_compute_the_same(lapack, method):
    results = []
    for m in (phlox, jax):
        f = lambda a: factor(m, a, vmap_method=method)
        results.append(f(spd()) if method is None else m.jit(m.vmap(f, in_axes=1))(spd(4).swapaxes(0, 1)))
    assert type(results[0]) is type(results[1])
    (mine, info), (theirs, info_theirs) = results
    np.testing.assert_allclose(np.triu(mine), np.triu(theirs), rtol=1e-6)
    np.testing.assert_array_equal(info, info_theirs)


def custom_call(m, f, *args):
    """The line that calls a foreign function, without names of values; jax folds splats, phlox writes them out."""
    (line,) = [x for x in m.jit(f).lower(*args).as_text().splitlines() if "custom_call" in x]
    line = re.sub(r"dense<\[(\d+)\]>", r"dense<\1>", line)
    return set(re.split(r", (?=[a-z_.]+ = )|[{}]", line.split("=", 1)[1]))


def test_calls_of_foreign_functions_are_written_alike():
    a = spd()
    cases = [
        lambda m: custom_call(m, lambda a: factor(m, a, input_output_aliases={0: 0}, has_side_effect=True), a),
        lambda m: custom_call(
            m,
            lambda x: m.ffi.ffi_call("f", m.ShapeDtypeStruct((2,), "float32"))(x, k=3, s="x", t=True, u=np.uint8(2)),
            1.0,
        ),
        lambda m: custom_call(
            m,
            lambda x: m.ffi.ffi_call(
                "f", m.ShapeDtypeStruct((2,), "float32"), custom_call_api_version=2, legacy_backend_config="c"
            )(x),
            1.0,
        ),
    ]
    for case in cases:
        assert case(phlox) == case(jax)


FFI_REFUSALS = {
    "grad": (ValueError, lambda m: m.grad(lambda x: m.ffi.ffi_call("f", x)(x))(np.float32(1))),
    "vmap": (NotImplementedError, lambda m: m.vmap(lambda x: m.ffi.ffi_call("f", m.ShapeDtypeStruct((), "float32"))(x))(np.ones(2, np.float32))),
    "method": (ValueError, lambda m: m.ffi.ffi_call("f", m.ShapeDtypeStruct((), "float32"), vmap_method="x")),
    "struct": (ValueError, lambda m: m.ffi.ffi_call("f", 3)),
    "list": (TypeError, lambda m: m.ffi.ffi_call("f", m.ShapeDtypeStruct((), "float32"))(x=[1])),
    "layouts": (ValueError, lambda m: m.ffi.ffi_call("f", m.ShapeDtypeStruct((), "float32"), input_layouts=[(0,)])()),
    "aliases": (ValueError, lambda m: m.ffi.ffi_call("f", m.ShapeDtypeStruct((), "float32"), input_output_aliases={0: 0})(np.ones(2))),
    "unknown target": (RuntimeError, lambda m: m.ffi.ffi_call("no_such", m.ShapeDtypeStruct((), "float32"))().block_until_ready()),
}  # fmt: skip


@pytest.mark.parametrize("name", FFI_REFUSALS)
def test_foreign_functions_refuse_the_same(name):
    error, call = FFI_REFUSALS[name]
    for m in (phlox, jax):
        with pytest.raises(error):
            call(m)


def test_headers_and_capsules():
    import ctypes

    assert phlox.ffi.include_dir() == jax.ffi.include_dir()
    function = ctypes.CDLL(None).abs
    assert type(phlox.ffi.pycapsule(function)) is type(jax.ffi.pycapsule(function))
