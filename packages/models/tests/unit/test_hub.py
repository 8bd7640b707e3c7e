"""Models by their names on the Hugging Face hub: read from its cache without a network, and the errors."""

import os
import subprocess
import sys
import types

import pytest

import phlox
import phlox_models
from phlox.errors import ArgumentError

GPT2 = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 16, "n_embd": 8, "n_layer": 1, "n_head": 2}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROGRAM = f"""
import phlox_models
from phlox.errors import ArgumentError

for options in ({{}}, {{"revision": "main"}}, {{"revision": {COMMIT!r}}}, {{"dtype": "bfloat16"}}):
    model, params = phlox_models.load("somebody/tiny", **options)
    print(params["tokens"]["weight"].dtype, round(float(params["tokens"]["weight"].sum()), 1))
for name, options in (("somebody/other", {{}}), ("somebody/tiny", {{"revision": "v2"}})):
    try:
        phlox_models.load(name, **options)
    except ArgumentError as error:
        print(str(error).splitlines()[0])
"""


@pytest.fixture
def saved(tmp_path):
    model = phlox_models.build(GPT2)
    params = model.init(phlox.random.key(0))
    phlox_models.save(tmp_path / "saved", model, params)
    return tmp_path / "saved", params


def cached(cache, name, folder):
    """Lays the files of a folder into a cache of the hub: blobs, and a snapshot of links to them."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    for path in (repository / "blobs", repository / "refs", snapshot):
        path.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(repository / "blobs" / str(number))
        (snapshot / file.name).symlink_to(os.path.join("..", "..", "blobs", str(number)))


def test_a_cached_model_is_loaded_offline(tmp_path, saved):
    pytest.importorskip("huggingface_hub", reason="it reads its own cache")
    folder, params = saved
    cached(tmp_path / "hub", "somebody/tiny", folder)
    environment = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    run = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-4000:]
    *loaded, other, revision = run.stdout.splitlines()
    total = round(float(params["tokens"]["weight"].sum()), 1)
    assert loaded == [*[f"float32 {total}"] * 3, f"bfloat16 {total}"]
    # The library's own words follow: that nothing is cached, and that it is offline.
    assert other.startswith("there is no folder 'somebody/other', and the Hugging Face hub did not give a model")
    assert revision.startswith("there is no folder 'somebody/tiny', and the Hugging Face hub did not give a model")
    assert "HF_HUB_OFFLINE" in other


def stand_in(monkeypatch, snapshot_download):
    """Puts a library with this function in the place of huggingface_hub."""
    module = types.SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_only_the_files_of_models_are_fetched(monkeypatch, saved):
    folder, _ = saved
    calls = []

    def snapshot_download(name, *, revision, allow_patterns):
        calls.append((name, revision, allow_patterns))
        return str(folder)

    stand_in(monkeypatch, snapshot_download)
    phlox_models.load("somebody/tiny", revision="v1")
    ((name, revision, patterns),) = calls
    assert (name, revision) == ("somebody/tiny", "v1")
    assert "*.safetensors" in patterns and "*.json" in patterns and not any("bin" in p for p in patterns)
    # A repository without safetensors has files that torch wrote.
    (folder / "model.safetensors").unlink()
    calls.clear()
    with pytest.raises(ArgumentError):
        phlox_models.load("tiny")
    assert [any("bin" in p for p in patterns) for _, _, patterns in calls] == [False, True]


def test_a_hub_that_is_not_reached(monkeypatch):
    def snapshot_download(*arguments, **options):
        raise ConnectionError("Failed to resolve the hub\nwith a long report below")

    stand_in(monkeypatch, snapshot_download)
    with pytest.raises(ArgumentError) as error:
        phlox_models.load("somebody/tiny")
    text = str(error.value)
    assert (
        "there is no folder 'somebody/tiny'" in text and "did not give a model of this name: Failed to resolve" in text
    )
    assert "a folder, which works offline" in text and "long report" not in text


def test_a_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # its import fails
    with pytest.raises(ArgumentError, match="need its library") as error:
        phlox_models.load("somebody/tiny")
    assert "pip install phlox-models[hub], or a folder" in str(error.value)


def test_what_is_no_name_is_not_looked_up(monkeypatch, tmp_path):
    stand_in(monkeypatch, None)  # a call of it would be another error
    for name in (tmp_path / "missing", "./missing", "a/b/c", "somebody/tiny model"):
        with pytest.raises(ArgumentError, match="there is no folder"):
            phlox_models.load(name)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ArgumentError, match="is a file"):
        phlox_models.load(tmp_path / "config.json")
