"""Libraries that may be missing: what `require` says of them."""

import sys

import pytest

import phlox_data as data


def test_a_missing_library_names_the_command():
    with pytest.raises(data.MissingExtraError, match="no_such_library is not installed") as caught:
        data.require("no_such_library")
    assert (caught.value.library, caught.value.command) == ("no_such_library", "pip install no_such_library")


def test_a_folder_of_that_name_is_no_library(tmp_path, monkeypatch):
    (tmp_path / "lonely_library").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(data.MissingExtraError, match="lonely_library is not installed"):
        data.require("lonely_library")
    sys.modules.pop("lonely_library", None)


def test_a_library_that_is_broken_speaks_for_itself(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="what_it_needs") as caught:
        data.require("broken_library")
    assert not isinstance(caught.value, data.MissingExtraError)
