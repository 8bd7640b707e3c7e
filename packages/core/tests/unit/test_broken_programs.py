"""Recordings name the guilty line of programs with one mistake, in the first line that an answer prints."""

import inspect
import re

import pytest

import broken_programs


def guilty_line(case):
    lines, start = inspect.getsourcelines(case)
    (number,) = [start + i for i, line in enumerate(lines) if "# guilty" in line]
    return number


@pytest.mark.parametrize("name", broken_programs.CASES)
def test_the_answer_names_the_line(name):
    case = broken_programs.CASES[name]
    first = str(case()).splitlines()[0]
    assert re.search(rf"broken_programs.py:{guilty_line(case)}\b", first), first
