"""Names that phlox does not have: the error says what was meant, or where the name is."""

import importlib
import pickle
import subprocess
import sys

import pytest

import phlox
import phlox.numpy as jnp
import phlox.scipy.linalg
from phlox import errors
from phlox._base import absent
from public_modules import public_modules

MISSPELT = {
    "phlox.jitt": "jit", "phlox.garad": "grad", "phlox.numpy.onez": "ones", "phlox.numpy.argmaxx": "argmax",
    "phlox.numpy.Linspace": "linspace", "phlox.lax.scann": "scan", "phlox.random.norml": "normal",
    "phlox.nn.reluu": "relu", "phlox.tree.mapp": "map", "phlox.numpy.linalg.slove": "solve",
    "phlox.scipy.special.gamaln": "gammaln", "phlox.sharding.NamedShrding": "NamedSharding",
    "phlox.sin": "phlox.numpy.sin", "phlox.numpy.softmax": "phlox.nn.softmax", "phlox.numpy.scan": "phlox.lax.scan",
    "phlox.numpy.norm": "phlox.numpy.linalg.norm",
}  # fmt: skip


@pytest.mark.parametrize("name", MISSPELT)
def test_misspelt_names(name):
    module, _, last = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"has no attribute '{last}'") as caught:
        getattr(importlib.import_module(module), last)
    assert f"Did you mean: '{MISSPELT[name]}'?" in str(caught.value)
    assert caught.value.where.file == __file__
    with pytest.raises(ImportError, match=f"Did you mean: '{MISSPELT[name]}'"):
        exec(f"from {module} import {last}")


@pytest.mark.parametrize("name", [name for name in public_modules("core") if "__main__" not in name])
def test_every_public_module_suggests(name):
    module = importlib.import_module(name)
    names = [n for n in dir(module) if n.islower() and len(n) > 5 and n.isalpha()]
    if not names:
        return
    with pytest.raises(AttributeError) as caught:
        getattr(module, names[0] + "q")
    assert "Did you mean" in str(caught.value) or "the program uses" in str(caught.value), str(caught.value)
    with pytest.raises(AttributeError, match="has no attribute '_nothing'"):
        _ = module._nothing


ELSEWHERE = {
    "phlox.scipy.linalg.lstsq": "phlox.numpy.linalg.lstsq",
    "phlox.scipy.integrate.solve_ivp": "diffrax",
    "phlox.scipy.optimize.curve_fit": "phlox.scipy.optimize.minimize",
    "phlox.scipy.signal.find_peaks": "scipy.signal.find_peaks",
    "phlox.scipy.spatial.KDTree": "scipy.spatial.KDTree",
    "phlox.scipy.stats.ttest_ind": "scipy.stats.ttest_ind",
    "phlox.scipy.io": "scipy.io",
    "phlox.numpy.loadtxt": "phlox.numpy.asarray(np.loadtxt(...))",
    "phlox.numpy.random": "phlox.random",
    "phlox.random.seed": "phlox.random.key(0)",
    "phlox.numpy.busday_count": "np.busday_count",
    "phlox.experimental.pallas": "phlox.ffi",
    "phlox.experimental.custom_partitioning": "phlox.shard_map",
    "phlox.experimental.compute_on": "phlox.pure_callback",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_names_that_are_elsewhere(name):
    module, _, last = name.rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), last)
    assert ELSEWHERE[name] in caught.value.instead
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {last}")
    assert ELSEWHERE[name] in caught.value.instead


def test_modules_that_are_not_there():
    for module in ("pallas", "pallas.tpu", "compute_on", "custom_partitioning", "jax2tf"):
        with pytest.raises(ModuleNotFoundError, match=f"phlox.experimental.{module.partition('.')[0]}") as caught:
            importlib.import_module(f"phlox.experimental.{module}")
        reason, instead = absent.reason(f"jax.experimental.{module}")
        assert reason in caught.value.what, "without `as_jax` as with it"
        assert instead.replace("jax.", "phlox.") == caught.value.instead
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("phlox.experimental.nothing")
    assert importlib.util.find_spec("phlox.nothing") is None


def test_the_table_has_no_names_that_are_there():
    import jax

    for name in absent._elsewhere():
        module, _, last = name.rpartition(".")
        for root in ("phlox", "jax"):
            try:
                home = importlib.import_module(root + module.removeprefix("jax"))
            except ImportError:
                continue
            assert not hasattr(home, last), f"{root} has {name}"
    assert jax.__version__


def test_python_adds_no_suggestion_of_its_own():
    run = subprocess.run(
        [sys.executable, "-c", "import phlox\nphlox.jitt"], capture_output=True, text=True, check=False
    )
    assert run.stderr.count("Did you mean") == 1, run.stderr


def test_errors_about_names_can_be_pickled():
    with pytest.raises(errors.UnknownNameError) as caught:
        _ = jnp.onez
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.what == caught.value.what
    assert (again.module, again.name) == ("phlox.numpy", "onez")
    assert not hasattr(jnp, "onez")
    assert getattr(phlox, "onez", 3) == 3
