"""The table of forms for CPUs agrees with the modules that have them."""

import importlib

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox._ops import all_primitives, cpu


def test_the_table_names_the_modules_that_have_forms():
    primitives = all_primitives()
    modules = {name for rows in cpu.TABLE.values() for name in rows.modules}
    forms = {name: importlib.import_module(f"{cpu.__name__}.{name}").FORMS for name in modules}
    by_module = {name: {primitive.name for primitive in rows} for name, rows in forms.items()}
    assert by_module == {
        module: {name for name, rows in cpu.TABLE.items() if module in rows.modules} for module in modules
    }
    assert all(form.gain for rows in forms.values() for each in rows.values() for form in each)
    assert all(primitive is primitives[primitive.name] for rows in forms.values() for primitive in rows)


def test_small_programs_have_the_portable_rule():
    assert "func.call" not in phlox.jit(jnp.sin).lower(jnp.ones(1023)).as_text()
    assert "func.call" in phlox.jit(jnp.sin).lower(jnp.ones(1024)).as_text()


def test_a_primitive_of_a_user_has_no_forms():
    from phlox.extend import Primitive

    mine = Primitive("sin", types=lambda x: x, lower=lambda f, x: f.same("stablehlo.negate", x))
    np.testing.assert_array_equal(phlox.jit(mine.bind)(jnp.ones(2000)), -np.ones(2000))
