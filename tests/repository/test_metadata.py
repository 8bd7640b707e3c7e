"""What the seven packages say of themselves agrees: version, licence, changelog."""

import re
import tomllib
from pathlib import Path

import pytest

import phlox

REPOSITORY = Path(__file__).parents[2]
PACKAGES = sorted(path.parent.name for path in REPOSITORY.glob("packages/*/pyproject.toml"))


def project(name):
    return tomllib.loads((REPOSITORY / "packages" / name / "pyproject.toml").read_text())["project"]


def test_one_version():
    assert {project(name)["version"] for name in PACKAGES} == {phlox.__version__}
    sources = [path.read_text() for path in REPOSITORY.glob("packages/*/src/*/__init__.py")]
    stated = [version for text in sources for version in re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)]
    assert stated == [phlox.__version__] * len(PACKAGES)
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == phlox.__version__


@pytest.mark.parametrize("name", PACKAGES)
def test_metadata(name):
    found = project(name)
    pinned = [line for line in found["dependencies"] if re.match(r"phlox\b", line)]
    assert all(line.endswith("==" + found["version"]) for line in pinned)
    assert (found["license"], found["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert (REPOSITORY / "packages" / name / "LICENSE").read_bytes() == (REPOSITORY / "LICENSE").read_bytes()
    assert {"description", "readme", "keywords", "classifiers"} <= set(found)
    assert "Typing :: Typed" in found["classifiers"]
