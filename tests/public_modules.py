"""Which modules are public: those of the packages in which no part of the dotted name begins with an underscore.

A door, a module of phlox that passes on to that of phlox_compat, is not one: phlox_compat's is.
"""

from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def public_modules(package: str = "*") -> Iterator[str]:
    """The dotted names of the public modules of `packages/<package>/src`, read from the folders, in their order."""
    for source in sorted(REPOSITORY.glob(f"packages/{package}/src")):
        for file in sorted(source.rglob("*.py")):
            path = file.relative_to(source).with_suffix("")
            parts = path.parts[:-1] if path.name == "__init__" else path.parts
            if not any(part.startswith("_") for part in parts) and not is_door(file):
                yield ".".join(parts)


def is_door(file: Path) -> bool:
    """Whether the module in `file` only passes on to another package: see phlox/_base/doors.py."""
    return "\nenter(__name__)\n" in file.read_text()
