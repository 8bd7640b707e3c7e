"""Walks the registry of primitives: every rule that a primitive states is checked against what it must satisfy.

types      declares what the compiled operation returns
jvp        agrees with central differences
transpose  satisfies <ct, A t> = <Aᵀ ct, t>
batch      agrees with a stack of single examples, over each argument and each axis
extend     moves PRNG keys as it moves numbers
"""

import functools
import sys

import numpy as np
import pytest

import phlox
from judge import CASES, rng
from phlox._base.errors import DtypeError
from phlox._ir import dtypes
from phlox._ir.avals import shaped
from phlox._ir.jaxpr import jaxprs_in
from phlox._ir.primitive import Primitive, primitive
from phlox._ir.rules import RULES
from phlox._ops import all_primitives
from phlox._trace.trace import typeof
from phlox._transform.array_operations import Zero, instantiate
from phlox._transform.spectra import tangent_of
from phlox._transform.transpose import Linear
from phlox._xla.array import physical
from registry_examples import ELSEWHERE, FORMULAS, FORMULAS_OF_TWO, OF_COMPAT, WITH_KEYS, examples


@functools.cache
def table():
    with phlox.enable_x64(True):
        return examples()


# As phlox states them: other tests state more when they run.
NAMES = sorted(set(all_primitives()) - set(ELSEWHERE) - OF_COMPAT)
#: Their derivative is zero by definition, whatever differences say.
ZERO_BY_DEFINITION = {"stop_gradient"}


def having(rule):
    """The primitives that state this rule."""
    return [name for name in NAMES if getattr(primitive(name), rule) is not None]


@pytest.fixture(autouse=True)
def double_precision():
    with phlox.enable_x64(True):
        yield


def outputs(name, args, params):
    out = primitive(name).bind(*args, **params)
    return out if primitive(name).multiple_results else [out]


def host(x):
    return np.asarray(physical(x)) if isinstance(x, phlox.Array) else np.asarray(x)


def inexact(x):
    return dtypes.is_inexact(typeof(x).dtype)


def test_every_primitive_has_an_example():
    missing = set(NAMES) - set(table())
    assert not missing, f"tests/registry_examples.py has no example of {sorted(missing)}"


@pytest.mark.parametrize("name", NAMES)
def test_primitives_with_programs_say_so(name):
    """Analyses look for programs in these primitives alone."""
    p = primitive(name)
    for example in table()[name]:
        programs = jaxprs_in(example.params)
        assert p.holds_programs or not programs
        if p.holds_programs:
            assert {body.program.jaxpr for body in p.bodies(example.params)} == set(programs)


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(primitive(name), "rebuild", None)])
def test_an_operation_is_rebuilt_with_its_own_programs(name):
    p = primitive(name)
    for example in table()[name]:
        bodies = p.bodies(example.params)
        args, params = p.rebuild(example.args, example.params, [body.program for body in bodies])
        assert all(x is y for x, y in zip(args, example.args, strict=True))
        assert params.keys() == example.params.keys()
        same = [body.program.jaxpr for body in p.bodies(params)]
        assert same == [body.program.jaxpr for body in bodies]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_stated(rule):
    """A rule that no primitive states is not needed; some are for operations that hold programs alone."""
    holders = [name for name in (*NAMES, *ELSEWHERE) if getattr(primitive(name), rule) is not None]
    assert holders
    assert not RULES[rule].of_programs or all(primitive(name).holds_programs for name in holders)


@pytest.mark.parametrize("name", sorted({*NAMES, *ELSEWHERE}))
def test_every_primitive_decides_what_checkify_looks_at(name):
    p = primitive(name)
    follows = p.holds_programs and (p.rebuild is not None or p.expand is not None)
    assert p.nan_checked is not None or p.checked is not None or follows, (
        "state nan_checked, or how programs inside are checked"
    )
    assert p.nan_checked is None or p.steps is None, "the programs that it runs can hold checks"


@pytest.mark.parametrize("name", [n for n in NAMES if primitive(n).series in ("linear", "bilinear")])
def test_series_are_what_primitives_say(name):
    """Twice the inexact operands give twice the results of a linear primitive, four times those of a bilinear one."""
    factor = {"linear": 2, "bilinear": 4}[primitive(name).series]
    for example in table()[name]:
        if not any(inexact(x) for x in example.args):
            continue
        twice = [2 * x if inexact(x) else x for x in example.args]
        pairs = zip(outputs(name, example.args, example.params), outputs(name, twice, example.params), strict=True)
        for out, doubled in pairs:
            if inexact(out):
                np.testing.assert_allclose(host(doubled), factor * host(out), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if primitive(name).program])
def test_the_program_of_a_call_is_a_parameter(name):
    parameter = primitive(name).program
    assert table()[name]
    for example in table()[name]:
        assert jaxprs_in({parameter: example.params[parameter]})


# What an index outside of the array reads is said by a parameter, and bits may be those of a nan.
@pytest.mark.parametrize(
    "name", [n for n in NAMES if primitive(n).nan_checked is False and n not in ("gather", "bitcast_convert_type")]
)
def test_what_is_not_looked_at_makes_no_nan(name):
    extremes = np.array([0.0, -0.0, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1.0, -2.5])
    for number, example in enumerate(table()[name]):
        for draw in range(3 * CASES):
            for letters in ("fc", "c"):
                random = rng("nan", name, number, draw)
                given = [in_extremes(x, extremes, random, letters == "c") for x in example.args]
                try:
                    outs = outputs(name, given, example.params)
                except phlox.errors.DtypeError:
                    assert letters == "c", "only complex numbers may be refused"
                    continue
                assert not any(np.isnan(host(out)).any() for out in outs if inexact(out))


def in_extremes(x, extremes, random, complex_):
    """`x`, or if its elements are inexact another array of this shape."""
    if not inexact(x):
        return x
    out = np.empty(np.shape(x), np.complex128 if complex_ else x.dtype)
    out.real = random.choice(extremes, out.shape)
    if out.dtype.kind == "c":
        out.imag = random.choice(extremes, out.shape)
    return out


@pytest.mark.parametrize("name", NAMES)
def test_declared_types_are_those_of_the_compiled_result(name):
    p = primitive(name)
    for example in table()[name]:
        declared = p.types(*[typeof(x) for x in example.args], **example.params)
        declared = declared if p.multiple_results else [declared]
        got = outputs(name, example.args, example.params)
        assert len(declared) == len(got)
        for aval, x in zip(declared, got, strict=True):
            assert typeof(x) is aval
            value = host(x)
            assert value.shape == aval.physical.shape
            assert value.dtype == aval.physical.dtype


@pytest.mark.parametrize("name", FORMULAS | FORMULAS_OF_TWO)
def test_values_are_those_of_the_formula(name):
    formula = (FORMULAS | FORMULAS_OF_TWO)[name][2]
    for example in table()[name]:
        (value,) = outputs(name, example.args, example.params)
        np.testing.assert_allclose(value, formula(*example.args, **example.params), rtol=1e-12)


def takes_complex(name):
    params = FORMULAS[name][3:]
    try:
        primitive(name).types(shaped((), np.dtype(np.complex128)), **dict(*params))
    except DtypeError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in FORMULAS if takes_complex(name)])
def test_complex_values_and_derivatives_are_those_of_the_formula(name):
    low, high, formula, *params = FORMULAS[name]
    params, random, step = dict(*params), rng("complex formula", name), 1e-6
    x, t = random.uniform(low, high, 8) + 1j * random.uniform(-0.9, 0.9, 8), random.standard_normal(8) + 0.5j
    out, out_tangent = primitive(name).jvp([x], [t], **params)
    np.testing.assert_allclose(host(out), formula(x, **params), rtol=1e-12)
    slope = (formula(x + step * t, **params) - formula(x - step * t, **params)) / (2 * step)
    np.testing.assert_allclose(host(out_tangent), slope, rtol=1e-8)


# The forward rule of a custom_vjp ends in an operation that can only be transposed; see test_custom.py.
@pytest.mark.parametrize("name", sorted({*having("jvp")} - {"custom_vjp_call"} - ZERO_BY_DEFINITION))
def test_jvp_agrees_with_differences(name):
    p = primitive(name)
    step = 1e-6
    for example in table()[name]:
        moving = [i for i, x in enumerate(example.args) if inexact(x) and i not in example.fixed]
        if not moving:  # an operation without tangents is not differentiated
            continue
        random = rng("jvp", name)
        tangents = [Zero(typeof(x).tangent()) for x in example.args]
        for i in moving:
            shape = example.args[i].shape
            t = random.standard_normal(shape)
            tangents[i] = example.along(
                t + 1j * random.standard_normal(shape) if example.args[i].dtype.kind == "c" else t
            )

        def at(h, example=example, moving=moving, tangents=tangents):
            moved = [x + h * tangents[i] if i in moving else x for i, x in enumerate(example.args)]
            return [host(y) for y in outputs(name, moved, example.params)]

        _, out_tangents = p.jvp(list(example.args), tangents, **example.params)
        out_tangents = [tangent_of(t) for t in (out_tangents if p.multiple_results else [out_tangents])]
        above, below, got = at(step), at(-step), [host(instantiate(t)) for t in out_tangents]
        for hi, lo, t, y in zip(above, below, got, at(0.0), strict=True):
            if t.dtype == dtypes.float0 or not dtypes.is_inexact(y.dtype):
                continue
            bound = 1e-4 if t.dtype.itemsize >= 8 else 2e-1
            np.testing.assert_allclose(
                t, (hi.astype(t.dtype) - lo.astype(t.dtype)) / (2 * step), rtol=bound, atol=bound
            )


@pytest.mark.parametrize("name", sorted({*having("transpose")} - {"custom_vmap_call"}))
def test_transpose_satisfies_the_inner_product_identity(name):
    p = primitive(name)
    assert any(example.linear for example in table()[name]), "no example says in what it is linear"
    for example in table()[name]:
        for linear in example.linear:
            zeros = [np.zeros_like(x) if i in linear else x for i, x in enumerate(example.args)]
            constant = [host(y) for y in outputs(name, zeros, example.params)]
            out = outputs(name, example.args, example.params)
            flags = [i in linear for i in range(len(example.args))]
            is_linear = p.dependent(flags, example.params) if p.dependent else [True] * len(out)
            zero = all(not y.any() for y, flag in zip(constant, is_linear, strict=True) if flag)
            assert zero, "an example is linear only if it maps zeros to zeros"
            random = rng("transpose", name, linear)
            cts = [random_like(y, random) * flag for y, flag in zip(out, is_linear, strict=True)]
            args = [Linear(typeof(x)) if i in linear else x for i, x in enumerate(example.args)]
            back = p.transpose(cts if p.multiple_results else cts[0], *args, **example.params)
            forward = sum(np.sum(ct * host(y)) for ct, y in zip(cts, out, strict=True))
            backward = sum(np.sum(host(instantiate(back[i])) * example.args[i]) for i in linear)
            # Transposition of maps between complex numbers is defined up to real parts where a map is only real-linear.
            np.testing.assert_allclose(np.real(forward), np.real(backward), rtol=1e-9, atol=1e-9)
            for i in linear:
                assert typeof(instantiate(back[i])).shape == example.args[i].shape


def random_like(x, random):
    value = host(x)
    drawn = random.standard_normal(value.shape)
    return (drawn + 1j * random.standard_normal(value.shape) if value.dtype.kind == "c" else drawn).astype(value.dtype)


@pytest.mark.parametrize("name", sorted({*having("batch")} - {"iota"}))  # which has no arguments to map
def test_batching_agrees_with_a_stack_of_examples(name):
    p = primitive(name)
    for example in table()[name]:
        for mapped in subsets([i for i in range(len(example.args)) if i not in example.fixed]):
            for axis in range(max(typeof(example.args[i]).ndim for i in mapped) + 1):
                check_batch(p, example, mapped, axis)


def subsets(places):
    """Each argument alone, and all together."""
    return [(i,) for i in places] + ([tuple(places)] if len(places) > 1 else [])


def check_batch(p, example, mapped, axis):
    size = 2
    stacked, in_axes, per_example = [], [], [[] for _ in range(size)]
    for i, x in enumerate(example.args):
        if i not in mapped:
            stacked.append(x)
            in_axes.append(None)
            for row in per_example:
                row.append(x)
            continue
        at = min(axis, typeof(x).ndim)
        variants = [x, varied(x)]
        stacked.append(stack_keys(variants, at) if is_key(x) else np.stack(variants, at))
        in_axes.append(at)
        for row, v in zip(per_example, variants, strict=True):
            row.append(v)
    bind = lambda *xs: p.bind(*xs, **example.params)
    whole = phlox.vmap(bind, in_axes=tuple(in_axes))(*stacked)
    whole = whole if p.multiple_results else [whole]
    for k, row in enumerate(per_example):
        single = outputs(p.name, row, example.params)
        for w, s in zip(whole, single, strict=True):
            np.testing.assert_allclose(host(w)[k], host(s), rtol=1e-12, atol=1e-12, err_msg=f"{p.name} over {in_axes}")


def is_key(x):
    return dtypes.is_extended(typeof(x).dtype)


def stack_keys(variants, at):
    words = [host(v) for v in variants]
    return phlox.random.wrap_key_data(np.stack(words, at))


def varied(x):
    """Another example of the same type."""
    if is_key(x):
        return phlox.random.wrap_key_data(host(x)[..., ::-1])
    x = np.asarray(x)
    if x.dtype == bool:
        return ~x
    return np.flip(x).copy() if x.dtype.kind in "iu" else x[::-1].copy() * 0.875 if x.ndim else x * 0.875


@pytest.mark.parametrize("name", sorted(WITH_KEYS))
def test_extended_elements_move_as_numbers_do(name):
    shape, params = WITH_KEYS[name]
    count = int(np.prod(shape))
    numbers = np.arange(count, dtype=np.uint32).reshape(shape)
    keys = phlox.random.wrap_key_data(np.stack([numbers, numbers + 100], -1))
    (moved,) = outputs(name, (keys,), params)
    (expected,) = outputs(name, (numbers,), params)
    np.testing.assert_array_equal(host(moved)[..., 0], host(expected))
    np.testing.assert_array_equal(host(moved)[..., 1], host(expected) + 100)


def test_names_are_taken_once():
    modules = [m for name, m in sys.modules.items() if name.startswith("phlox._ops.")]
    for made in {x for m in modules for x in vars(m).values() if isinstance(x, Primitive)}:
        assert primitive(made.name) is made


def test_a_missing_rule_is_an_error_with_the_name_of_primitive_and_rule():
    with pytest.raises(phlox.errors.MissingRuleError) as caught:
        phlox.grad(lambda x: phlox.lax.scatter_min_p.rule("transpose")(x))(3.0)
    assert (caught.value.primitive, caught.value.rule) == ("scatter-min", "transpose")
    assert "reverse-mode" in str(caught.value)
    assert "test_registry.py" in str(caught.value)
