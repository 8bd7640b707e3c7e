"""docs/tour.md and other pages hold: their quotations are in the files, the names they give exist. The tour is short.

In the tour, a block ```py is quoted from the file that its first line names; `path.py:Name`
means a definition in that file.
"""

import ast
import os
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TOUR = REPOSITORY / "docs" / "tour.md"
OTHERS = [
    REPOSITORY / path
    for path in ("README.md", "packages/core/README.md", "docs/from-nothing.md", "docs/random-programs.md")
]
FOLDERS = ("packages", "tests", "docs", "scripts", "3rdparty", "benchmarks")


def blocks(text, language):
    """(line number, content) of the fenced blocks in this language."""
    for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, found[1]


def quotations():
    for line, block in blocks(TOUR.read_text(), "py"):
        head, _, quoted = block.partition("\n")
        yield pytest.param(head.removeprefix("# "), quoted, id=f"line-{line}")


def normal(text):
    """The lines without indentation: quotations may begin deep inside a function."""
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("path, quoted", list(quotations()))
def test_quotations_are_in_the_file(path, quoted):
    lines = normal((REPOSITORY / path).read_text())
    start = 0
    for piece in re.split(r"^\.\.\.\n", quoted, flags=re.MULTILINE):
        wanted = normal(piece)
        places = [i for i in range(start, len(lines)) if lines[i : i + len(wanted)] == wanted]
        assert places, f"{path} no longer has, at this place:\n{piece}"
        start = places[0] + len(wanted)


def references():
    """(path, name or "") of what stands in backticks on the pages and begins like a path of the repository, and of links."""
    found = set()
    for page in (TOUR, *OTHERS):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for path, name in re.findall(r"`([\w.\-/]+)(?::([\w.]+))?`", text):
            if path.split("/")[0] in FOLDERS and "/" in path:
                found.add((path, name))
        for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            found.add((os.path.relpath(page.parent / path, REPOSITORY), ""))
    return sorted(found)


@pytest.mark.parametrize("path, name", references())
def test_files_and_names_exist(path, name):
    file = REPOSITORY / path
    parts = Path(path).parts
    if parts[0] == "packages" and "tests" in parts and not (REPOSITORY / Path(*parts[:4])).exists():
        pytest.skip("the tests of packages are not in the sandbox of this test")
    assert file.exists(), f"there is no {path}"
    if name:
        assert defines(ast.parse(file.read_text()), name.split(".")), f"{path} defines no {name}"


def defines(scope, names):
    """Whether `names`, outermost first, lead to a definition in this module, class or function."""
    for node in scope.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == names[0]:
            if len(names) == 1 or defines(node, names[1:]):
                return True
        elif isinstance(node, ast.Assign | ast.AnnAssign) and len(names) == 1:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == names[0] for t in targets):
                return True
    return False


def test_the_pages_name_functions():
    named = [name for _, name in references() if name]
    assert len(named) > 30, f"`path.py:Name` was found only {len(named)} times: does the pattern still fit?"


def test_the_map_of_the_tour_is_short():
    """Its map, the rows of the tables "read | what it is", has at most 20 files and 5,000 lines."""
    tables = re.findall(r"^\| read \|.*\n\|.*\n((?:\|.*\n)+)", TOUR.read_text(), re.MULTILINE)
    rows = "".join(tables).splitlines()
    files = {re.match(r"\| `([\w/.\-]+\.py):\w+` \|", row)[1] for row in rows}
    assert len(files) == len(rows) <= 20
    lines = sum(len((REPOSITORY / file).read_text().splitlines()) for file in files)
    assert 2500 < lines <= 5000
