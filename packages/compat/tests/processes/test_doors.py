"""The modules of phlox that phlox-compat has: with it they are its modules, without it errors say what to install."""

import json

from compat_processes import BOTH, CORE
from core_processes import run

DOORS = [
    "adopted",
    "api_util",
    "as_jax",
    "example_libraries",
    "interpreters",
    "experimental.buffer_callback",
    "experimental.compilation_cache",
    "experimental.mesh_utils",
    "experimental.pjit",
    "experimental.rnn",
    "experimental.shard_map",
]


def test_doors_lead_to_the_modules_of_compat():
    out = run(
        f"""
        import importlib, sys
        import phlox
        before = [name for name in sys.modules if name.startswith("phlox_compat")]
        for door in {DOORS}:
            module = importlib.import_module("phlox." + door)
            assert module is importlib.import_module("phlox_compat." + door), door
        import phlox.interpreters.ad, phlox.example_libraries.stax
        import phlox_compat.interpreters.ad, phlox_compat.example_libraries.stax
        assert phlox.interpreters.ad is phlox_compat.interpreters.ad
        assert phlox.example_libraries.stax is phlox_compat.example_libraries.stax
        assert phlox.adopt is phlox_compat.as_jax.adopt
        print(before)
        """,
        PYTHONPATH=BOTH,
    )
    assert out.stdout == "[]\n"


WITHOUT = """
    import importlib, json, sys
    import phlox
    from phlox.errors import MissingImportError, MissingNameError

    said = []
    for door in json.loads(sys.stdin.read()):
        for statement in (f"import phlox.{door}", f"import phlox.{door}.deeper"):
            try:
                exec(statement)
            except MissingImportError as error:
                said.append((error.what.split(" ")[0], error.instead, error.jax_name))
    assert not hasattr(phlox, "adopt") and not hasattr(phlox, "interpreters")
    try:
        phlox.adopt
    except MissingNameError as error:
        said.append((error.what.split(" ")[0], error.instead, error.jax_name))
    for statement in ("from phlox import interpreters", "from phlox.experimental import pjit"):
        try:
            exec(statement)
        except MissingImportError as error:
            said.append((error.what.split(" ")[0], error.instead, error.jax_name))
    print(json.dumps(said))
"""


def test_without_compat_they_say_what_to_install():
    out = run(WITHOUT.replace("json.loads(sys.stdin.read())", repr(DOORS)), PYTHONPATH=CORE)
    doors = [*(door for door in DOORS for _ in range(2)), "adopt", "interpreters", "experimental.pjit"]
    expected = [[f"phlox.{door}", "pip install phlox-compat", f"jax.{door}"] for door in doors]
    assert json.loads(out.stdout) == expected


def test_the_command_says_what_to_install():
    out = run("import runpy; runpy.run_module('phlox.as_jax', run_name='__main__')", check=False, PYTHONPATH=CORE)
    assert out.returncode == 1
    assert out.stderr.endswith("instead: pip install phlox-compat\n")
