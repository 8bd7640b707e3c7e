"""phlox in the place of jax, in processes of their own: programs, modules, tracebacks, pytest, and jax that came first."""

import importlib.metadata
import subprocess
import sys

import pytest

from compat_processes import BOTH
from core_processes import environment


def python(*arguments, cwd=None, **changes):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment(PYTHONPATH=BOTH, **changes),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
    )


def as_jax(*arguments, **options):
    return python("-m", "phlox.as_jax", *arguments, **options)


PROGRAM = """\
import sys
import jax
import jax.numpy as jnp
from jax import grad, lax
from jax.scipy.special import logsumexp

assert jax.numpy is jnp and jax.lax is lax
assert __name__ == "__main__" and sys.modules["__main__"].jax is jax
print(jax.__version__, sys.argv[1:], float(grad(jnp.sin)(0.0)), float(logsumexp(jnp.zeros(1))))
print(__file__, sorted(name for name in globals() if not name.startswith("__")))
"""


def test_a_program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    done = as_jax("program.py", "a", "--b", cwd=tmp_path)  # Python too makes the path of the program absolute
    assert not done.stderr
    first, second = done.stdout.splitlines()
    assert first == "0.12.0 ['a', '--b'] 1.0 0.0"
    assert second == f"{file} ['grad', 'jax', 'jnp', 'lax', 'logsumexp', 'sys']"


def test_a_command_and_a_module(tmp_path):
    done = as_jax("-c", "import jax, sys; print(jax, sys.argv)", "x")
    assert "phlox 0.1.0 as jax 0.12.0" in done.stdout and "['-c', 'x']" in done.stdout
    (tmp_path / "part.py").write_text("import jax, sys; print(__name__, jax.make_mesh.__module__, sys.argv[1:])")
    done = as_jax("-m", "part", "y", cwd=tmp_path)
    assert done.stdout.startswith("__main__ phlox") and done.stdout.endswith("['y']\n")


def test_an_interactive_session():
    done = subprocess.run(
        [sys.executable, "-m", "phlox.as_jax"],
        input="import jax\njax\n",
        env=environment(PYTHONPATH=BOTH),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "<module 'jax': phlox 0.1.0 as jax 0.12.0, from" in done.stdout


def test_tracebacks_begin_at_the_program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("import jax\n\ndef f():\n    jax.numpy.ones(2) @ jax.numpy.ones(3)\n\nf()\n")
    done = as_jax(file)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Traceback") and lines[1].strip() == f'File "{file}", line 6, in <module>'
    assert "ShapeError" in done.stderr


def test_exit_statuses(tmp_path):
    assert as_jax("-c", "raise SystemExit(3)").returncode == 3
    done = as_jax(tmp_path / "nowhere.py")
    assert done.returncode == 1 and "can't open file" in done.stderr and "Traceback" not in done.stderr
    assert "usage:" in as_jax("--what").stderr
    assert as_jax("--help").stdout.startswith("usage:")


def test_pytest_runs(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax\nimport jax.numpy as jnp\n\ndef test_it():\n    assert 'phlox' in repr(jax)\n"
        "    assert jnp.ones(3).sum() == 3\n"
    )
    done = as_jax("-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path)
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_of_multiprocessing(tmp_path, method):
    file = tmp_path / "program.py"
    file.write_text(
        "import multiprocessing\nimport jax\n\ndef work(x):\n    return repr(jax), x\n\n"
        "if __name__ == '__main__':\n"
        f"    with multiprocessing.get_context({method!r}).Pool(1) as pool:\n"
        "        print(pool.map(work, [3]))\n"
    )
    done = as_jax(file)
    assert "phlox 0.1.0 as jax" in done.stdout and done.stdout.strip().endswith("3)]"), done.stderr


def test_objects_of_a_program_are_pickled(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import pickle, jax\n\nclass Mine:\n    x = 1\n\n"
        "print(type(pickle.loads(pickle.dumps(Mine()))) is Mine, pickle.loads(pickle.dumps(jax.numpy.sum)))\n"
    )
    assert as_jax(file).stdout.startswith("True")


def test_functions_are_pickled_by_name(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import inspect, jax, pickle\n"
        "functions = {name: f for name in dir(jax) if inspect.isfunction(f := getattr(jax, name))}\n"
        "print(*[name for name, f in functions.items() if pickle.loads(pickle.dumps(f)) is not f])\n"
        "print({'grad', 'vmap', 'shard_map', 'linearize'} <= {*functions})\n"
    )
    done = as_jax(file)
    assert done.stdout.splitlines() == ["", "True"], done.stdout + done.stderr


def test_transformations_import_nothing_of_values_with_types_of_their_own(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import sys, jax\n"
        "jax.vmap, jax.grad\n"
        "print(*[m for m in ('_operations', '_shard_map') if f'phlox_compat.jax_internals._hijax.{m}' in sys.modules])\n"
        "print(jax.grad(jax.vmap(lambda x: x * x, axis_size=1, in_axes=None, out_axes=None))(3.0))\n"
    )
    done = as_jax(file)
    assert done.stdout.splitlines() == ["", "6.0"], done.stdout + done.stderr


def test_with_jax_loaded_already():
    done = python("-c", "import jax, phlox.as_jax; phlox.as_jax.install()")
    assert f"AdoptionError: the real jax {importlib.metadata.version('jax')} is loaded already" in done.stderr
    assert "instead: phlox.as_jax.install() before any import" in done.stderr


def test_install_twice_in_a_program():
    done = python("-c", "import phlox.as_jax as a; a.install(); a.install(); import jax; print(jax)")
    assert "phlox 0.1.0 as jax" in done.stdout


def test_modules_that_are_not_imported_by_name():
    # Keras reads it; with jax, another library has imported it.
    done = as_jax("-c", "import jax; print(jax.experimental.multihost_utils.process_allgather(jax.numpy.ones(1)))")
    assert done.stdout == "[[1.]]\n", done.stderr
    assert as_jax("-c", "import jax; print(hasattr(jax.experimental, '_nothing'))").stdout == "False\n"


def test_star_imports():
    modules = "lax", "sharding", "random", "scipy.special", "experimental.xla_metadata", "core"
    names = "psum", "PartitionSpec", "split", "logsumexp", "set_xla_metadata", "Primitive"
    code = "\n".join(f"from jax.{module} import *" for module in modules) + f"\nprint({', '.join(names)})"
    done = as_jax("-c", code)
    assert not done.stderr and len(done.stdout.splitlines()) == 1


WALK = """\
import types
import jax

def walk(module):
    for name in dir(module):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) and value.__name__ == f"{module.__name__}.{name}":
            walk(value)

walk(jax)
"""


def test_all_names_of_all_modules():
    """treescope reads them all before it renders an array."""
    assert not as_jax("-c", WALK).stderr


def test_names_that_phlox_lacks():
    done = as_jax("-c", "import jax\njax.not_there")
    assert "MissingNameError: the program uses jax.not_there: phlox has nothing of this name" in done.stderr
    assert (
        as_jax("-c", "import jax; print(hasattr(jax, 'not_there'), getattr(jax.numpy, 'nope', 5))").stdout
        == "False 5\n"
    )
    done = as_jax("-c", "import jax.experimental.mosaic")
    assert "instead: operations of jax.lax" in done.stderr
    done = as_jax("-c", "from jax.experimental import mosaic")
    assert "MissingImportError: the program uses jax.experimental.mosaic" in done.stderr
    done = as_jax("-c", "try:\n  from jax import nope\nexcept ImportError as e: print(e.jax_name)")
    assert done.stdout == "jax.nope\n"


def test_the_real_jax_is_never_imported():
    done = as_jax(
        "-c", "import jax, sys; jax.numpy.ones(3).sum(); print([m for m in sys.modules if m.startswith('jax._src')])"
    )
    assert done.stdout == "[]\n"


SCIPY = """
import sys
import warnings
import jax
import jax.numpy as jnp
import numpy as np
import scipy.signal, scipy.special, scipy.stats
try:
    from scipy._external.array_api_compat import is_jax_array, is_jax_namespace
except ImportError:  # before SciPy 1.18
    from scipy._lib.array_api_compat import is_jax_array, is_jax_namespace

assert "jax.core" in sys.modules and jnp.__array_namespace_info__ and "__array_api_version__" in dir(jnp)
x = np.random.default_rng(0).gamma(2.0, size=(5, 3)).astype("float32")
assert jnp.asarray(x).__array_namespace__() is jnp and is_jax_namespace(jnp) and is_jax_array(jnp.asarray(x))
assert jax.jit(lambda a: a.device is None and is_jax_array(a))(1.0)
FUNCTIONS = {
    **{f"stats.{name}": getattr(scipy.stats, name) for name in (
        "gstd gmean skew kurtosis variation entropy zscore tmean sem kstat circmean"
    ).split()},
    **{f"special.{name}": getattr(scipy.special, name) for name in "logsumexp softmax log_softmax expit entr".split()},
    "signal.detrend": lambda a: scipy.signal.detrend(a, axis=0),
    "signal.fftconvolve": lambda a: scipy.signal.fftconvolve(a, a, axes=0),
}
for name, function in FUNCTIONS.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.asarray(function(x))
        for run in (function, jax.jit(function)):
            result = run(jnp.asarray(x))
            assert isinstance(result, jax.Array), name
            np.testing.assert_allclose(result, expected, rtol=2e-4, atol=1e-5, err_msg=name)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for window in ("hann", "hamming", "blackman", "cosine", "bartlett"):
        made = getattr(scipy.signal.windows, window)(4, xp=jnp)
        np.testing.assert_allclose(made, getattr(scipy.signal.windows, window)(4), atol=1e-6)
print(len(FUNCTIONS))
"""


def test_scipy(tmp_path):
    """SciPy's functions for the array API take phlox's arrays for those of jax."""
    pytest.importorskip("scipy", "1.16", reason="older ones know fewer functions of the array API")
    file = tmp_path / "program.py"
    file.write_text(SCIPY)
    done = as_jax(file, SCIPY_ARRAY_API="1")
    assert done.stdout == "18\n", done.stderr


def test_array_api_extra_beside_jax(tmp_path):
    """Outside of as_jax it cannot know that arrays do not change, and the error says what to do."""
    pytest.importorskip("scipy", "1.16", reason="its copy of array-api-extra")
    program = "import phlox.numpy as jnp, scipy.special; scipy.special.logsumexp(jnp.ones(3))"
    done = python("-c", program, SCIPY_ARRAY_API="1")
    assert "phlox.as_jax.install()" in done.stderr


CLASS = """
import jax

class Strict:
    def __init__(self, x):
        assert isinstance(x, jax.Array), x
        self.x = x

jax.tree_util.register_pytree_node(Strict, lambda s: ((s.x,), None), lambda _, xs: Strict(*xs))
print(jax.jit(Strict)(1.0).x)
"""


def test_results_of_classes_that_take_arrays_only():
    assert as_jax("-c", CLASS).stdout == "1.0\n"


def test_classes_name_the_modules_of_jax(tmp_path):
    (tmp_path / "names.py").write_text(
        """
import jax, jax.numpy as jnp, pickle

names = []
def note(x):
    names.append(f"{type(x).__module__}.{type(x).__name__}")
    return x

x = jnp.ones(3)
x.trainable = False
note(x), jax.jit(note)(x), jax.vmap(note)(x), jax.jvp(note, (x,), (x,)), note(jnp.float32)
print(names, jax.Array, x.trainable, hasattr(x + 1, "trainable"))
assert repr(jnp.float32) == "<class 'jax.numpy.float32'>" and pickle.loads(pickle.dumps(jnp.float32)) is jnp.float32
assert isinstance(x, jax.Array) and pickle.loads(pickle.dumps(jax.Array)) is jax.Array
spec = jax.P("i", None)
others = type(x.sharding), type(spec), jax.tree_util.Partial, jax.sharding.NamedSharding
print(*others, pickle.loads(pickle.dumps(others)) == others, spec)
print(*sorted({error.__module__ for error in (jax.errors.JaxRuntimeError, jax.errors.JAXTypeError)}))
try:
    jax.jit(bool)(x[0])
except jax.errors.TracerBoolConversionError as error:
    print(type(error).__module__)
try:
    jnp.sin("a")
except TypeError as error:
    print(error)
"""
    )
    done = as_jax("names.py", cwd=tmp_path)
    assert done.stdout.startswith(
        "['jaxlib._jax.ArrayImpl', 'jax._src.interpreters.partial_eval.DynamicJaxprTracer', "
        "'jax._src.interpreters.batching.BatchTracer', 'jax._src.interpreters.ad.JVPTracer', "
        "'jax._src.numpy.scalar_types._ScalarMeta'] "
        "<class 'jax.Array'> False False\n"
        "<class 'jax.sharding.SingleDeviceSharding'> <class 'jax.P'> <class 'jax.tree_util.Partial'> "
        "<class 'jax.sharding.NamedSharding'> True P('i', None)\n"
        "jax.errors\njax.errors\nsin takes arrays"
    ), done.stdout + done.stderr


def test_arrays_that_are_copied_to_the_host_ahead():
    """jaxlib makes the copies with types of the module jax, which is phlox here. They are no arrays of the program."""
    done = as_jax(
        "-c",
        "import jax; x = jax.numpy.arange(13.0); x.copy_to_host_async(); import phlox\n"
        "print(sum(a.shape == (13,) for a in jax.live_arrays()), sum(g.count for g in phlox.debug.live_memory()))",
    )
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_imports_by_name_of_what_phlox_lacks(tmp_path):
    (tmp_path / "tool.py").write_text("import importlib\ndef load(): importlib.import_module('jax.experimental.fused')")
    done = as_jax("-c", "import tool; tool.load()", cwd=tmp_path)
    assert "tool uses jax.experimental.fused" in done.stderr and "tool.py:2 (load)" in done.stderr


TRACERS = """
import jax, jax.numpy as jnp

def show(x):
    print(x)
    return x ** 2

jax.jit(show)(3)
jax.vmap(show)(jnp.ones((4, 2)))
jax.grad(show)(3.0)
jax.jvp(show, (3.0,), (1.0,))
jax.jit(jax.grad(show))(3.0)
jax.grad(jax.grad(show))(3.0)
jax.vmap(lambda x: print(x.val, x.batch_dim) or x, in_axes=1)(jnp.arange(4).reshape(2, 2))
"""


def test_tracers_are_printed_as_in_jax():
    assert as_jax("-c", TRACERS).stdout.splitlines() == [
        "JitTracer(~int32[])",
        "VmapTracer(aval=float32[2], batched=float32[4,2])",
        "GradTracer(primal=3.0, typeof(tangent)=f32[])",
        "JVPTracer(primal=3.0, tangent=1.0)",
        "GradTracer(primal=JitTracer(~float32[]), typeof(tangent)=f32[])",
        "GradTracer(primal=GradTracer(primal=3.0, typeof(tangent)=f32[]), typeof(tangent)=f32[])",
        "[[0 1]",
        " [2 3]] 1",
    ]


FAILED_CHECK = """
import jax
from jax.experimental import checkify

def f(x):
    checkify.check(x > 0, "{} is negative", x)
    return x

error, _ = checkify.checkify(jax.jit(f))(-1.0)
print(error.get(), error.get_exception(), error, sep="\\n")
"""


LOGGED = """
import jax, logging, sys

logging.getLogger("jax").addHandler(logging.StreamHandler(sys.stdout))
with jax.log_compiles():
    jax.jit(lambda x: x + 1)(1)
"""


def test_handlers_of_the_logger_of_jax_get_what_is_logged():
    assert "Compiling jit(<lambda>)" in as_jax("-c", LOGGED).stdout


def test_failed_checks_are_printed_as_in_jax():
    message = "-1.0 is negative (`check` failed)"
    assert as_jax("-c", FAILED_CHECK).stdout.splitlines() == [message, message, f"Error({message})"]


ERRORS = """
import jax, jax.numpy as jnp

x = jnp.ones((2, 3))

def name(f, *args):
    try:
        f(*args)
    except Exception as error:
        print(type(error).__name__)

def fail(x):
    return x @ x

name(fail, x)
name(jnp.sum, x, 5)
name(jax.tree.map, max, (1, 2), (1,))
name(jnp.zeros, 2, "q9")
name(jax.grad(jnp.sin), x)
name(jax.vmap(max), x, x.T)
name(lambda: x["a"])
name(lambda: x[1.5])
name(lambda: x[[0, 1]])
name(lambda: x[0, 0, 0])
name(lambda: x.at[..., ...].set(0))
name(lambda: x[jnp.ones(5, bool)])
name(jax.jit(lambda n: x[n:]), 1)
name(jax.lax.cond, True, lambda: 1.0, lambda: (1.0,))
name(jax.lax.scan, lambda c, _: ((c, c), None), 1.0, None, 2)
name(jax.jvp, jnp.sin, (x,), ([x],))
name(jax.grad(lambda x: x.sum(), has_aux=True), x)
name(jax.vjp(lambda x: (x, x), x)[1], x)
name(jax.numpy_dtype_promotion("strict")(jnp.add), x, 1 > jnp.arange(3))
name(jax.custom_vjp(lambda x: x), x)
name(jax.jit(lambda x: jax.pure_callback(fail, x, x)), x)
name(jax.jit(jnp.sin, compiler_options={"no_option_of_xla": 1}), x)
with jax.set_mesh(jax.make_mesh((1,), ("i",))):
    name(jax.lax.with_sharding_constraint, jax.device_put(x, jax.P("i")), jax.P())
try:
    jax.pure_callback(fail, x, x)
except jax.errors.JaxRuntimeError as error:
    print(type(error.__cause__).__name__)
fail(x)
"""


ERRORS_BY_FUNCTION = """
import jax, jax.numpy as jnp

x, n = jnp.ones((2, 3)), jnp.ones(3)
for f in (
    lambda: x @ x,
    lambda: x + jnp.ones((2, 2)),
    lambda: jnp.add(x, jnp.ones(4)),
    lambda: jnp.concatenate([x, n]),
    lambda: jnp.concatenate([]),
    lambda: x.reshape(4),
    lambda: jnp.linalg.inv(x),
    lambda: bool(x),
    lambda: jnp.einsum("ij,jk", x, x),
    lambda: jnp.asarray(None),
    lambda: jnp.sin(None),
    lambda: jax.vmap(jnp.sin, in_axes=(0, 0))(n),
    lambda: jax.vmap(jnp.sin, in_axes="x")(n),
    lambda: jax.lax.scan(lambda c, _: (n, None), 1.0, n),
    lambda: jax.jit(jnp.zeros)(3),
    lambda: jax.jit(jnp.arange)(3),
    lambda: jax.jit(lambda i: [1, 2][i])(1),
    lambda: jax.jit(lambda k: jax.nn.one_hot(n, k))(3),
    lambda: jax.jit(lambda x: f"{x:.2f}")(1.0),
    lambda: jax.jit(lambda x: x.at[x > 0].set(n))(n),
    lambda: jax.grad(lambda x: jax.pure_callback(lambda x: x, x, x))(1.0),
    lambda: jax.random.uniform(jax.random.key(0), (2,), int),
):
    try:
        f()
    except Exception as error:
        print(type(error).__name__)
try:
    x @ x
except (jax.errors.JAXTypeError, ValueError) as error:
    print(isinstance(error, TypeError))
"""


def test_errors_have_the_names_that_jax_gives_them_in_the_function():
    names = "TypeError TypeError ValueError TypeError ValueError TypeError ValueError ValueError ValueError ValueError "
    names += "TypeError ValueError TypeError TypeError TypeError ConcretizationTypeError TracerIntegerConversionError "
    names += "ConcretizationTypeError TypeError NonConcreteBooleanIndexError ValueError ValueError True"
    assert as_jax("-c", ERRORS_BY_FUNCTION).stdout.split() == names.split()


def test_errors_have_the_names_of_those_of_jax():
    done = as_jax("-c", ERRORS)
    names = "TypeError ValueError ValueError TypeError TypeError ValueError TypeError TypeError TypeError "
    names += "IndexError IndexError IndexError IndexError TypeError TypeError TypeError TypeError ValueError "
    names += "TypePromotionError AttributeError JaxRuntimeError JaxRuntimeError AssertionError"
    assert done.stdout.split() == [*names.split(), "TypeError"]
    assert "phlox.errors.ShapeError: matmul" in done.stderr or "phlox.errors.ShapeError: dot_general" in done.stderr
