"""The catalogue, and every program in it, in small. Those that need PyTorch or TensorFlow are in folders of their own."""

import importlib.util
import subprocess
import sys

import pytest

from example_runs import check_quick_run, programs
from phlox_examples.catalogue import PROGRAMS
from phlox_examples.options import listing, parse, settings_of


@pytest.mark.parametrize("name", programs())
def test_a_quick_run(name, tmp_path, capsys):
    check_quick_run(name, tmp_path, capsys)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_row(name):
    program = PROGRAMS[name]
    assert importlib.util.find_spec(f"phlox_examples.{program.module}")
    assert program.name == name and 0 < program.seconds < 120
    assert len(program.shows) <= 90 and program.shows[-1] != "."
    usual, quick = parse([name]), parse([name, "--quick"])
    assert quick.quick and not usual.quick
    assert set(settings_of(usual)) <= set(vars(usual)) - {"out", "quick", "program"}
    for option in program.options:
        value = getattr(quick, option.name[2:].replace("-", "_"))
        assert value == (option.default if option.quick is None else option.quick)
        if option.quick is not None and not option.many:
            chosen = parse([name, "--quick", option.name, str(option.default)])
            assert getattr(chosen, option.name[2:].replace("-", "_")) == option.default


def test_the_list(capsys):
    with pytest.raises(SystemExit) as stop:
        parse(["--list"])
    assert stop.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert "\n".join(lines) == listing()
    for line, program in zip(lines, PROGRAMS.values(), strict=True):
        needs = f" [needs {program.needs[0]}]" if program.needs else ""
        assert line.split(maxsplit=3) == [program.name, str(program.seconds), "s", program.shows + needs]
    assert sum("[needs torch]" in line for line in lines) == len(programs("torch")) > 0


def test_optional_libraries_are_not_imported_for_the_others():
    code = "import sys; from phlox_examples.cli import main; main(['selu-mlp', '--loader', 'none']); "
    code += "print(sorted({'torch', 'tensorflow', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"
