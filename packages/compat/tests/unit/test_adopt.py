"""Private copies of libraries: what they import, that they can be pickled, and what they say of names that phlox lacks."""

import dataclasses
import gc
import importlib
import inspect
import pickle
import sys

import pytest

import phlox
import phlox.numpy as jnp
from phlox.as_jax import _copies
from phlox.errors import AdoptionError, MissingImportError, MissingNameError

PART = """\
import gc
collects = gc.isenabled()
import importlib
import jax
import jax.numpy as jnp
import jax.not_there.deeper as deeper
from jax.lax import never_heard_of
from jax.core import Tracer
import dataclasses


@jax.not_a_decorator
def f(x: jax.NoType = deeper.default): return x


def g(x): return jax.lax.not_a_function(x)


@dataclasses.dataclass
class Point:
    x: object

    def square(self): return jnp.square(self.x)


def late():
    from jax import nn
    return nn, importlib.import_module("jax.nn"), importlib.import_module("adopted_b")


class Derived(jax.NoClass):
    pass


has = hasattr(jax, "not_there_either")
try:
    from jax import not_there_at_all
except ImportError:
    not_there_at_all = None
try:
    import jax.experimental.mosaic
    mosaic = True
except ImportError:
    mosaic = False


class Named:
    own = __module__ == "adopted_a.inner.part"
    documented = "adopted_a.inner.part is its module"
"""


#: distributions, and what they say about jax
NEEDED = {
    "on_jax": "Requires-Dist: numpy\nRequires-Dist: jax>=0.4",
    "on_jax_in_brackets": "Requires-Dist: jax (>=0.4)",
    "with_jax_as_an_extra": "Requires-Dist: jax>=0.4; extra == 'jax'",
    "on_jaxtyping": "Requires-Dist: jaxtyping",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "adopted_a" / "inner").mkdir(parents=True)
    (folder / "adopted_a" / "__init__.py").write_text("from adopted_a.inner.part import *\nimport adopted_b\n")
    (folder / "adopted_a" / "inner" / "part.py").write_text(PART)
    (folder / "adopted_b.py").write_text("import jax.numpy\nimport adopted_a\none = jax.numpy.ones(1)\n")
    (folder / "wrong.py").write_text("\n\n1 / 0")
    (folder / "list.txt").write_text("adopted_a  # a comment\n\nadopted_b\n")
    for name, needed in NEEDED.items():
        (folder / f"{name}-1.0.dist-info").mkdir()
        (folder / f"{name}-1.0.dist-info" / "METADATA").write_text(f"Name: {name}\n{needed}\n\njax is a library.\n")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield phlox.adopt("adopted_a", "adopted_b")
    sys.path.remove(str(folder))


def test_copies_run_on_phlox_and_see_each_other(library):
    a, b = library
    assert isinstance(b.one, phlox.Array)
    assert a.adopted_b is b and b.adopted_a is a
    assert b.jax.numpy.sin is phlox.numpy.sin
    assert not {"adopted_a", "adopted_b"} & set(sys.modules), "the libraries themselves are not imported"
    assert a.Tracer is phlox.core.Tracer


def test_no_garbage_is_collected_while_a_copy_is_loaded(library):
    assert not library[0].collects and gc.isenabled()


def test_imports_inside_of_functions(library):
    a, b = library
    nn, again, other = a.late()
    assert nn is again and nn.relu is phlox.nn.relu
    assert other is b


def test_classes_are_pickled_and_functions_inspected(library):
    a, _ = library
    point = pickle.loads(pickle.dumps(a.Point(jnp.float32(3))))
    assert type(point) is a.Point and float(point.square()) == 9
    assert dataclasses.replace(point, x=jnp.float32(2)).square() == 4
    assert a.Point.__module__ == "phlox.adopted.adopted_a.inner.part"
    assert inspect.getsource(a.g).startswith("def g(x): return jax.lax")


def test_modules_that_compare_their_own_names(library):
    a, _ = library
    assert a.Named.own and a.Named.documented.startswith("adopted_a.inner.part is")


def test_which_libraries_are_copied(library, monkeypatch):
    """Also while another library has its own ``__import__`` in place, as etils does."""

    def refuse(*args, **kwargs):
        raise ImportError

    with monkeypatch.context() as patch:
        patch.setattr("builtins.__import__", refuse)
        copied = [_copies.is_copied(name) for name in (*NEEDED, "jmp", "numpy", "no_such_library")]
    assert copied == [True, True, False, False, True, False, False]


def test_a_list_in_a_file(library, tmp_path):
    folder = sys.path[0]
    assert phlox.adopt(f"{folder}/list.txt") == library


def test_names_that_phlox_lacks_raise_where_they_are_used(library):
    a, _ = library
    for use, name, line in [
        (lambda: a.g(1), "jax.lax.not_a_function", 16),
        (lambda: a.never_heard_of(1), "jax.lax.never_heard_of", None),
        (lambda: a.deeper.anything, "jax.not_there.deeper.anything", None),
        (lambda: a.Derived(), "jax.NoClass", None),
    ]:
        with pytest.raises(MissingNameError) as caught:
            use()
        assert caught.value.jax_name == name
        assert name in str(caught.value)
        if line:
            assert caught.value.library == "adopted_a"
            assert caught.value.where.line == line


def test_a_library_that_asks_gets_an_answer(library):
    a, _ = library
    assert a.has is False and a.not_there_at_all is None and a.mosaic is False


def test_missing_modules_say_what_to_use(library):
    with pytest.raises(MissingImportError, match=r"instead: operations of jax\.lax") as caught:
        importlib.import_module("phlox.adopted.jax.experimental.mosaic")
    assert caught.value.jax_name == "jax.experimental.mosaic"
    assert isinstance(caught.value, ModuleNotFoundError)


def test_libraries_that_are_not_installed():
    with pytest.raises(AdoptionError, match="no library 'no_such_library'") as caught:
        phlox.adopt("no_such_library")
    assert caught.value.library == "no_such_library"
    assert not _copies.is_copied("no_such_library")


def test_the_file_says_what_went_wrong(library):
    with pytest.raises(ZeroDivisionError) as caught:
        phlox.adopt("wrong")
    last = caught.traceback[-1]
    assert (str(last.path).endswith("wrong.py"), last.lineno + 1) == (True, 3)


def test_import_statements_find_copies(library):
    from phlox.adopted import adopted_a
    from phlox_compat.adopted import adopted_a as same

    assert adopted_a is same and adopted_a.__name__ == "phlox.adopted.adopted_a"
    with pytest.raises(AdoptionError, match="there is no library 'no_such_library'"):
        from phlox.adopted import no_such_library  # noqa: F401
