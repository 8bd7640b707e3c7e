"""Exported functions: what they say, calls of them, derivatives, and what is refused. Other processes: tests/processes."""

import collections
import dataclasses
import hashlib
import json
import random
import re

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import export
from phlox._xla.analysis import from_portable
from phlox._xla.embed import targets
from phlox.errors import (
    ArgumentError,
    DerivativeError,
    DeviceError,
    DtypeError,
    ExportError,
    MissingRuleError,
    OptionError,
    ShapeError,
    TreeError,
    UnsupportedError,
)
from phlox.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

TABLE = np.arange(5, dtype=np.float32)
ARGS = ({"w": np.linspace(0, 1, 5, dtype=np.float32)}, 3)


def program(p, n, *, k):
    table = jnp.asarray(TABLE)
    return {"o": jnp.sin(p["w"]) * table + k, "n": n * 2}, phlox.jit(lambda q: (q * q).sum())(p["w"])


def exported(**options):
    return export.export(phlox.jit(program), **options)(*ARGS, k=2.0)


def through_bytes(made, order=0):
    return export.deserialize(made.serialize(vjp_order=order))


def same(mine, theirs):
    assert phlox.tree.structure(mine) == phlox.tree.structure(theirs)
    for x, y in zip(phlox.tree.leaves(mine), phlox.tree.leaves(theirs), strict=True):
        assert jnp.asarray(x).dtype == jnp.asarray(y).dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_what_an_exported_function_says():
    for made in (exported(), through_bytes(exported())):
        assert made.fun_name == "program"
        assert made.in_tree == phlox.tree.structure((ARGS, {"k": 0}))
        assert [a.short for a in made.in_avals] == ["f32[5]", "i32[]", "f32[]"]
        assert [a.short for a in made.out_avals] == ["i32[]", "f32[5]", "f32[]"]
        assert made.platforms == (export.default_export_platform(),)
        assert (made.nr_devices, made.module_kept_var_idx) == (1, (0, 1, 2))
        assert made.in_shardings_hlo == made.out_shardings_hlo == (None,) * 3
        assert "stablehlo.sine" in made.mlir_module()
        assert "stablehlo.sine" in str(made.mlir_module(serialized=False).operation)
        assert str(made) == "Exported(fun_name=program, ...)"
    assert exported().has_vjp() and not made.has_vjp()


def test_calls():
    expected = phlox.jit(program)(*ARGS, k=2.0)
    for made in (exported(), through_bytes(exported())):
        same(made.call(*ARGS, k=2.0), expected)
        same(phlox.jit(lambda p, n: made.call(p, n, k=2.0))(*ARGS), expected)
        same(export.export(phlox.jit(made.call))(*ARGS, k=2.0).call(*ARGS, k=2.0), expected)


def test_two_calls_in_one_program_share_its_functions():
    one, other = exported(), exported()
    text = phlox.jit(lambda w: [e.call({"w": w}, 3, k=1.0)[1] for e in (one, one, other)]).lower(TABLE).as_text()
    assert text.count("func.func private") == 4  # the function and its inner one, of each of the two
    same(
        phlox.jit(lambda w: one.call({"w": w}, 3, k=1.0)[1] + other.call({"w": w}, 3, k=1.0)[1])(TABLE), np.float32(60)
    )


def test_strings_that_look_like_symbols_stay_as_they_are():
    inner = phlox.jit(lambda x: jnp.sin(x))
    call = phlox.ffi.ffi_call("main", phlox.ShapeDtypeStruct((), "float32"), has_side_effect=True)
    f = phlox.jit(lambda x: inner(call(x, note="@main @_lambda_")))
    allowed = [export.DisabledSafetyCheck.custom_call("main")]
    made = export.export(f, disabled_checks=allowed)(1.0)
    text = phlox.jit(made.call).lower(1.0).as_text()
    assert (
        "main" in phlox.jit(lambda x: (through_bytes(made).call(x), 1)[1]).lower(1.0).as_text().split("func.call @")[1]
    )
    assert "stablehlo.custom_call @main(" in text and '"@main @_lambda_"' in text


def gradient(call, order):
    loss = lambda w: (call({"w": w}, 3, k=2.0)[0]["o"] ** 2).sum()
    for _ in range(order):
        loss = lambda w, inner=loss: phlox.grad(inner)(w).sum()
    return loss


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives(order):
    w = ARGS[0]["w"]
    expected = gradient(program, order)(w)
    for made in (exported(), through_bytes(exported(), order)):
        np.testing.assert_allclose(gradient(made.call, order)(w), expected, rtol=1e-5)
        np.testing.assert_allclose(phlox.jit(gradient(made.call, order))(w), expected, rtol=1e-5)
    short = through_bytes(exported(), order - 1)
    with pytest.raises(ExportError, match="vjp_order"):
        gradient(short.call, order)(w)


def test_the_exported_derivative():
    made = exported().vjp()
    assert [a.short for a in made.in_avals] == ["f32[5]", "i32[]", "f32[]", "float0[]", "f32[5]", "f32[]"]
    assert [a.short for a in made.out_avals] == ["f32[5]", "float0[]", "f32[]"]
    w = ARGS[0]["w"]
    found = made.call(w, 3, 2.0, np.zeros((), phlox.float0), np.ones(5, np.float32), np.float32(0))
    np.testing.assert_allclose(found[0], np.cos(w) * TABLE, rtol=1e-6)
    assert float(found[2]) == 5.0


def test_arguments_that_nothing_reads_are_left_out():
    made = export.export(phlox.jit(lambda a, b, c: (c, 1.0)))(1.0, np.ones(3), 2)
    assert made.module_kept_var_idx == (2,)
    assert "tensor<3xf32>" not in made.mlir_module()
    same(through_bytes(made).call(1.0, np.ones(3), 7), (jnp.asarray(7), jnp.asarray(1.0)))


def test_keys_and_small_types():
    key = phlox.random.key(5)
    made = export.export(phlox.jit(lambda k, x: (phlox.random.split(k), x + 1)))(key, jnp.ones(2, "bfloat16"))
    keys, ones = through_bytes(made).call(key, jnp.ones(2, "bfloat16"))
    expected = phlox.random.split(key)
    assert keys.dtype == expected.dtype
    np.testing.assert_array_equal(phlox.random.key_data(keys), phlox.random.key_data(expected))
    np.testing.assert_array_equal(ones, jnp.full(2, 2, "bfloat16"))


def test_closed_over_keys_are_inside():
    key = phlox.random.key(5)
    made = export.export(phlox.jit(lambda x: phlox.random.uniform(key, (2,)) + x))(1.0)
    np.testing.assert_array_equal(through_bytes(made).call(1.0), phlox.random.uniform(key, (2,)) + 1.0)


Point = collections.namedtuple("Point", ["x", "y"])
export.register_namedtuple_serialization(Point, serialized_name="test_export.Point")


@phlox.tree_util.register_pytree_node_class
class Scaled:
    def __init__(self, value, factor):
        self.value, self.factor = value, factor

    def tree_flatten(self):
        return (self.value,), self.factor

    @classmethod
    def tree_unflatten(cls, factor, children):
        return cls(*children, factor)


export.register_pytree_node_serialization(
    Scaled,
    serialized_name="test_export.Scaled",
    serialize_auxdata=lambda factor: json.dumps(factor).encode(),
    deserialize_auxdata=json.loads,
)


def test_containers_survive():
    def f(p):
        return Point(p["s"].value * p["s"].factor, [None, (p["o"]["b"],)])

    args = {"s": Scaled(jnp.ones(2), 3), "o": collections.OrderedDict(b=1.0, a=2.0), 1.0: [], "n": None}
    args.pop(1.0)
    made = through_bytes(export.export(phlox.jit(f))(args))
    same(made.call(args), f(args))
    with pytest.raises(TreeError):
        made.call({**args, "s": Scaled(jnp.ones(2), 4)})


def test_registrations_are_made_once():
    for register in (
        lambda: export.register_namedtuple_serialization(Point, serialized_name="another"),
        lambda: export.register_namedtuple_serialization(
            collections.namedtuple("Q", "x"), serialized_name="test_export.Point"
        ),
        lambda: export.register_namedtuple_serialization(dict, serialized_name="dict"),
        lambda: export.register_pytree_node_serialization(
            set, serialized_name="set", serialize_auxdata=repr, deserialize_auxdata=eval
        ),
    ):
        with pytest.raises(OptionError):
            register()


Unknown = collections.namedtuple("Unknown", "x")
STRUCT = phlox.ShapeDtypeStruct((3,), "float32")
MESSAGES = {
    "shape": ("Shape mismatch for args[0]['w'].shape[0]", ({"w": np.ones(4, np.float32)}, 3), {"k": 2.0}),
    "rank": ("Rank mismatch for args[1]", (ARGS[0], np.ones(2, np.int32)), {"k": 2.0}),
    "dtype": ("Dtype mismatch for kwargs['k']", ARGS, {"k": 2}),
    "structure": ("same pytree structure as when program was exported", ARGS, {}),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_name_the_argument(name):
    message, args, kwargs = MESSAGES[name]
    for made in (exported(), through_bytes(exported())):
        with pytest.raises(ValueError, match=re.escape(message)):
            made.call(*args, **kwargs)


def _for_platform(x):
    return x + phlox.lax.platform_dependent(tpu=lambda: 6.0, cuda=lambda: 8.0, default=lambda: 4.0)


def test_programs_are_those_of_their_platforms():
    for platform, number in (("tpu", 6), ("cuda", 8), ("rocm", 4), ("cpu", 4)):
        made = export.export(phlox.jit(_for_platform), platforms=(platform,))(1.0)
        assert f"dense<{number}.0" in through_bytes(made).mlir_module()
    made = through_bytes(export.export(phlox.jit(_for_platform), platforms=("tpu", "cpu", "rocm"))(1.0), order=0)
    assert made.call(1.0) == 5.0
    decomposed = export.export(phlox.jit(jnp.linalg.cholesky), platforms=("cpu", "cuda"))(jnp.eye(3))
    routines = {name: targets(from_portable(program)) for name, program in decomposed.programs.items()}
    assert routines == {"cpu": {"lapack_spotrf_ffi"}, "cuda": {"cusolver_potrf_ffi"}}
    same(through_bytes(decomposed).call(4 * jnp.eye(3)), 2 * jnp.eye(3))
    # As a part of another exported program, it is that of the other one's platform.
    outer = export.export(phlox.jit(lambda x: made.call(x) * 2), platforms=("tpu",))(1.0)
    assert "dense<6.0" in outer.mlir_module()
    with pytest.raises(DeviceError, match="exported for platforms tpu, cpu, rocm, and is used on cuda"):
        export.export(phlox.jit(made.call), platforms=("cpu", "cuda"))(1.0)


REFUSED = {
    "shape": (ShapeError, lambda: exported().call({"w": jnp.ones(4)}, 3, k=2.0)),
    "dtype": (DtypeError, lambda: exported().call(ARGS[0], 3.0, k=2.0)),
    "structure": (TreeError, lambda: exported().call(ARGS[0], 3)),
    "vmap": (MissingRuleError, lambda: phlox.vmap(lambda n: exported().call(ARGS[0], n, k=2.0))(jnp.arange(2))),
    "forward mode": (DerivativeError, lambda: phlox.jvp(lambda k: exported().call(*ARGS, k=k)[0]["o"], (1.0,), (1.0,))),
    "platform": (DeviceError, lambda: exported(platforms=("tpu",)).call(*ARGS, k=2.0)),
    "no platform": (OptionError, lambda: exported(platforms=())),
    "not jitted": (OptionError, lambda: export.export(program)),
    "foreign": (ExportError, lambda: export.export(phlox.jit(phlox.ffi.ffi_call("strange", STRUCT)))()),
    "callback": (ExportError, lambda: export.export(phlox.jit(_printing))(1.0)),
    "rules": (UnsupportedError, lambda: export.export(phlox.jit(lambda x: x), _override_lowering_rules=[])),
    "namedtuple": (ExportError, lambda: export.export(phlox.jit(lambda x: Unknown(x)))(1.0).serialize()),
    "dict key": (ExportError, lambda: export.export(phlox.jit(lambda x: {(1, 2): x}))(1.0).serialize()),
    "other bytes": (ExportError, lambda: export.deserialize(b"\x00\x01")),
    "other version": (ExportError, lambda: export.deserialize(b"phlox.export 99\n{}\n")),
    "no bytes": (ArgumentError, lambda: export.deserialize("text")),
    "a number": (ArgumentError, lambda: export.deserialize(64)),
}


def _printing(x):
    phlox.debug.print("{}", x)
    return x


# --- several devices


def _mesh(devices, names=("a", "b")):
    return Mesh(np.array(devices).reshape(2, 2), names)


def _split_sum(x, w):
    h = phlox.lax.with_sharding_constraint(
        jnp.tanh(x @ w / 30), NamedSharding(_mesh(phlox.devices()[:4]), P("a", None))
    )
    return (h * h).sum()


def _sum_over_shards(x, w):
    def shard(x, w):
        return (x * phlox.lax.psum(x.sum(), "a")).sum(keepdims=True) + phlox.lax.axis_index("b") + w.sum()

    specs = {"in_specs": (P("a", "b"), P()), "out_specs": P("a", "b")}
    return phlox.shard_map(shard, mesh=_mesh(phlox.devices()[:4]), **specs)(x, w).sum()


X, W = np.arange(32, dtype=np.float32).reshape(4, 8) / 7, np.linspace(0, 1, 24, dtype=np.float32).reshape(8, 3)


@pytest.mark.parametrize("fun", [_split_sum, _sum_over_shards])
def test_several_devices_are_those_of_a_call(fun):
    here, there = phlox.devices()[:4], phlox.devices()[4:8]
    split = NamedSharding(_mesh(here), P("a", "b"))
    made = export.export(phlox.jit(fun))(phlox.ShapeDtypeStruct(X.shape, X.dtype, sharding=split), W)
    expected = phlox.value_and_grad(fun, (0, 1))(X, W)
    for exported in (made, through_bytes(made, order=1)):
        assert exported.nr_devices == 4 and not exported.uses_global_constants
        for devices in (here, here[::-1], there):
            mesh = _mesh(devices)
            assert exported.in_shardings_jax(mesh) == (NamedSharding(mesh, P("a", "b")), None)
            assert exported.out_shardings_jax(mesh) == (None,)
            x, w = phlox.device_put((X, W), NamedSharding(mesh, P()))
            same(phlox.value_and_grad(exported.call, (0, 1))(x, w), expected)
            same(phlox.jit(exported.call)(x, w), expected[0])
        vjp = exported.vjp()
        assert vjp.nr_devices == 4 and vjp.out_shardings_jax(_mesh(there)) == exported.in_shardings_jax(_mesh(there))
        with pytest.raises(DeviceError, match="on 1"):
            exported.call(X, W)
        with pytest.raises(DeviceError, match="exported for 99 devices, and there are 8"):
            dataclasses.replace(exported, nr_devices=99).call(X, W)
        with pytest.raises(DeviceError, match="does not match the mesh"):
            exported.in_shardings_jax(_mesh(there, ("i", "j")))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_mesh_without_devices_gets_those_of_a_call(kind):
    abstract = phlox.sharding.AbstractMesh((2, 2), ("a", "b"), (kind, kind))
    split = NamedSharding(abstract, P("a", None))
    fun = lambda x, w: (jnp.sin(x) @ w, x.sum(1))
    described = phlox.ShapeDtypeStruct(X.shape, X.dtype, sharding=split)
    made = export.export(phlox.jit(fun))(described, W)
    with_options = phlox.jit(fun, in_shardings=(split, None)) if kind is AxisType.Auto else phlox.jit(fun)
    for exported in (made, through_bytes(made), export.export(with_options)(described, W)):
        assert exported.nr_devices == 4 and exported.in_shardings_jax(abstract) == (split, None)
        for devices in (phlox.devices()[:4], phlox.devices()[4:8]):
            mesh = Mesh(np.array(devices).reshape(2, 2), ("a", "b"), axis_types=(kind, kind))
            x = phlox.device_put(X, NamedSharding(mesh, P("a", None)))
            out = exported.call(x, phlox.device_put(W, NamedSharding(mesh, P())))
            assert {shard.device for shard in out[1].addressable_shards} == set(devices)
            same(out, fun(X, W))
    one = phlox.sharding.AbstractMesh((1,), ("a",), (kind,))
    alone = export.export(phlox.jit(fun))(described.update(sharding=NamedSharding(one, P())), W)
    assert alone.nr_devices == 1
    same(alone.call(X, W), fun(X, W))


def test_shardings_of_results_and_constants_over_several_devices():
    split = NamedSharding(_mesh(phlox.devices()[:4]), P("a"))
    constant = phlox.device_put(X, split)
    # On the devices of its arguments, whatever it closes over.
    alone = export.export(phlox.jit(lambda x: x + constant))(X)
    assert alone.nr_devices == 1
    same(alone.call(X), X + X)
    made = export.export(phlox.jit(lambda x, k: (x + constant, phlox.random.key_data(k)), out_shardings=split))
    exported = through_bytes(made(X, phlox.random.key(1)), order=1)
    there = NamedSharding(_mesh(phlox.devices()[4:8]), P("a"))
    assert exported.out_shardings_jax(there.mesh) == (there, there)
    x, key = phlox.device_put((X, phlox.random.key(1)), NamedSharding(there.mesh, P()))
    total, data = exported.call(x, key)
    assert total.sharding == there
    same((total, data), (X + X, phlox.random.key_data(phlox.random.key(1))))


@pytest.mark.parametrize("name", ["rows", "a"])
def test_a_mesh_whose_axes_have_other_names(name):
    """Explicit axes are in the types of results, and are those of the exported program."""
    inside = phlox.make_mesh((4,), ("rows",), devices=phlox.devices()[:4])
    split = NamedSharding(inside, P("rows"))
    exported = export.export(phlox.jit(jnp.sin, in_shardings=split, out_shardings=split))(X)
    there = phlox.make_mesh((4,), (name,), devices=phlox.devices()[4:8])
    x = phlox.device_put(X, NamedSharding(there, P(name)))
    for call in (exported.call, through_bytes(exported).call, phlox.jit(lambda x: exported.call(x) * 1)):
        result = call(x)
        same(result, np.sin(X))
        assert result.sharding.spec[0] == "rows" and phlox.typeof(result).sharding.spec == P("rows", None)
        assert result.sharding.devices == x.sharding.devices


def test_symbolic_shapes_over_several_devices():
    (n,) = export.symbolic_shape("n")
    split = NamedSharding(_mesh(phlox.devices()[:4]), P("a", P.UNCONSTRAINED))
    fun = phlox.jit(lambda x: phlox.lax.with_sharding_constraint(jnp.sin(x), split))
    exported = through_bytes(export.export(fun)(phlox.ShapeDtypeStruct((n, 8), "float32")))
    assert exported.nr_devices == 4 and exported.uses_global_constants
    for rows in (2, 4):
        x = phlox.device_put(X[:rows], NamedSharding(_mesh(phlox.devices()[4:8]), P()))
        same(exported.call(x), np.sin(X[:rows]))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    error, call = REFUSED[name]
    with pytest.raises(error):
        call()


def test_no_other_bytes_are_an_exported_function():
    draw = random.Random(5)
    written = bytes(exported().serialize(vjp_order=1))
    other = bytes(export.export(phlox.jit(lambda x: jnp.cos(x)))(1.0).serialize())
    head = written.index(b"{")

    def place():
        """Half of the draws change the head, which is short."""
        return draw.randrange(head + 600) if draw.random() < 0.5 else draw.randrange(len(written))

    def changed():
        at, to, count = place(), place(), draw.randint(1, 9)
        return draw.choice(
            [
                written[:at] + bytes([written[at] ^ 1 << draw.randrange(8)]) + written[at + 1 :],
                written[:at],
                written[at:],
                written[:at] + draw.randbytes(count) + written[at:],
                written[:at] + written[at + count :],
                written[:at] + written[to:],
                written[:at] + other[min(at, len(other)) :],
                other[:to] + written[at:],
                written + written[at:],
            ]
        )

    assert export.deserialize(memoryview(written)).fun_name == "program"
    for _ in range(1500):
        blob = changed()
        if blob not in (written, other):
            with pytest.raises(ExportError):
                export.deserialize(blob)


def test_a_good_checksum_is_not_enough():
    """Whatever is inside, by mistake or on purpose: the error is the one that callers expect."""
    written = bytes(exported().serialize())
    head = written.index(b'{"functions"')  # the checksum before it may have any bytes
    header, _, program = written[head:].partition(b"\n")
    (fields,) = json.loads(header)["functions"]
    wrong = [{k: v for k, v in fields.items() if k != name} for name in fields]
    wrong += [{**fields, name: value} for name in fields for value in (None, -1, {}, [[1]], "f") if name != "fun_name"]
    contents = [b"", b"{}\n", b'{"functions": []}\n', b"[" * 100_000, b"\xff\n", header]
    contents += [json.dumps({"functions": [f]}).encode() + b"\n" + program for f in wrong]
    refused = 0
    for content in contents:
        start = written[: head - 32]
        blob = start + hashlib.sha256(start + content).digest() + content
        try:
            assert isinstance(export.deserialize(blob), export.Exported)  # some of these say something sensible
        except ExportError:
            refused += 1
    assert refused > 40


def test_checks_can_be_left_out():
    anywhere = export.DisabledSafetyCheck.platform()
    made = exported(platforms=("tpu",), disabled_checks=[anywhere])
    same(through_bytes(made).call(*ARGS, k=2.0), program(*ARGS, k=2.0))
    strange = export.DisabledSafetyCheck.custom_call("strange")
    assert (strange.is_custom_call(), anywhere.is_custom_call()) == ("strange", None)
    assert (
        "strange"
        in export.export(phlox.jit(phlox.ffi.ffi_call("strange", STRUCT)), disabled_checks=[strange])().mlir_module()
    )
