"""Which modules are public: those of the packages in which no part of the dotted name begins with an underscore."""

from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]


def public_modules(package: str = "*") -> Iterator[str]:
    """The dotted names of the public modules of `packages/<package>/src`, read from the folders, in their order."""
    for source in sorted(REPOSITORY.glob(f"packages/{package}/src")):
        for file in sorted(source.rglob("*.py")):
            path = file.relative_to(source).with_suffix("")
            parts = path.parts[:-1] if path.name == "__init__" else path.parts
            if not any(part.startswith("_") for part in parts):
                yield ".".join(parts)
