"""Lowering rules that build MLIR: what they are told, functions that they add, platforms, and results."""

import subprocess
import sys

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import extend
from phlox.errors import UnsupportedError
from phlox.interpreters import ad, batching, mlir
from phlox_compat.interpreters import _mlir_helpers as helpers

X = np.arange(4, dtype=np.float32)


def primitive(name, rule, *, many=False, types=lambda x, **params: x):
    prim = extend.core.Primitive(name)
    prim.multiple_results = many
    prim.def_abstract_eval(types)
    mlir.register_lowering(prim, rule)
    return prim


def scaled(ctx, x, *, factor):
    ir, hlo = helpers.ir, helpers.hlo
    assert ctx.primitive.name.startswith("test_scaled") and ctx.module_context.platforms == ("cpu",)
    (aval,) = ctx.avals_in
    assert helpers.aval_to_ir_type(ctx.module_context, aval) == helpers.aval_to_ir_type(aval) == x.type
    number = helpers.ir_constant(np.asarray(factor, aval.dtype))
    return hlo.MulOp(hlo.broadcast_in_dim(ir.RankedTensorType(x.type), number, helpers.dense_int_array([])), x)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64", "float16"])
def test_values_in_compiled_programs(dtype):
    prim = primitive("test_scaled_" + dtype, scaled)
    x = jnp.asarray(X, dtype)
    np.testing.assert_array_equal(phlox.jit(lambda x: prim.bind(prim.bind(x, factor=2), factor=3))(x), 6 * x)


def test_transformations_of_such_primitives():
    prim = primitive("test_scaled_rules", scaled)
    ad.deflinear2(prim, lambda ct, x, *, factor: [prim.bind(ct, factor=factor)])
    batching.defvectorized(prim)
    f = lambda x: prim.bind(jnp.sin(x), factor=2)
    np.testing.assert_allclose(phlox.jit(phlox.grad(lambda x: f(x).sum()))(X), 2 * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(phlox.jit(phlox.vmap(f))(X), 2 * np.sin(X), rtol=1e-6)
    loop = phlox.jit(lambda x: phlox.lax.fori_loop(0, 3, lambda _, x: prim.bind(x, factor=2), x))
    assert loop(X).tolist() == [0, 8, 16, 24]


def test_callbacks_inside_of_rules():
    """As equinox's `noinline` has."""

    def rule(ctx, x):
        types, calls = (ctx.avals_in, ctx.avals_out), lambda x: [jnp.sin(x), x + 1]
        results, token, _ = helpers.emit_python_callback(ctx, calls, None, [x], *types, has_side_effect=False)
        assert token is None
        return results

    prim = primitive("test_callback", rule, many=True, types=lambda x: [x, x])
    a, b = phlox.jit(lambda x: prim.bind(prim.bind(x)[1]))(X)
    np.testing.assert_allclose(a, np.sin(X + 1), rtol=1e-6)
    np.testing.assert_array_equal(b, X + 2)


def test_functions_of_arrays_inside_of_rules():
    """Each adds functions to the module, whose names must not collide: here cumsum and sin, twice."""

    def rule(ctx, x):
        outer = mlir.lower_fun(lambda x: jnp.sin(x) * jnp.cumsum(x), multiple_results=False)
        inner = mlir.lower_fun(lambda x: [jnp.cumsum(x), jnp.sin(x)])
        (a,) = outer(ctx, x)
        b, c = inner(ctx.replace(avals_in=ctx.avals_in), x)
        return a, (b, c), helpers.ir_constants(np.int32(7))

    types = lambda x: [x, x, x, extend.ShapedArray((), np.dtype("int32"))]
    prim = primitive("test_inner", rule, many=True, types=types)
    a, b, c, n = phlox.jit(lambda x: prim.bind(prim.bind(x)[1]))(X)
    x = np.cumsum(X)
    np.testing.assert_allclose(a, np.sin(x) * np.cumsum(x), rtol=1e-5)
    np.testing.assert_allclose(b, np.cumsum(x))
    np.testing.assert_allclose(c, np.sin(x), rtol=1e-5)
    assert n == 7
    lower = lambda: phlox.jit(lambda x: prim.bind(x)).lower(X).as_text()
    assert lower() == lower()  # the text is the key of the cache


def test_rules_by_platform():
    prim = primitive("test_platforms", mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x + 2, multiple_results=False), platform="gpu")
    assert phlox.jit(prim.bind)(1.0) == 2
    mlir.register_lowering(prim, mlir.lower_fun(lambda x: x + 3, multiple_results=False), platform="cpu")
    phlox.clear_caches()
    assert phlox.jit(prim.bind)(1.0) == 4
    only = extend.core.Primitive("test_only_gpu")
    only.def_abstract_eval(lambda x: x)
    mlir.register_lowering(only, lambda ctx, x: [x], platform="gpu")
    with pytest.raises(NotImplementedError, match=r"unknown platform foo\. Known platforms are: cpu, cuda"):
        mlir.register_lowering(only, lambda ctx, x: [x], platform="foo")
    # A program that is exported for a platform has the rules of that one.
    exported = phlox.export.export(phlox.jit(only.bind), platforms=("cuda",))(1.0)
    assert "return %arg0" in exported.mlir_module()
    with pytest.raises(UnsupportedError, match="no lowering rule for cpu"):
        phlox.jit(only.bind)(1.0)


def test_foreign_functions_as_rules():
    prim = primitive("test_foreign", phlox.ffi.ffi_lowering("half"))
    assert "custom_call @half" in phlox.jit(prim.bind).lower(1.0).as_text()


def test_attributes_and_types():
    ir = helpers.ir
    with helpers.make_ir_context(), ir.Location.unknown():
        dtypes = ("bool", "float32", "uint8", "bfloat16", "complex64")
        texts = [str(helpers.dtype_to_ir_type(phlox.dtypes.canonicalize_dtype(dtype))) for dtype in dtypes]
        assert texts == ["i1", "f32", "ui8", "bf16", "complex<f32>"]
        tree = helpers.ir_attribute({"a": [1, True, 2.5, "x"], "b": np.int8([1])})
        assert str(tree) == '{a = [1, true, 2.500000e+00, "x"], b = dense<1> : tensor<1xi8>}'
        assert helpers.ir_attribute(tree) is tree
        assert (str(helpers.i32_attr(3)), str(helpers.i64_attr(3))) == ("3 : i32", "3 : i64")
        assert str(helpers.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
        assert str(helpers.token_type()) == "!stablehlo.token"
        types = helpers.aval_to_ir_types(None, extend.ShapedArray((2,), np.dtype("int8")))
        assert helpers.flatten_ir_types([types, types[0]]) == [types[0]] * 2
        assert helpers.unflatten_ir_values_like_types("abc", [types, types[0], (1,)]) == [("a",), "b", ("c",)]
        module = ir.Module.parse("func.func @f() { return }")
        assert "func.func @f" in helpers.module_to_string(module) and helpers.module_to_bytecode(module)[:2] == b"ML"


def test_bindings_are_imported_on_demand():
    program = """
import sys, phlox
from phlox.interpreters import mlir
prim = phlox.extend.core.Primitive("p")
prim.def_abstract_eval(lambda x: x)
mlir.register_lowering(prim, lambda ctx, x: [x])
assert phlox.jit(prim.bind)(1.0) == 1
assert "jaxlib.mlir.ir" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
