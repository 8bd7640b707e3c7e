"""No source file is longer than what one reads in a sitting. Docstrings, which one reads by function, are counted apart."""

import ast
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LONGEST = 600


def lines_without_docstrings(text: str) -> int:
    lines = len(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, clean=False) is not None:
            lines -= node.body[0].end_lineno - node.body[0].lineno + 1
    return lines


def test_no_source_file_is_too_long():
    files = sorted(REPOSITORY.glob("packages/*/src/**/*.py"))
    assert files, f"there are no sources under {REPOSITORY}/packages"
    lengths = {file: lines_without_docstrings(file.read_text()) for file in files}
    too_long = [
        f"{file.relative_to(REPOSITORY)}: {length} lines" for file, length in lengths.items() if length > LONGEST
    ]
    assert not too_long, f"longer than {LONGEST} lines:\n" + "\n".join(too_long)
