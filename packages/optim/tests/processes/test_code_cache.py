"""The compiled code of the private optax is kept in phlox's cache, and does without it where that is not possible."""

import os
from pathlib import Path

import optax

from optim_processes import run

PROGRAM = """
import builtins, sys, time
import phlox, phlox_optim
compiled, compile_ = [], builtins.compile
def counting(source, filename, *args, **kwargs):
    if "optax" in str(filename):
        compiled.append(filename)
    return compile_(source, filename, *args, **kwargs)
builtins.compile = counting
phlox_optim.adam(1e-3).init(1.0)
print(len(compiled))
"""


def compiled(folder, **environment):
    """How many files of optax a process compiles that has this cache folder."""
    return int(run(PROGRAM, block=["jax"], PHLOX_COMPILATION_CACHE_DIR=str(folder), **environment).splitlines()[-1])


def test_only_the_first_process_compiles(tmp_path):
    first = compiled(tmp_path / "cache")
    assert first > 50
    assert compiled(tmp_path / "cache") == 0


def test_damaged_entries_are_compiled_again(tmp_path):
    cache = tmp_path / "cache"
    first = compiled(cache)
    entries = sorted(cache.glob("optax-*"))
    assert len(entries) == first
    entries[0].write_bytes(entries[0].read_bytes()[:100])
    entries[1].write_bytes(b"")
    entries[2].unlink()
    assert compiled(cache) == 3
    assert compiled(cache) == 0


def test_without_a_cache(tmp_path):
    first = compiled(tmp_path / "cache", PHLOX_ENABLE_COMPILATION_CACHE="0")
    assert first > 50 and not (tmp_path / "cache").exists()


def test_with_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert compiled(tmp_path / "file" / "below") > 50
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)  # others could put code there that this process would run
    assert compiled(shared) > 50
    assert not os.listdir(shared)


def test_the_folders_of_optax_stay_as_they_are(tmp_path):
    folder = Path(optax.__file__).parent

    def listing():
        return sorted((str(p.relative_to(folder)), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file())

    before = listing()
    compiled(tmp_path / "cache")
    assert listing() == before
