"""No source file is longer than what one reads in a sitting."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LONGEST = 600


def test_no_source_file_is_too_long():
    files = sorted(REPOSITORY.glob("packages/*/src/**/*.py"))
    assert files, f"there are no sources under {REPOSITORY}/packages"
    lengths = {file: len(file.read_text().splitlines()) for file in files}
    too_long = [
        f"{file.relative_to(REPOSITORY)}: {length} lines" for file, length in lengths.items() if length > LONGEST
    ]
    assert not too_long, f"longer than {LONGEST} lines:\n" + "\n".join(too_long)
