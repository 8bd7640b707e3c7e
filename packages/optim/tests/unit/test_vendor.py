"""The private copy: how imports are rewritten, what the facade says of missing names, and where modules are found."""

import ast
import importlib
import inspect
import sys
import types

import optax
import pytest

import phlox
import phlox_optim
from phlox_optim._vendor import facade, rewrite
from phlox_optim._vendor.finder import Finder
from phlox_optim.errors import MissingNameError

P = "phlox_optim._vendor"


@pytest.mark.parametrize(
    "before, after",
    [
        ("import jax", f"import {P}.jax as jax"),
        ("import jax as j, os", f"import {P}.jax as j\nimport os"),
        ("import jax.numpy as jnp", f"import {P}.jax.numpy as jnp"),
        ("import jax.scipy.special", f"import {P}.jax.scipy.special\nimport {P}.jax as jax"),
        ("import optax.tree", f"import {P}.optax.tree\nimport {P}.optax as optax"),
        ("from jax import lax, nn as n", f"from {P}.jax import lax, nn as n"),
        ("from optax._src import base", f"from {P}.optax._src import base"),
        ("from jax.numpy import *", f"from {P}.jax.numpy import *"),
        ("def f():\n    import jax", f"def f():\n    import {P}.jax as jax"),
        ("from . import jax", "from . import jax"),
        ("from .jax import x", "from .jax import x"),
        ("import jaxlib, numpy.linalg, optaxx", "import jaxlib\nimport numpy.linalg\nimport optaxx"),
        ("from jaxtyping import Float", "from jaxtyping import Float"),
        ("x = 'import jax'", "x = 'import jax'"),
    ],
)
def test_imports_are_rewritten(before, after):
    assert ast.unparse(rewrite.rewritten(before)) == after


def test_lines_stay_where_they_are():
    tree = rewrite.rewritten("import jax, os\n\nimport jax.numpy as jnp\nx = jnp.pi\n")
    assert [node.lineno for node in tree.body] == [1, 1, 3, 4]
    copy = phlox_optim.GradientTransformation
    assert inspect.getsource(copy) == inspect.getsource(optax.GradientTransformation)
    assert inspect.getsourcelines(copy)[1] == inspect.getsourcelines(optax.GradientTransformation)[1]


def test_no_module_of_the_copy_holds_jax_or_optax():
    """Every global that is a module, class or function comes from the copy, phlox, or a third package."""
    names = [name for name in sys.modules if name.startswith(f"{P}.optax")]
    assert len(names) > 60
    for name in names:
        for entry, value in vars(sys.modules[name]).items():
            home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
            root = str(home).partition(".")[0]
            assert root not in ("jax", "optax", "jaxlib"), f"{name}.{entry} comes from {home}"


def test_the_copy_writes_no_cache_of_the_public_package():
    module = sys.modules[f"{P}.optax"]
    assert module.__file__ == optax.__file__
    assert getattr(module, "__cached__", None) is None


def test_phlox_answers_under_jaxs_names():
    jax = importlib.import_module(f"{P}.jax")
    assert jax.numpy.sin is phlox.numpy.sin
    assert jax.scipy.stats.norm.cdf is phlox.scipy.stats.norm.cdf
    assert jax.Array is phlox.Array
    assert jax.__version__ == facade.REPLACED["jax.__version__"]
    assert jax.__name__ == f"{P}.jax" and sys.modules[jax.numpy.__name__] is jax.numpy


def test_missing_names_say_which():
    view = facade.View("view", "jax.lax", types.ModuleType("phlox.lax"))
    with pytest.raises(MissingNameError, match=r"needs jax.lax.cond, and phlox has no phlox.lax.cond yet") as excinfo:
        view.cond
    assert excinfo.value.jax_name == "jax.lax.cond"
    assert excinfo.value.where.file == __file__
    assert not hasattr(view, "cond"), "optax asks so whether jax has a function"
    assert getattr(view, "cond", 5) == 5
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{P}.jax.no_such_module")


def test_missing_names_do_not_stop_an_import():
    with facade.importing:
        view = facade.View("view", "jax.lax", None)
        decorator = view.custom_thing(option=3)
        function, annotation, part = decorator(lambda x: x), view.Precision | None, view.Precision.HIGHEST
        generic, union = view.Box[int], None | view.Precision
    uses = (
        lambda: function(1),
        lambda: part(),
        lambda: annotation.x,
        lambda: isinstance(1, annotation),
        lambda: generic[3],
        lambda: union | 3,
    )
    for use in uses:
        with pytest.raises(MissingNameError, match=r"jax\.lax\."):
            use()


@pytest.fixture
def stand_in(tmp_path):
    """A package found as the copy of optax, from files: `stand_in({"__init__.py": "...", ...})`. Undone afterwards."""
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(f"{P}.optax")}
    vars(sys.modules[P]).pop("optax", None)
    finder = Finder(str(tmp_path))

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.meta_path.insert(0, finder)
        return importlib.import_module(f"{P}.optax")

    yield make
    sys.meta_path.remove(finder)
    for name in list(sys.modules):
        if name.startswith(f"{P}.optax"):
            del sys.modules[name]
    sys.modules.update(real)
    vars(sys.modules[P]).pop("optax", None)
    if real:
        sys.modules[P].optax = real[f"{P}.optax"]


def test_a_copy_with_names_that_phlox_lacks(stand_in):
    module = stand_in(
        {
            "__init__.py": "from optax._src import part\nimport optax._src.part\nx = optax._src.part.fine(2)",
            "_src/part.py": (
                "import jax\nimport jax.not_there.deeper as deeper\nfrom jax.lax import never_heard_of\n"
                "@jax.not_a_decorator\ndef f(x: jax.NoType = deeper.default): return x\n"
                "def g(x): return jax.lax.not_a_function(x)\n"
                "def fine(x): return jax.numpy.square(x)\n"
            ),
        }
    )
    assert int(module.x) == 4
    assert module._src.part.__file__.endswith("part.py")
    for use, name in [
        (lambda: module.part.f(1), "jax.not_a_decorator"),
        (lambda: module.part.g(1), "jax.lax.not_a_function"),
        (lambda: module.part.never_heard_of(), "jax.lax.never_heard_of"),
        (lambda: module.part.deeper.anything, "jax.not_there.deeper.anything"),
    ]:
        with pytest.raises(MissingNameError) as excinfo:
            use()
        assert excinfo.value.jax_name == name


def test_a_module_that_is_not_there(stand_in):
    with pytest.raises(ModuleNotFoundError, match=f"{P}.optax.nothing"):
        stand_in({"__init__.py": "import optax.nothing"})


def test_the_file_says_what_went_wrong(stand_in):
    with pytest.raises(ZeroDivisionError) as excinfo:
        stand_in({"__init__.py": "\n\n1 / 0"})
    last = excinfo.traceback[-1]
    assert (str(last.path).endswith("__init__.py"), last.lineno + 1) == (True, 3)
    assert not facade.importing.depth
