"""Foreign functions: LAPACK's, which come with jaxlib, and one that is compiled here."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import ffi
from phlox.errors import ArgumentError, CompilationError, DerivativeError, MissingRuleError, OptionError

SOURCE = r"""
#include <cstdint>
#include <string_view>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static int64_t calls = 0;
extern "C" int64_t count() { return calls; }

ffi::Error Scale(ffi::Buffer<ffi::F32> x, float factor, int64_t times, std::string_view how,
                 ffi::Span<const int32_t> shift, ffi::ResultBuffer<ffi::F32> y) {
  calls += 1;
  if (how != "scale") return ffi::Error::InvalidArgument("unknown way");
  for (size_t i = 0; i < x.element_count(); ++i) {
    float v = x.typed_data()[i];
    for (int64_t k = 0; k < times; ++k) v *= factor;
    y->typed_data()[i] = v + shift[i % shift.size()];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(ScaleHandler, Scale,
  ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Attr<float>("factor").Attr<int64_t>("times")
    .Attr<std::string_view>("how").Attr<ffi::Span<const int32_t>>("shift").Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "scale.cc").write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-std=c++17", f"-I{ffi.include_dir()}"]
    subprocess.run([*command, "-o", folder / "scale.so", folder / "scale.cc"], check=True)
    loaded = ctypes.CDLL(str(folder / "scale.so"))
    loaded.count.restype = ctypes.c_int64
    ffi.register_ffi_target("phlox_test_scale", ffi.pycapsule(loaded.ScaleHandler))
    return loaded


def scale(x, times=2, **options):
    struct = phlox.ShapeDtypeStruct(x.shape, x.dtype)
    shift = np.array([1, 2], np.int32)
    call = ffi.ffi_call("phlox_test_scale", struct, **options)
    return call(x, factor=np.float32(3), times=times, how="scale", shift=shift)


@pytest.fixture(scope="module")
def lapack():
    lapack = pytest.importorskip("jaxlib.cpu._lapack")
    lapack.initialize()
    for name, handler in lapack.registrations().items():
        ffi.register_ffi_target(name, handler)


def cholesky(a, **options):
    structs = (phlox.ShapeDtypeStruct(a.shape, a.dtype), phlox.ShapeDtypeStruct(a.shape[:-2], "int32"))
    layouts = {"input_layouts": [(1, 0)], "output_layouts": [(1, 0), ()]}
    call = ffi.ffi_call("lapack_spotrf_ffi", structs, **{**layouts, **options})
    return call(a, uplo=np.uint8(ord("L")))


def matrices(*shape):
    x = np.random.default_rng(3).normal(size=(*shape, 4, 4)).astype(np.float32)
    return x @ x.swapaxes(-1, -2) + np.eye(4, dtype=np.float32)


@pytest.mark.parametrize("under", [lambda f: f, phlox.jit], ids=["eager", "jit"])
def test_a_library_function(lapack, under):
    a = matrices()
    factor, info = under(lambda a: cholesky(a, input_output_aliases={0: 0}))(a)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-5)
    assert int(info) == 0
    _, info = under(cholesky)(-a)
    assert int(info) == 1  # LAPACK says which minor is not positive


METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


@pytest.mark.parametrize("method", METHODS)
def test_batches(lapack, method):
    a = matrices(3)
    for in_axes, batch in ((0, a), (2, np.moveaxis(a, 0, 2))):
        factor, info = phlox.jit(phlox.vmap(lambda x: cholesky(x, vmap_method=method), in_axes))(batch)
        np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-5)
        np.testing.assert_array_equal(info, [0, 0, 0])


def shapes_that_arrive(method, in_axes=(0, None)):
    """The types of arguments and results of the calls in a vmapped program."""
    struct = phlox.ShapeDtypeStruct((2,), "float32")
    f = phlox.vmap(lambda x, y: ffi.ffi_call("nothing", struct, vmap_method=method)(x, y), in_axes)
    jaxpr = phlox.make_jaxpr(f)(jnp.ones((3, 2)), jnp.ones(2))
    (eqn,) = [e for e in jaxpr.eqns if e.primitive.name == "ffi_call"]
    assert all(len(order) == v.aval.ndim for order, v in zip(eqn.params["input_layouts"], eqn.invars, strict=True))
    return [v.aval.shape for v in (*eqn.invars, *eqn.outvars)]


def test_what_each_method_does_to_arguments_without_the_axis():
    assert shapes_that_arrive("broadcast_all") == [(3, 2), (3, 2), (3, 2)]
    assert shapes_that_arrive("expand_dims") == [(3, 2), (1, 2), (3, 2)]
    assert shapes_that_arrive("legacy_vectorized") == [(3, 2), (2,), (3, 2)]


def test_a_function_compiled_here_with_attributes(library):
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(scale(x), np.arange(4.0) * 9 + [1, 2, 1, 2])
    np.testing.assert_array_equal(phlox.jit(lambda x: scale(x, times=1))(x), np.arange(4.0) * 3 + [1, 2, 1, 2])
    many = phlox.vmap(lambda row: scale(row, vmap_method="sequential"))(jnp.ones((3, 2)))
    np.testing.assert_array_equal(many, np.tile([10.0, 11.0], (3, 1)))
    wrong = ffi.ffi_call("phlox_test_scale", phlox.ShapeDtypeStruct((4,), "float32"))
    with pytest.raises(Exception, match="unknown way"):
        wrong(x, factor=np.float32(3), times=1, how="?", shift=np.zeros(1, np.int32)).block_until_ready()


@pytest.mark.parametrize("effect", [True, False])
def test_side_effects_keep_a_call(library, effect):
    inner = phlox.jit(lambda x: scale(x, has_side_effect=effect))
    f = phlox.jit(lambda x: (inner(x), x + 1)[1])
    before = library.count()
    f(jnp.ones(2)).block_until_ready()
    assert library.count() - before == (1 if effect else 0)


def test_a_derivative_can_be_stated(library):
    @phlox.custom_jvp
    def triple(x):
        return scale(x, times=1)

    triple.defjvp(lambda primals, tangents: (triple(*primals), 3 * tangents[0]))
    np.testing.assert_array_equal(phlox.grad(lambda x: triple(x).sum())(jnp.ones(2)), [3.0, 3.0])
    with pytest.raises(DerivativeError, match="phlox_test_scale"):
        phlox.grad(lambda x: scale(x).sum())(jnp.ones(2))


def test_attributes_as_text():
    struct = phlox.ShapeDtypeStruct((), "float32")

    def text(**attributes):
        return phlox.jit(lambda: ffi.ffi_call("f", struct)(**attributes)).lower().as_text()

    written = text(
        a=1, b=True, c=1.5, d="x", e=np.uint8(3), f=np.float32(2), g=np.arange(2, dtype=np.int32), h={"k": (1, 2.0)}
    )
    for part in (
        "a = 1 : i64",
        "b = true",
        "c = 1.5 : f64",
        'd = "x"',
        "e = 3 : ui8",
        "f = 2.0 : f32",
        "h = {k = [1 : i64, 2.0 : f64]}",
    ):
        assert part in written
    assert "tensor<2xi32>" in written
    assert text(a=1) != text(a=1.0) != text(a=True)
    old = ffi.ffi_call("f", struct, custom_call_api_version=2, legacy_backend_config="abc")
    written = phlox.jit(old).lower().as_text()
    assert 'api_version = 2 : i32, backend_config = "abc"' in written


STRUCT = phlox.ShapeDtypeStruct((2, 3), "float32")
REFUSED = {
    "no struct": (OptionError, lambda: ffi.ffi_call("f", 3)),
    "method": (OptionError, lambda: ffi.ffi_call("f", STRUCT, vmap_method="loop")),
    "legacy config": (OptionError, lambda: ffi.ffi_call("f", STRUCT, legacy_backend_config="x")),
    "legacy attributes": (OptionError, lambda: phlox.jit(lambda: ffi.ffi_call("f", STRUCT, custom_call_api_version=2)(a=1)).lower()),
    "number of layouts": (OptionError, lambda: ffi.ffi_call("f", STRUCT, input_layouts=[])(jnp.ones(2))),
    "layout": (OptionError, lambda: ffi.ffi_call("f", STRUCT, output_layouts=(0, 2))()),
    "alias number": (OptionError, lambda: ffi.ffi_call("f", STRUCT, input_output_aliases={1: 0})(jnp.ones((2, 3)))),
    "alias type": (OptionError, lambda: ffi.ffi_call("f", STRUCT, input_output_aliases={0: 0})(jnp.ones(2))),
    "list": (ArgumentError, lambda: ffi.ffi_call("f", STRUCT)(a=[1])),
    "object": (ArgumentError, lambda: ffi.ffi_call("f", STRUCT)(a=object())),
    "unknown": (CompilationError, lambda: ffi.ffi_call("no_such_target", STRUCT)()),
    "vmap": (MissingRuleError, lambda: phlox.vmap(lambda x: ffi.ffi_call("f", STRUCT)(x))(jnp.ones(2))),
    "lowering option": (OptionError, lambda: ffi.ffi_lowering("f", result_types=[])),
    "lowering config": (OptionError, lambda: ffi.build_ffi_lowering_function("f", backend_config="x")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    error, call = REFUSED[name]
    with pytest.raises(error):
        call()


def test_a_lowering_rule_of_a_primitive(lapack):
    from phlox._ir.avals import shaped
    from phlox._ir.primitive import Primitive

    def types(a):
        return [a, shaped(a.shape[:-2], np.dtype(np.int32))]

    lower = ffi.ffi_lowering("lapack_spotrf_ffi", operand_layouts=[(0, 1)], result_layouts=[(0, 1), ()])
    potrf = Primitive(
        "test_potrf", multiple_results=True, types=types, lower=lambda f, a: lower(f, a, uplo=np.uint8(76))
    )
    try:
        factor, _ = potrf.bind(jnp.asarray(matrices()))
    finally:
        from phlox._ir import primitive

        del primitive._registry["test_potrf"]
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrices()), rtol=1e-5)
