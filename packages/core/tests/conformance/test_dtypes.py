"""dtypes and their promotion: every pair of types, weak ones too, in 32 and 64 bits, standard and strict."""

import contextlib
import functools
import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import both, rotate, same_kind

NAMES = [
    "bool",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "bfloat16",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SCALARS = [True, 2, 2.5, 2j]
KINDS = [
    "generic",
    "number",
    "integer",
    "signedinteger",
    "unsignedinteger",
    "inexact",
    "floating",
    "complexfloating",
    "character",
    "flexible",
]
ODD = [
    "nonsense",
    None,
    object,
    "S3",
    "datetime64[s]",
    str,
    "i4",
    "<f4",
    ">f4",
    "f8",
    "l",
    float,
    int,
    bool,
    complex,
    np.float32,
    np.dtype("int8"),
    ml_dtypes.bfloat16,
    "V4",
    list,
]

modes = pytest.mark.parametrize("promotion", ["standard", "strict"])
bits = pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])


@contextlib.contextmanager
def settings(wide, promotion="standard"):
    with contextlib.ExitStack() as stack:
        for m in (phlox, jax):
            stack.enter_context(m.enable_x64(wide))
            stack.enter_context(m.numpy_dtype_promotion(promotion))
        yield


def attempt(f, *args):
    try:
        return f(*args), None
    except Exception as error:
        return None, error


@pytest.fixture
def alike():
    """Compares the answers (or kinds of errors) of both libraries; all that differ are told together in the end."""
    problems = []

    def check(f, what, show=str):
        (mine, my_error), (theirs, their_error) = attempt(f, phlox), attempt(f, jax)
        try:
            if my_error is not None or their_error is not None:
                same_kind(my_error, their_error, what)
            else:
                assert show(mine) == show(theirs), f"{what}: {show(mine)}, jax has {show(theirs)}"
        except Exception as error:
            text = str(error).partition("\n")[0]
            problems.append(text if text.startswith(what) else f"{what}: {text}")

    yield check
    assert not problems, f"{len(problems)} differences: " + "; ".join(problems)


def operand(m, spec):
    """An array of a dtype, or one of a weak type for a Python scalar."""
    return m.numpy.ones(2, spec) if isinstance(spec, str) else m.numpy.asarray(spec)


def typed(x):
    return f"{x.dtype}{' weak' if x.weak_type else ''} {x.shape}" if hasattr(x, "weak_type") else f"no array but {x!r}"


@bits
@modes
@pytest.mark.parametrize("left", [*NAMES, *SCALARS], ids=str)
def test_promotion_of_pairs(alike, left, promotion, wide):
    with settings(wide, promotion):
        for right in (*NAMES, *SCALARS):
            pair = f"{left} with {right}"
            alike(lambda m, r=right: m.numpy.result_type(left, r), f"result_type of {pair}")
            alike(
                lambda m, r=right: m.numpy.result_type(operand(m, left), operand(m, r)), f"result_type of arrays {pair}"
            )
            alike(
                lambda m, r=right: m.eval_shape(m.numpy.add, operand(m, left), operand(m, r)), f"add of {pair}", typed
            )
            if not isinstance(left, str):
                alike(
                    lambda m, r=right: m.eval_shape(m.numpy.add, left, operand(m, r)),
                    f"add of the number {pair}",
                    typed,
                )


@bits
@pytest.mark.parametrize("left", NAMES)
def test_sums_of_pairs(left, wide):
    """Some pairs are added for real, and divided: the values show where the conversions happen."""
    with settings(wide):
        for right in rotate([*NAMES, *SCALARS], 2 * judge.CASES, left, wide):
            for function in ("add", "true_divide"):

                def run(m, right=right, function=function):
                    return getattr(m.numpy, function)(operand(m, left), operand(m, right))

                (mine, my_error), (theirs, their_error) = attempt(run, phlox), attempt(run, jax)
                what = f"{function} of {left} and {right}"
                if my_error is not None or their_error is not None:
                    same_kind(my_error, their_error, what)
                else:
                    judge.compare(mine, theirs, what=what)


@bits
def test_promote_types(alike, wide):
    with settings(wide):
        for left, right in itertools.product([*NAMES, int, float, complex, bool], repeat=2):
            alike(lambda m, a=left, b=right: m.numpy.promote_types(a, b), f"promote_types({left}, {right})")


class Named:
    """An array of another library, such as a `NamedArray` of penzai."""

    def __init__(self, dtype: object = np.float32):
        self.dtype = np.dtype(dtype)


@bits
def test_result_type_of_several(alike, wide):
    with settings(wide):
        for args in [
            (),
            (1,),
            (1, 2.0),
            ("int8", 1, 2.0),
            ("int8", "uint8", 1j),
            (np.int8(1), 300),
            (np.float64(1), "float16"),
            ([1],),
            (None,),
            ("nonsense",),
            (int, "int8"),
            (float, "bfloat16"),
            (np.zeros(2), 1),
            (True, False),
            (np.uint32(1), np.int8(1), 1.0),
            (Named(), 1),
            (Named("float64"), 1j),
            (Named(ml_dtypes.bfloat16), np.float32(1)),
            (Named("S3"),),
        ]:
            alike(lambda m, args=args: m.numpy.result_type(*args), f"numpy.result_type{args}")
            alike(lambda m, args=args: m.lax.dtype(args[0]) if isinstance(args[0], Named) else None, f"lax.dtype{args}")
            alike(lambda m, args=args: m.dtypes.result_type(*args), f"dtypes.result_type{args}")


@bits
@modes
@pytest.mark.parametrize(
    "operator", ["add", "multiply", "subtract", "power", "maximum", "less", "bitwise_and", "where", "concatenate"]
)
def test_other_functions_promote_alike(alike, operator, promotion, wide):
    calls = {
        "where": lambda m, x, y: m.numpy.where(m.numpy.ones(2, bool), x, y),
        "concatenate": lambda m, x, y: m.numpy.concatenate([m.numpy.atleast_1d(x), m.numpy.atleast_1d(y)]),
        "less": lambda m, x, y: m.numpy.less(x, y).astype(bool),  # jax's bools are weak where it compares weak floats
    }
    call = calls.get(operator, lambda m, x, y: getattr(m.numpy, operator)(x, y))
    with settings(wide, promotion):
        names = [n for n in NAMES if "int4" not in n]  # jax cannot raise them to a power
        pairs = list(itertools.product([*names, *SCALARS], repeat=2))
        for left, right in rotate(pairs, 60 * judge.CASES, operator, wide, promotion):

            def run(m, left=left, right=right):
                return m.eval_shape(functools.partial(call, m), operand(m, left), operand(m, right))

            alike(run, f"{operator} of {left} and {right}", typed)


@bits
@pytest.mark.parametrize("name", [*NAMES, *map(str, range(4))])
def test_numpy_scalars_are_strong(alike, name, wide):
    """NumPy scalars and arrays have the dtype that they say, Python's do not."""
    with settings(wide), np.errstate(all="ignore"):
        scalar = (
            SCALARS[int(name)]
            if name.isdigit()
            else np.array(1).astype(judge.array(judge.rng(), (), name).dtype)[()]
            if "int4" not in name and "float8" not in name
            else np.array(1, getattr(ml_dtypes, name))[()]
        )
        for other in rotate(NAMES, 4 * judge.CASES, name):
            alike(lambda m, o=other: m.eval_shape(lambda x: x * scalar, m.numpy.ones(2, o)), f"{other} * {name}", typed)
            alike(lambda m, o=other: m.eval_shape(lambda x: scalar - x, m.numpy.ones(2, o)), f"{name} - {other}", typed)


@bits
def test_issubdtype(alike, wide):
    with settings(wide):
        for name, kind in itertools.product([*NAMES, float, int, bool, np.float32], KINDS):
            alike(lambda m, a=name, b=kind: m.numpy.issubdtype(a, getattr(m.numpy, b)), f"issubdtype({name}, {kind})")
            alike(
                lambda m, a=name, b=kind: m.dtypes.issubdtype(a, getattr(np, b)),
                f"dtypes.issubdtype({name}, np.{kind})",
            )
        for a, b in itertools.product(KINDS, repeat=2):
            alike(
                lambda m, a=a, b=b: m.numpy.issubdtype(getattr(m.numpy, a), getattr(m.numpy, b)),
                f"issubdtype({a}, {b})",
            )
        for a, b in itertools.product(NAMES, repeat=2):
            alike(lambda m, a=a, b=b: m.numpy.issubdtype(a, b), f"issubdtype({a}, {b})")
        for m in (phlox, jax):
            assert m.dtypes.issubdtype(m.dtypes.prng_key, m.dtypes.extended)
            assert not m.dtypes.issubdtype(m.numpy.float32, m.dtypes.extended)


@bits
@pytest.mark.parametrize("name", NAMES)
def test_limits(alike, name, wide):
    with settings(wide):
        for field in ("max", "min", "bits", "dtype"):
            alike(lambda m, f=field: getattr(m.numpy.iinfo(name), f), f"iinfo({name}).{field}")
        for field in (
            "max",
            "min",
            "bits",
            "dtype",
            "eps",
            "tiny",
            "smallest_subnormal",
            "nmant",
            "nexp",
            "maxexp",
            "resolution",
            "precision",
            "epsneg",
        ):
            alike(lambda m, f=field: getattr(m.numpy.finfo(name), f), f"finfo({name}).{field}")


@bits
def test_can_cast(alike, wide):
    with settings(wide):
        for a, b, casting in itertools.product(
            NAMES[:1] + NAMES[2:6] + NAMES[7:9] + NAMES[13:], NAMES[2:6] + NAMES[13:], ("safe", "same_kind", "unsafe")
        ):
            alike(lambda m, a=a, b=b, c=casting: m.numpy.can_cast(a, b, casting=c), f"can_cast({a}, {b}, {casting})")


@bits
def test_canonical_types(alike, wide):
    with settings(wide):
        for name in [*NAMES, *ODD]:
            if name in NAMES:
                alike(lambda m, n=name: m.dtypes.canonicalize_dtype(n), f"canonicalize_dtype({name})")
            alike(lambda m, n=name: m.numpy.zeros(1, n).dtype, f"zeros of {name}")
            alike(lambda m, n=name: m.numpy.dtype(n), f"dtype({name})")
            alike(lambda m, n=name: m.numpy.ones(2, "int8").astype(n).dtype, f"astype({name})")


def test_kinds_of_numbers(alike):
    for x in (
        1,
        2.5,
        1j,
        True,
        np.float32(1),
        np.zeros(2, complex),
        int,
        "bfloat16",
        "int4",
        "uint8",
        "bool",
        "nothing",
    ):
        alike(lambda m, x=x: m.dtypes.scalar_type_of(x), f"scalar_type_of({x!r})")
        alike(lambda m, x=x: m.dtypes.result_type(x, 1, return_weak_type_flag=True), f"result_type({x!r}, 1)")
    alike(lambda m: m.dtypes.scalar_type_of(m.random.key(0)), "scalar_type_of a key")


def test_questions_about_values(alike):
    for x in (1, 2.5, 1j, True, np.float32(1), np.zeros(2), np.zeros(2, complex), np.array(3), "a", None, [1], [1j]):
        for question in ("isscalar", "iscomplexobj", "isrealobj"):
            alike(lambda m, q=question, x=x: getattr(m.numpy, q)(x), f"{question}({x!r})")
    for question in ("isscalar", "iscomplexobj", "isrealobj"):
        alike(lambda m, q=question: getattr(m.numpy, q)(m.numpy.ones(())), f"{question} of an array")
        alike(lambda m, q=question: getattr(m.numpy, q)(m.numpy.ones(2, "complex64")), f"{question} of a complex array")


def test_scalar_types_are_equal_to_types_alone():
    others = ["int8", "i1", np.int8, np.dtype("int8"), int, None, 1, "float32", np.float32, float]
    for name in ("int8", "float32", "bfloat16", "bool_"):
        mine, theirs = getattr(phlox.numpy, name), getattr(jax.numpy, name)
        assert [mine == x for x in others] == [theirs == x for x in others]
        assert [x != mine for x in others] == [x != theirs for x in others]


def test_instances_of_scalar_types_are_numbers_of_numpy():
    for m in (phlox, jax):
        for x in (np.float32(1), np.float64(1), np.bool_(True), 1.0, m.numpy.float32(1)):
            types = (m.numpy.float32, m.numpy.float64, m.numpy.bool_, m.numpy.bfloat16)
            expected = [type(x) is np.float32, type(x) is np.float64, type(x) is np.bool_, False]
            assert [isinstance(x, t) for t in types] == expected


def test_constants_and_scalar_types():
    for name in ("pi", "e", "euler_gamma", "inf", "nan", "newaxis"):
        assert repr(getattr(phlox.numpy, name)) == repr(getattr(jax.numpy, name)), name
    for name in [*NAMES[1:], "bool_", "single", "double"]:
        mine, theirs = getattr(phlox.numpy, name), getattr(jax.numpy, name)
        assert np.dtype(mine) == np.dtype(theirs)
        assert (mine == theirs.dtype) and (np.dtype(mine) == mine), name
        assert mine.dtype == theirs.dtype
        assert hash(mine) == hash(mine.dtype.type) or mine.dtype.name == name
    assert phlox.numpy.ndarray is phlox.Array
    assert isinstance(phlox.numpy.ones(2), phlox.numpy.ndarray)
    for name in ("object_", *KINDS):
        assert getattr(phlox.numpy, name) is getattr(jax.numpy, name), name
    assert phlox.dtypes.bfloat16 is jax.dtypes.bfloat16  # equinox asks whether numbers are instances of it
    assert phlox.dtypes.float0 == jax.dtypes.float0
    assert phlox.float0 == jax.float0
    for m in (phlox, jax):
        for convert in (m.numpy.array, m.numpy.asarray):
            zeros = convert(np.zeros(2, m.float0))
            assert isinstance(zeros, np.ndarray) and (zeros.dtype, zeros.shape) == (m.float0, (2,))
    for name in ("prng_key", "extended"):
        assert isinstance(getattr(phlox.dtypes, name), type), name


def test_wide_numpy_arrays_become_narrow(alike):
    """Without 64 bits: float64 becomes float32 and so on, wherever an array comes in."""
    for dtype in ("float64", "int64", "uint64", "complex128"):
        x = np.arange(3).astype(dtype)
        alike(lambda m, x=x: m.numpy.asarray(x), f"asarray of {dtype}", typed)
        alike(lambda m, x=x: m.numpy.add(x, 1), f"{dtype} + 1", typed)
        alike(lambda m, x=x: m.jit(lambda x: x * 2)(x), f"jit of {dtype}", typed)
        alike(lambda m, x=x: m.numpy.asarray(x[0]), f"scalar of {dtype}", typed)
        alike(lambda m, x=x: m.numpy.ones(2, "float16") * x[1], f"float16 array times scalar of {dtype}", typed)
        alike(lambda m, x=x: m.vmap(lambda x: x * 2)(x), f"vmap of {dtype}", typed)


def test_integers_that_do_not_fit(alike):
    for value in (2**31 - 1, 2**31, 2**32, 2**63, 2**64, -(2**31) - 1, 10**30):
        alike(lambda m, v=value: m.numpy.asarray(v), f"asarray({value})", lambda x: f"{typed(x)} {x}")
        alike(lambda m, v=value: m.numpy.ones(2, "int32") + v, f"int32 + {value}", lambda x: f"{typed(x)} {x}")
        alike(lambda m, v=value: m.numpy.ones(2, "float32") + v, f"float32 + {value}", lambda x: f"{typed(x)} {x}")
        alike(lambda m, v=value: m.jit(lambda x: x + 1)(v), f"jit({value})", lambda x: f"{typed(x)} {x}")
    for value in (127, 0):  # for others jax wraps: unit/test_integer_ranges.py
        alike(lambda m, v=value: m.numpy.ones(2, "uint8") + v, f"uint8 + {value}", lambda x: f"{typed(x)} {x}")
        alike(lambda m, v=value: m.numpy.ones(2, "int8") * v, f"int8 * {value}", lambda x: f"{typed(x)} {x}")
        alike(lambda m, v=value: m.numpy.ones(2, "uint8") < v, f"uint8 < {value}", lambda x: f"{typed(x)} {x}")


def test_issubdtype_takes_arrays_too():
    for dtype in ("float32", "int8", "bfloat16"):
        mine, theirs = (m.numpy.issubdtype(m.numpy.ones(2, dtype), m.numpy.floating) for m in (phlox, jax))
        assert mine is theirs


CATEGORIES = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


@pytest.mark.parametrize("kind", [*CATEGORIES, "float32", ("bool", np.int8), np.float16, "thing", 3])
def test_isdtype(kind):
    for dtype in ("bool", "int8", "uint32", "float16", ml_dtypes.bfloat16, "complex64", ml_dtypes.float8_e5m2):
        both(lambda m, d=dtype: m.numpy.isdtype(d, kind))


def test_names_of_types():
    for name in [
        "bool",
        "csingle",
        "cdouble",
        "int_",
        "uint",
        "float_",
        "complex_",
        "int2",
        "uint2",
        "float4_e2m1fn",
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
    ]:
        assert np.dtype(getattr(phlox.numpy, name)) == np.dtype(getattr(jax.numpy, name)), name
        both(lambda m, n=name: getattr(m.numpy, n)(1), what=name)
    for name in ["array_repr", "array_str", "iterable", "get_printoptions", "set_printoptions", "printoptions"]:
        assert callable(getattr(phlox.numpy, name))
    assert phlox.numpy.array_str(phlox.numpy.arange(2)) == jax.numpy.array_str(jax.numpy.arange(2))
    assert phlox.numpy.iterable(phlox.numpy.arange(2))
    assert phlox.numpy.ComplexWarning is jax.numpy.ComplexWarning


@pytest.mark.parametrize("name", ["int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"])
def test_types_that_have_no_arrays(name):
    """They can be asked about; XLA does not compute with them on CPUs (and jax takes int1 for bool)."""
    both(lambda m: getattr(m.numpy, name).dtype)
    both(lambda m: m.dtypes.itemsize_bits(getattr(m.numpy, name)) if hasattr(m.dtypes, "itemsize_bits") else 0)
    both(lambda m: m.numpy.promote_types(getattr(m.numpy, name), m.numpy.float32))
    both(lambda m: m.numpy.promote_types(getattr(m.numpy, name), getattr(m.numpy, name)))
    both(lambda m: m.numpy.result_type(getattr(m.numpy, name), 1))
    both(lambda m: m.numpy.issubdtype(getattr(m.numpy, name), m.numpy.signedinteger))
    both(lambda m: m.numpy.isdtype(getattr(m.numpy, name), ("signed integer", "real floating")))
    both(lambda m: m.eval_shape(lambda x: x, m.ShapeDtypeStruct((2,), getattr(m.numpy, name))).dtype)
    limits = "finfo" if name.startswith("float") else "iinfo"
    both(lambda m: getattr(m.numpy, limits)(getattr(m.numpy, name)).bits)
    both(lambda m: float(getattr(m.numpy, limits)(getattr(m.numpy, name)).max))
    if name.endswith("int1"):  # what XLA does with floats of six bits differs by version, up to the end of the process
        with pytest.raises(ValueError):
            phlox.numpy.zeros(2, getattr(phlox.numpy, name))


OTHERS = [
    "float32",
    np.float32,
    "bfloat16",
    object,
    "O",
    int,
    bool,
    "int4",
    None,
    str,
    "U3",
    "datetime64",
    "V4",
    np.void,
]
OTHERS += [np.generic, np.number, np.integer, np.flexible, (int, float), 3]


@pytest.mark.whole
@pytest.mark.parametrize("first", OTHERS, ids=str)
def test_issubdtype_of_other_types(first):
    """Types of NumPy that no array has are answered, too."""

    def answer(m, second):
        try:
            return m.dtypes.issubdtype(first, second), m.numpy.issubdtype(first, second)
        except TypeError:
            return TypeError

    assert [answer(phlox, second) for second in OTHERS] == [answer(jax, second) for second in OTHERS]
