"""Traced, lowered and compiled functions; names of parts of programs; computing while tracing; hidden constants."""

import re

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox.errors import (
    CompilerOptionError,
    DeviceError,
    OptionError,
    ShapeError,
    TracerBoolConversionError,
    TreeError,
    UnexpectedTracerError,
    UnsupportedError,
)
from phlox.extend import closed_call

X = phlox.ShapeDtypeStruct((3,), "float32")


def named(p, n):
    return {"y": jnp.sin(p["a"]) * n}


def test_stages_know_their_arguments_and_results():
    f = phlox.jit(lambda p, q, n: {"y": p["a"] * q * n}, static_argnums=2, donate_argnums=0)
    for stage in (f.trace({"a": X}, 2.0, 3), f.lower({"a": X}, 2.0, 3), f.lower({"a": X}, 2.0, 3).compile()):
        assert stage.in_tree == phlox.tree.structure((({"a": 0}, 0), {}))
        assert stage.out_tree == phlox.tree.structure({"y": 0})
        assert stage.donate_argnums == (0,)
        (info, number), kwargs = stage.args_info
        assert (info["a"].shape, info["a"].dtype, info["a"].donated) == ((3,), np.float32, True)
        assert (number.shape, number.donated, kwargs) == ((), False, {})
        assert stage.in_avals[0][0]["a"] is X.aval
        assert stage.out_info["y"].shape == (3,)


def test_traced():
    traced = phlox.jit(named, static_argnames="n").trace({"a": X}, n=2)
    assert traced.fun_name == "named"
    assert traced.out_avals == {"y": X.aval}
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["sin", "mul"]
    np.testing.assert_allclose(traced({"a": jnp.ones(3)})["y"], 2 * np.sin(np.ones(3)), rtol=1e-6)
    with pytest.raises(ShapeError):
        traced({"a": jnp.ones(4)})
    elsewhere = traced.lower(lowering_platforms=("tpu",))
    assert elsewhere.as_text() == traced.lower().as_text()
    with pytest.raises(DeviceError, match="tpu"):
        elsewhere.compile()


def test_lowered_in_both_dialects():
    lowered = phlox.jit(named, static_argnums=1).lower({"a": X}, 2)
    assert lowered.as_text("stablehlo") == lowered.as_text()
    assert "sine(" in lowered.as_text("hlo")
    assert lowered.cost_analysis()["transcendentals"] == 3
    assert "stablehlo.sine" in str(lowered.compiler_ir())
    assert "sine(" in lowered.compiler_ir("hlo").as_hlo_text()
    for ask in (lowered.as_text, lowered.compiler_ir):
        with pytest.raises(OptionError, match="mhlo"):
            ask("mhlo")
    with pytest.raises(UnsupportedError):
        lowered.compile(device_assignment=())
    assert lowered.compile(device_assignment=(phlox.devices()[0],)).out_tree == lowered.out_tree


def test_compiled_says_where_things_lie():
    compiled = phlox.jit(lambda x, unused: (x.T, 1)).lower(jnp.ones((2, 3)), 1.0).compile()
    here = phlox.sharding.SingleDeviceSharding(phlox.devices()[0])
    assert compiled.input_shardings == ((here, None), {})
    assert compiled.output_shardings == (here, here)
    (first, second), _ = compiled.input_formats
    assert (first.layout.major_to_minor, first.sharding, second) == ((0, 1), here, None)
    assert [f.layout.major_to_minor for f in compiled.output_formats] == [(0, 1), ()]
    assert compiled.out_info[0].sharding == here
    assert compiled.memory_analysis().argument_size_in_bytes == 24
    assert compiled.cost_analysis()["bytes accessed"] > 0
    assert compiled.runtime_executable().hlo_modules()
    assert compiled.as_text().startswith("HloModule")
    np.testing.assert_array_equal(compiled.call(np.ones((2, 3), np.float32), 5.0)[0], np.ones((3, 2)))


def test_compiled_refuses_other_arguments():
    compiled = phlox.jit(named, static_argnums=1).lower({"a": X}, 2).compile()
    assert compiled({"a": jnp.ones(3)})["y"].shape == (3,)
    for wrong, error, words in [
        (({"a": jnp.ones(3)}, 2), TreeError, "a tuple of 1"),
        (({"b": jnp.ones(3)},), TreeError, "'b'"),
        (
            ({"a": jnp.ones(4)},),
            ShapeError,
            r"Argument 'p\['a'\]' compiled with float32\[3\] and called with float32\[4\]",
        ),
        (({"a": jnp.ones(3, int)},), ShapeError, r"called with int32\[3\]"),
        (({"a": "text"},), phlox.errors.ArgumentError, "text"),
    ]:
        with pytest.raises(error, match=words):
            compiled(*wrong)
    with pytest.raises(UnexpectedTracerError):
        phlox.grad(lambda a: compiled({"a": a})["y"].sum())(jnp.ones(3))


def test_options_of_the_compiler():
    options = {"xla_backend_optimization_level": 0}
    f = phlox.jit(lambda x: jnp.sin(x) + 1, compiler_options=options)
    expected = np.sin(np.ones(3)) + 1
    np.testing.assert_allclose(f(jnp.ones(3)), expected, rtol=1e-6)
    np.testing.assert_allclose(f.lower(X).compile()(jnp.ones(3)), expected, rtol=1e-6)
    np.testing.assert_allclose(phlox.jit(jnp.sin).lower(X).compile(options)(jnp.ones(3)), np.sin(np.ones(3)), rtol=1e-6)
    with pytest.raises(CompilerOptionError, match="no_such_option"):
        phlox.jit(lambda x: x, compiler_options={"no_such_option": True})(1.0)
    with pytest.raises(CompilerOptionError, match="no_such_option"):
        phlox.jit(lambda x: x).lower(1.0).compile({"no_such_option": True})
    with pytest.raises(CompilerOptionError, match="list"):
        phlox.jit(lambda x: x, compiler_options={"xla_backend_optimization_level": [0]})


def test_lowering_for_arguments_that_lie_elsewhere():
    device = phlox.devices()[-1]
    place = phlox.sharding.SingleDeviceSharding(device)
    compiled = phlox.jit(lambda x: x + 1).lower(X.update(sharding=place)).compile()
    assert compiled.input_shardings == ((place,), {})
    assert compiled(phlox.device_put(jnp.ones(3), device)).devices() == {device}


def test_pmapped_functions_have_stages():
    f = phlox.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i")
    x = jnp.ones((1, 3))
    assert f.trace(x).jaxpr.eqns[-1].primitive.name == "shard_map"
    lowered = f.lower(x)
    assert "sdy.mesh" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(x), f(x))


def test_struct_update():
    assert X.update(shape=(4,)) == phlox.ShapeDtypeStruct((4,), "float32")
    assert X.update(dtype="int8", weak_type=True) == phlox.ShapeDtypeStruct((3,), "int8", weak_type=True)


# --- names


def paths(f, *args):
    """The locations in the text for people."""
    return re.findall(r'loc\("([^"]*/[^"]*)"', phlox.jit(f).lower(*args).as_text(debug_info=True))


def test_source_files_without_their_folders():
    lowered, file = phlox.jit(lambda x: jnp.sin(x)).lower(1.0), __file__.rpartition("/")[2]
    assert f'"{__file__}":' in lowered.as_text(debug_info=True)
    with phlox.config.scope(hlo_source_file_canonicalization_regex=".*/tests/unit/"):
        assert f'"{file}":' in lowered.as_text(debug_info=True)
    with pytest.raises(ValueError, match="regular expression"):
        phlox.config.update("jax_hlo_source_file_canonicalization_regex", "(")


def test_scopes_stand_in_locations_and_printed_programs():
    def f(x):
        with phlox.named_scope("layer"), phlox.named_scope("inner"):
            y = jnp.sin(x)
        return jnp.cos(y)

    assert paths(f, 1.0) == ["jit(f)/layer/inner/sin", "jit(f)/cos"]
    text = phlox.make_jaxpr(f)(1.0).pretty_print(name_stack=True)
    assert "sin a # [layer/inner]" in text and text.count("#") == 1
    assert "layer" not in str(phlox.make_jaxpr(f)(1.0))


def test_locations_name_the_line():
    def f(x):
        return jnp.sin(x)

    text = phlox.jit(f).lower(1.0).as_text(debug_info=True)
    line = f.__code__.co_firstlineno + 1
    assert f'loc("jit(f)/sin"("{__file__}":{line}:16))' in text


def test_transformations_stand_around_the_names_below_them():
    f = phlox.named_call(lambda x: jnp.sin(x), name="layer")

    def g(xs):
        with phlox.named_scope("outer"):
            return phlox.vmap(phlox.grad(f))(xs)

    found = paths(g, X)
    assert "jit(g)/outer/vmap(jvp(layer))/cos" in found
    assert "jit(g)/outer/vmap(transpose(jvp(layer)))/mul" in found


def test_names_reach_bodies_of_loops_and_inner_functions():
    def f(x):
        with phlox.named_scope("around"):
            y = lax.while_loop(lambda c: c < 3, phlox.named_call(lambda c: c * 2, name="body"), x)
            return phlox.jit(phlox.named_call(jnp.sin, name="inside"))(y)

    found = paths(f, 1.0)
    assert "jit(f)/around/while/body/body/mul" in found
    assert "jit(f)/around/jit(sin)" in found
    assert "inside/sin" in found  # and what calls it is written before it by the compiler


def test_scopes_do_not_change_what_is_compiled():
    plain, scoped = (lambda x: jnp.sin(x)), phlox.named_call(lambda x: jnp.sin(x), name="scoped")
    plain.__name__ = scoped.__name__ = "f"
    assert phlox.jit(plain).lower(1.0).as_text() == phlox.jit(scoped).lower(1.0).as_text()
    assert "loc(" not in phlox.jit(scoped).lower(1.0).as_text()


def test_a_scope_is_entered_inside_of_itself():
    scope = phlox.named_scope("layer")

    @scope
    def f(x, depth=2):
        return f(jnp.sin(x), depth - 1) if depth else jnp.cos(x)

    def g(x):
        with scope, scope:
            return jnp.exp(x)

    assert paths(f, 1.0) == ["jit(f)/layer/sin", "jit(f)/layer/layer/sin", "jit(f)/layer/layer/layer/cos"]
    assert paths(g, 1.0) == ["jit(g)/layer/layer/exp"]


def test_a_scope_ends_with_its_block_also_when_an_error_leaves_it():
    def broken(x):
        with phlox.named_scope("broken"):
            raise KeyError("no")

    for f in (phlox.jit(broken), phlox.grad(broken), phlox.vmap(broken)):
        with pytest.raises(KeyError):
            f(jnp.ones(1))
    assert paths(lambda x: jnp.sin(x), 1.0) == ["jit(<lambda>)/sin"]


def test_named_call_takes_the_name_of_the_function():
    def layer(x):
        return jnp.sin(x)

    assert paths(phlox.named_call(layer), 1.0) == ["jit(layer)/layer/sin"]
    with pytest.raises(phlox.errors.ArgumentError):
        phlox.named_scope(3)


# --- computing while tracing


def test_compile_time_values_are_concrete_under_every_transformation():
    def f(x):
        with phlox.ensure_compile_time_eval():
            n = int(jnp.arange(4).sum())
            assert phlox.grad(jnp.sin)(0.0) == 1.0
            assert bool(phlox.jit(lambda y: y > 1)(2.0))
            y = jnp.sin(x)  # of a traced value: recorded as ever
        return y * n

    assert float(f(1.0)) == pytest.approx(6 * np.sin(1.0))
    assert float(phlox.jit(f)(1.0)) == pytest.approx(6 * np.sin(1.0))
    assert float(phlox.grad(f)(1.0)) == pytest.approx(6 * np.cos(1.0))
    np.testing.assert_allclose(phlox.jit(phlox.vmap(f))(np.ones(2, np.float32)), 6 * np.sin(np.ones(2)), rtol=1e-6)
    assert [e.primitive.name for e in phlox.make_jaxpr(f)(1.0).eqns] == ["sin", "mul"]


def test_traced_values_stay_traced_at_compile_time():
    def f(x):
        with phlox.ensure_compile_time_eval():
            return 1 if x + 1 > 0 else 2

    with pytest.raises(TracerBoolConversionError):
        phlox.jit(f)(1.0)


# --- Jaxprs as units, hidden constants


def test_closed_call_is_one_unit():
    closed = phlox.make_jaxpr(lambda x: jnp.sin(x) * np.ones(3, np.float32))(1.0)
    (out,) = closed_call(closed, 2.0)
    np.testing.assert_allclose(out, np.sin(2.0) * np.ones(3), rtol=1e-6)
    traced = phlox.make_jaxpr(lambda x: closed_call(closed, x))(1.0)
    assert [e.primitive.name for e in traced.eqns] == ["jit"]
    assert float(phlox.grad(lambda x: closed_call(closed, x)[0].sum())(0.0)) == 3.0
    with pytest.raises(ShapeError):
        closed_call(closed, jnp.ones(2))


def test_closed_over_arrays_are_not_in_the_text():
    def program(table):
        return phlox.jit(lambda x: x + table.sum())

    first, second = (program(jnp.full(100_000, n)) for n in (1.0, 2.0))
    text = first.lower(1.0).as_text()
    assert len(text) < 2000 and "tensor<100000xf32>" in text
    assert text == second.lower(1.0).as_text()
    assert (float(first(1.0)), float(second(1.0))) == (100001.0, 200001.0)


def test_programs_that_close_over_equal_shapes_share_the_disk_cache(monkeypatch):
    from phlox._xla import compile as compiling

    stored = {}
    monkeypatch.setattr(compiling.disk, "load", stored.get)
    monkeypatch.setattr(compiling.disk, "store", stored.__setitem__)

    def call(value):
        table = jnp.full(1000, value)
        before = len(stored)
        result = phlox.jit(lambda x: jnp.tanh(x) + (table * table).sum())(1.0)
        return len(stored) - before, float(result)

    compiled, first = call(1.0)
    again, second = call(2.0)
    assert compiled >= 1 and again == 0
    assert (first, second) == (pytest.approx(1000 + np.tanh(1)), pytest.approx(4000 + np.tanh(1)))


def test_disable_jit_runs_operation_by_operation():
    seen = []
    f = phlox.jit(lambda x: seen.append(x) or jnp.sin(x) + 1)
    with phlox.disable_jit():
        f(1.0)
        f(2.0)
    assert seen == [1.0, 2.0]


def test_clear_caches_forgets_traces():
    count = []
    f = phlox.jit(lambda x: count.append(1) or x + 1)
    f(1.0), f(2.0)
    phlox.clear_caches()
    f(3.0)
    assert len(count) == 2


def test_inline_functions_leave_no_unit():
    inner = phlox.jit(lambda x: jnp.sin(x), inline=True)
    assert [e.primitive.name for e in phlox.make_jaxpr(lambda x: inner(x))(1.0).eqns] == ["sin"]


def test_a_type_stands_for_an_argument():
    f = phlox.jit(lambda x, y: {"a": x["a"] + y})
    x = {"a": jnp.ones((3, 2))}
    compiled = f.lower({"a": phlox.core.ShapedArray((3, 2), np.dtype("float32"))}, 2.0).compile()
    np.testing.assert_array_equal(compiled(x, 2.0)["a"], f(x, 2.0)["a"])
    by_axis = phlox.pmap(lambda x: x + 1)
    np.testing.assert_array_equal(by_axis.lower(phlox.typeof(x["a"])).compile()(x["a"]), x["a"] + 1)
