"""Every block of code on the pages runs and prints what the page says; the tutorial's steps run as notebooks too."""

import ast
import codeop
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import pytest

import pages
import phlox

REPOSITORY = pages.REPOSITORY
TUTORIAL = sorted((REPOSITORY / "docs" / "tutorial").glob("*.md"))
#: Followed by hand in a copy of core: test_new_primitive.py.
ELSEWHERE = {REPOSITORY / "docs" / "new-primitive.md"}
WITH_CODE = [
    page
    for page in (
        REPOSITORY / "README.md",
        REPOSITORY / "packages/core/README.md",
        *sorted(REPOSITORY.glob("docs/**/*.md")),
    )
    if any(piece.code for piece in pages.pieces(page.read_text())) and page not in ELSEWHERE
]


def name_of(page):
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", [page for page in WITH_CODE if page not in TUTORIAL], ids=name_of)
def test_code_runs(page, tmp_path):
    # In a process of its own, as a reader would: some pages ask for several devices or state primitives.
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "tests" / "pages.py"), str(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def notebooks():
    """The script, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("notebooks", REPOSITORY / "scripts" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", TUTORIAL, ids=name_of)
def test_notebook_runs(page, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = notebooks().notebook(page)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    code = [piece for piece in pages.pieces(page.read_text()) if piece.code]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for piece, cell in zip(code, cells, strict=True):
        printed = "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")
        errors = [(out.ename, out.evalue) for out in cell.outputs if out.output_type == "error"]
        wrong = pages.mismatch(piece, printed, errors[0] if errors else None)
        assert not wrong, f"{name_of(page)}:{piece.line}: {wrong}"


TYPED = [REPOSITORY / path for path in ("README.md", "docs/index.md", "docs/from/jax.md", "docs/from/numpy.md")]


@pytest.mark.parametrize("page", [*TYPED, *TUTORIAL], ids=name_of)
def test_code_can_be_typed_into_python(page):
    """There an empty line ends a block, and nothing else does."""
    for piece in pages.pieces(page.read_text()):
        lines = []
        for line in [*piece.text.splitlines(), ""] if piece.code else ():
            lines.append(line)
            if codeop.compile_command("\n".join(lines)) is not None:
                lines = []
        assert not lines, f"{name_of(page)}:{piece.line}"


def test_the_front_pages_are_in_the_navigation():
    text = (REPOSITORY / "mkdocs.yml").read_text()
    guides = text[text.index("- Guides:") : text.index("- Coming from:")]
    wanted = ("training", "data", "devices", "performance", "debugging", "extending", "sharp-bits")
    assert [name for name in wanted if f"{name}.md" not in guides] == []


def test_the_tutorial_has_ten_steps():
    assert [page.name[:2] for page in TUTORIAL] == [f"{step:02}" for step in range(1, 11)]
    assert all(page.read_text().count(".svg)") for page in TUTORIAL[:9])


PRINTS = "```python\nprint(1)\n```\n\n```text\n{}\n```\n"
RAISES = "```python\n1 / 0\n```\n\n```text\n{}\n```\n"


@pytest.mark.parametrize(
    "page, right",
    [
        (PRINTS.format("1"), True),
        (PRINTS.format("2"), False),
        (PRINTS.format("ValueError: 1"), False),
        (RAISES.format("ZeroDivisionError: division..."), True),
        (RAISES.format("ZeroDivisionError: multiplication"), False),
        (RAISES.format("ValueError: division"), False),
        ("```python\n>>> 1 + 1\n3\n```\n", False),
        ("```python\n1 / 0\n```\n", False),
    ],
)
def test_a_wrong_page_is_found(page, right, tmp_path):
    file = tmp_path / "page.md"
    file.write_text(page)
    assert (not pages.run(file)) == right


def test_settings_are_flags():
    named = set(re.findall(r"`PHLOX_([A-Z0-9_]+)`", (REPOSITORY / "docs" / "settings.md").read_text())) - {"NAME"}
    assert len(named) > 15
    assert {name.lower() for name in named} <= set(phlox.config.flags())


LINK = re.compile(r"\]\((?!https?:|#|attachment:)([^)#\s]+)[^)]*\)")


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "tests/README.md"])
def test_links_lead_somewhere(page):
    text = (REPOSITORY / page).read_text()
    for target in LINK.findall(text):
        assert ((REPOSITORY / page).parent / target).exists(), target


@pytest.mark.parametrize("page", sorted(REPOSITORY.glob("packages/*/README.md")), ids=name_of)
def test_long_descriptions_of_wheels_stand_alone(page):
    assert not LINK.findall(page.read_text()), "a relative link leads nowhere outside of the repository"


def test_all_pages_are_in_the_navigation():
    listed = (REPOSITORY / "mkdocs.yml").read_text()
    found = [page.relative_to(REPOSITORY / "docs") for page in sorted(REPOSITORY.glob("docs/**/*.md"))]
    assert not [str(page) for page in found if not re.search(rf"\s{re.escape(str(page))}$", listed, re.MULTILINE)]


def test_pictures_are_small():
    files = sorted(Path(REPOSITORY / "docs" / "pictures").glob("*.svg"))
    assert not [file.name for file in files if file.stat().st_size > 60_000]


@pytest.mark.parametrize("page", TUTORIAL, ids=name_of)
def test_each_step_ends_with_two_exercises(page):
    exercises = page.read_text().partition("## Exercises\n")[2]
    assert re.findall(r"^(\d)\. ", exercises, re.MULTILINE) == ["1", "2"]
    answers = re.search(
        r'^<details markdown="1">\n<summary>Answers</summary>\n(.*)^</details>$', exercises, re.DOTALL | re.M
    )
    assert answers[1].count("```python\n") == 2


def test_answers_are_collapsed_in_notebooks():
    cells = notebooks().notebook(TUTORIAL[0]).cells
    collapsed = [cell for cell in cells if cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert [cell.cell_type for cell in collapsed] == ["code", "code"]
    assert not any("details" in cell.source for cell in cells)


def test_words_for_the_search_are_those_of_pages():
    tree = ast.parse((REPOSITORY / "scripts" / "docs_reference.py").read_text())
    (words,) = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "WORDS"]
    named = set(ast.literal_eval(words))
    assert {page for page in named if not page.startswith("api/")} <= {
        str(page.relative_to(REPOSITORY / "docs")) for page in REPOSITORY.glob("docs/**/*.md")
    }
