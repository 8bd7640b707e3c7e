"""Writes the steps of the tutorial as notebooks: python scripts/notebooks.py FOLDER. Needs nbformat.

The pages in docs/tutorial are the only source; `tests/repository/test_pages.py` runs what this makes of them.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))
from pages import ERROR, pieces  # noqa: E402

#: The tags around answers, and the text of the summary. Cells cannot be inside of an element of HTML.
FOLD = re.compile(r"<details[^>]*>\n<summary>(.*?)</summary>|</details>")


def notebook(page: Path) -> nbformat.NotebookNode:
    """The page with its code as cells. Pictures are attachments of the text, because notebooks are copied alone.

    Cells with answers of exercises, in ``<details>``, are collapsed.
    """
    cells = []
    folded = False
    for number, piece in enumerate(pieces(page.read_text())):
        if piece.code:
            cell = nbformat.v4.new_code_cell(piece.text.rstrip())
            if ERROR.fullmatch(piece.prints or ""):
                cell.metadata["tags"] = ["raises-exception"]
            if folded:
                cell.metadata["jupyter"] = {"source_hidden": True}
        else:
            folded = piece.text.rfind("<details") > piece.text.rfind("</details") if "details" in piece.text else folded
            text, attachments = with_pictures(page, FOLD.sub(r"\1", piece.text))
            cell = nbformat.v4.new_markdown_cell(text)
            if attachments:
                cell["attachments"] = attachments
        cell["id"] = f"cell-{number}"  # the same at each run, where nbformat would draw one
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def with_pictures(page: Path, text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """The text with its pictures as attachments, and links to other pages as those to other notebooks."""
    attachments = {}
    for path in re.findall(r"\]\(([^)]+\.svg)\)", text):
        name = Path(path).name
        attachments[name] = {"image/svg+xml": (page.parent / path).read_text()}
        text = text.replace(f"]({path})", f"](attachment:{name})")
    text = text.replace("{ .picture }", "")
    return re.sub(r"\]\((\d\d-[\w-]+)\.md\)", r"](\1.ipynb)", text), attachments


def main() -> None:
    """Writes all of them."""
    parser = argparse.ArgumentParser(description="Writes the steps of the tutorial as notebooks.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted((REPOSITORY / "docs" / "tutorial").glob("*.md")):
        nbformat.write(notebook(page), folder / f"{page.stem}.ipynb")
        print(folder / f"{page.stem}.ipynb")


if __name__ == "__main__":
    main()
