"""The code of pages in Markdown: what runs, and what a page says comes out of it.

A block ```python runs. A block ```text right after it is what the code prints: white space counts once, ``...`` stands
for anything. If it begins with the name of an error, the code raises this error, with a message that begins so. A block
with ``>>>`` is a doctest. All blocks of a page share their names, in the order of the page.
"""

import contextlib
import doctest
import io
import re
import sys
import traceback
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL)
ERROR = re.compile(r"\s*(?P<name>[\w.]*(Error|Exception|Exit))\b(:\s*(?P<message>.*))?", re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


class Piece(NamedTuple):
    """A stretch of text, or a block of code with what it is said to print."""

    line: int
    text: str
    code: bool
    prints: str | None


def pieces(page: str) -> list[Piece]:
    """The page as text and code, in order. Blocks in other languages than python are text."""
    found: list[Piece] = []
    start = 0
    blocks = list(BLOCK.finditer(page))
    for number, block in enumerate(blocks):
        if block["language"] != "python":
            continue
        if text := page[start : block.start()].strip():
            found.append(Piece(page.count("\n", 0, start) + 1, text, False, None))
        start = block.end()
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        prints = None
        if following and following["language"] == "text" and not page[start : following.start()].strip():
            prints, start = following["code"], following.end()
        found.append(Piece(page.count("\n", 0, block.start()) + 1, block["code"], True, prints))
    if text := page[start:].strip():
        found.append(Piece(page.count("\n", 0, start) + 1, text, False, None))
    return found


def mismatch(piece: Piece, printed: str, error: tuple[str, str] | None) -> str:
    """What is wrong with the outcome of a block, or an empty string; `error` is the name and the message."""
    wanted = ERROR.fullmatch(piece.prints or "")
    if error:
        name, message = error
        if not wanted:
            return f"raises {name}: {message}"
        if wanted["name"].split(".")[-1] != name.split(".")[-1]:
            return f"raises {name}: {message}\nbut the page says {wanted['name']}"
        begins = (wanted["message"] or "").removesuffix("\n").removesuffix("...")
        return "" if " ".join(message.split()).startswith(" ".join(begins.split())) else f"the message is: {message}"
    if wanted:
        return f"raises nothing, but the page says {wanted['name']}"
    if piece.prints is None or same(piece.prints, printed):
        return ""
    return f"prints\n{printed}\nbut the page says\n{piece.prints}"


def same(wanted: str, printed: str) -> bool:
    """Whether the text is what the page shows."""
    return doctest.OutputChecker().check_output(wanted, printed, FLAGS)


def run(file: Path) -> str:
    """Runs the code of a page in this process; returns a report of what failed."""
    names: dict[str, object] = {"__name__": "__main__"}
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    for piece in pieces(file.read_text()):
        if not piece.code:
            continue
        if ">>>" in piece.text:
            test = doctest.DocTestParser().get_doctest(piece.text, {}, file.name, str(file), piece.line)
            test.globs = names  # the parser made a copy
            runner.run(test, out=report.append, clear_globs=False)
            continue
        printed, error = io.StringIO(), None
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * piece.line + piece.text, str(file), "exec"), names)
        except Exception as caught:
            error = (type(caught).__name__, str(caught))
            if not ERROR.fullmatch(piece.prints or ""):
                report.append(traceback.format_exc())
        if wrong := mismatch(piece, printed.getvalue(), error):
            report.append(f"{file}:{piece.line}: {wrong}\n")
    return "".join(report)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1])) or None)
