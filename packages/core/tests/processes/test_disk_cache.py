"""The cache of compiled programs survives what happens to folders: other processes, damage, no space, other owners."""

import os
import socket
import stat
import tempfile

import pytest

from core_processes import run, start

PROGRAM = """
import sys, warnings
import phlox, phlox.numpy as jnp
from phlox._xla import compile as compiling
compiled = []
original = compiling.disk.store
compiling.disk.store = lambda key, payload: compiled.append(key) or original(key, payload)
f = phlox.jit(lambda x: jnp.sin(x) * 2 + 1)
print(f(jnp.ones(3)).shape, len(compiled))
"""


def cached(folder, program=PROGRAM, **changes):
    """Runs in a process that caches in `folder`; returns (programs compiled, standard error)."""
    out = run(program, PHLOX_COMPILATION_CACHE_DIR=str(folder), PHLOX_ENABLE_COMPILATION_CACHE=None, **changes)
    assert out.stdout.startswith("(3,) "), out.stdout + out.stderr
    return int(out.stdout.split()[-1]), out.stderr


def entries(folder):
    return sorted(folder.glob("*.xla"))


def test_the_second_process_compiles_nothing(tmp_path):
    folder = tmp_path / "cache"
    first, _ = cached(folder)
    assert first == len(entries(folder)) > 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cached(folder) == (0, "")
    assert not list(folder.glob("*.part"))


CALLBACKS = """
import sys
import numpy as np
import phlox, phlox.numpy as jnp
from phlox._xla import compile as compiling
compiled = []
original = compiling.disk.store
compiling.disk.store = lambda key, payload: compiled.append(key) or original(key, payload)

def f(x):
    phlox.debug.print("sum {}", x.sum())
    first = phlox.pure_callback(lambda v: np.asarray(v) * {factor}, x, x)
    return first + phlox.experimental.io_callback(lambda v: np.asarray(v) + 1, x, x, ordered=True)

out = phlox.jit(f)(jnp.ones(3))
phlox.effects_barrier()
print(out.shape, out[0], len(compiled))
"""


def test_a_stored_program_calls_the_functions_of_its_process(tmp_path):
    lines = []
    for factor in ("10", "20"):
        program = CALLBACKS.replace("{factor}", factor)
        out = run(program, PHLOX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"), PHLOX_ENABLE_COMPILATION_CACHE=None)
        assert out.returncode == 0, out.stderr
        lines.append(out.stdout.splitlines())
    assert lines[0][:2] == ["sum 3.0", f"(3,) 12.0 {lines[0][1].split()[-1]}"] and not lines[0][1].endswith(" 0")
    assert lines[1] == ["sum 3.0", "(3,) 22.0 0"]


def test_two_processes_at_once(tmp_path):
    folder = tmp_path / "cache"
    running = [start(PROGRAM, PHLOX_COMPILATION_CACHE_DIR=str(folder)) for _ in range(3)]
    for process in running:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert out.startswith("(3,) ")
        assert err == ""
    assert cached(folder) == (0, "")


@pytest.mark.parametrize("damage", ["truncated", "empty", "scrambled", "foreign"])
def test_damaged_entries_are_compiled_again(tmp_path, damage):
    folder = tmp_path / "cache"
    count, _ = cached(folder)
    for path in entries(folder):
        data = path.read_bytes()
        path.write_bytes(
            {
                "truncated": data[: len(data) // 2],
                "empty": b"",
                "scrambled": data[:100] + bytes([data[100] ^ 255]) + data[101:],
                "foreign": b"something else entirely" * 10,
            }[damage]
        )
    assert cached(folder) == (count, "")
    assert cached(folder) == (0, "")


def test_an_entry_with_a_good_checksum_that_jaxlib_refuses(tmp_path):
    folder = tmp_path / "cache"
    count, _ = cached(folder)
    write = """
        import os
        from phlox._xla import disk
        for name in os.listdir(disk.directory()):
            disk.store(name.removesuffix(".xla"), b"not a program")
    """
    run(write, PHLOX_COMPILATION_CACHE_DIR=str(folder))
    assert cached(folder)[0] == count
    assert cached(folder)[0] == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    folder = tmp_path / "cache"
    cached(folder)
    planted = entries(folder)
    os.chown(folder, 12345, 12345)
    count, err = cached(folder)
    assert "belongs to another user" in err
    assert err.count("RuntimeWarning") == 1
    assert count > 0, "nothing was loaded from it"
    assert entries(folder) == planted, "and nothing written to it"


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    count, err = cached(folder)
    assert "others may write" in err
    assert count > 0
    assert entries(folder) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    count, err = cached(tmp_path / "file" / "cache")
    assert count > 0
    assert "going on without a cache" in err


def test_a_folder_that_cannot_be_written(tmp_path):
    # A full disk and a read-only folder look the same from here: writing fails. Root may write anywhere, so the
    # failure is made by a limit on the size of files, which holds for root too.
    folder = tmp_path / "cache"
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    count, err = cached(folder, limited + PROGRAM)
    assert count > 0
    assert "cannot write to the cache" in err
    assert err.count("RuntimeWarning") == 1
    assert list(folder.iterdir()) == [], "half-written files are removed"


def test_what_cannot_be_written_can_still_be_read(tmp_path):
    program = """
        import os, resource, signal
        from phlox._xla import disk
        disk.store("there", b"before")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        disk.store("large", bytes(1000))
        print(disk.load("there"), disk.load("large"), len(os.listdir(disk.directory())))
    """
    done = run(program, PHLOX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout == "b'before' None 1\n"
    assert done.stderr.count("cannot write to the cache") == 1


def test_an_entry_under_another_key_is_compiled_again(tmp_path):
    """A renamed entry is a whole program, only not the one that is asked for."""
    folder = tmp_path / "cache"
    count, _ = cached(folder)
    cached(folder, PROGRAM.replace("sin", "cos"))
    paths = entries(folder)
    contents = [path.read_bytes() for path in paths]
    for path, other in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(other)
    assert len(paths) > count and cached(folder) == (count, "")
    assert cached(folder) == (0, "")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a pipe", "link to a file", "link to nothing", "socket"])
def test_only_regular_files_are_opened(tmp_path, monkeypatch, kind):
    folder = tmp_path / "cache"
    cached(folder)
    path = entries(folder)[0]
    data = path.read_bytes()
    path.unlink()
    aside = tmp_path / "aside"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            monkeypatch.chdir(folder)  # names of sockets are short
            s.bind(path.name)
    else:
        if kind == "link to a pipe":
            os.mkfifo(aside)
        elif kind == "link to a file":
            aside.write_bytes(data)
        path.symlink_to(aside)
    count, err = cached(folder)
    assert count == 1
    if kind == "folder":  # which nobody removes
        assert "cannot write to the cache" in err
    else:
        assert err == "" and cached(folder) == (0, "") and path.read_bytes() == data and not path.is_symlink()


def test_no_other_bytes_are_an_entry(tmp_path):
    program = """
        import os, random
        from phlox._xla import disk
        random.seed(3)
        content = random.randbytes(300)
        disk.store("key", content)
        path = os.path.join(disk.directory(), "key.xla")
        written = open(path, "rb").read()
        assert disk.load("key") == content
        for _ in range(1000):
            at, to, count = random.randrange(len(written)), random.randrange(len(written)), random.randint(1, 9)
            changed = random.choice([
                written[:at] + bytes([written[at] ^ 1 << random.randrange(8)]) + written[at + 1:],
                written[:at],
                written[at:],
                written[:at] + random.randbytes(count) + written[at:],
                written[:at] + written[at + count:],
                written[:at] + written[to:],
                written + written[at:],
            ])
            open(path, "wb").write(changed)
            assert (disk.load("key") is None) == (changed != written), (at, to, count)
            assert os.path.exists(path) == (changed == written)
        print("done")
    """
    assert run(program, PHLOX_COMPILATION_CACHE_DIR=str(tmp_path / "cache")).stdout == "done\n"


def test_read_only_folder_of_an_ordinary_user():
    program = PROGRAM
    if os.getuid() == 0:  # who may write everywhere, so the program becomes somebody else once it has loaded
        # What it imports later, it may not read any more.
        program = PROGRAM.replace(
            "compiled = []", "import hashlib, os, platform, tempfile; os.setgid(12345); os.setuid(12345); compiled = []"
        )
    # Not under tmp_path: each pytest that starts closes the folder above it to other users.
    with tempfile.TemporaryDirectory() as folder:
        if os.getuid() == 0:
            os.chown(folder, 12345, 12345)
        os.chmod(folder, 0o500)
        count, err = cached(folder, program)
        os.chmod(folder, 0o700)
    assert count > 0
    assert "what it lacks is compiled in each process" in err


def test_the_oldest_entries_go_first(tmp_path):
    folder = tmp_path / "cache"
    program = """
        import os, time
        from phlox._xla import disk
        for k in range(20):
            disk.store(f"key{k:02d}", bytes(1000))
            os.utime(os.path.join(disk.directory(), f"key{k:02d}.xla"), (k, k))
        disk.load("key00")
        disk._evict(disk.directory(), -1)
        assert disk.info().entries == 20  # -1: no limit
        disk._evict(disk.directory(), 5000)
        print(sorted(name[:5] for name in os.listdir(disk.directory())), disk.info().entries)
        disk.clear()
        print(disk.info().bytes)
    """
    out = run(program, PHLOX_COMPILATION_CACHE_DIR=str(folder)).stdout.splitlines()
    assert out == ["['key00', 'key17', 'key18', 'key19'] 4", "0"]


def test_few_writes_look_at_the_folder(tmp_path):
    """A look at a full folder of 50,000 entries takes half a second, which a process of few programs does not pay."""
    program = """
        from phlox._xla import disk
        looks, evict, largest = [], disk._evict, 0
        disk._evict = lambda folder, limit: (looks.append(folder), evict(folder, limit))
        for k in range(2000):
            disk.store(f"key{k}", bytes(1000))
            largest = max(largest, disk.info().bytes)
        print(len(looks), largest)
    """
    limits = {"PHLOX_COMPILATION_CACHE_MAX_SIZE": "200000"}
    out = run(program, PHLOX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"), **limits).stdout
    looks, largest = map(int, out.split())
    assert 200 < looks < 500  # 32 while the 200 kB of the limit are written, which is ten times
    assert 190_000 < largest < 240_000


def test_turned_off(tmp_path):
    folder = tmp_path / "cache"
    out = run(PROGRAM, PHLOX_COMPILATION_CACHE_DIR=str(folder), PHLOX_ENABLE_COMPILATION_CACHE="0")
    assert out.stdout.startswith("(3,)")
    assert not folder.exists()


def test_programs_for_other_flags_are_other_entries(tmp_path):
    folder = tmp_path / "cache"
    first, _ = cached(folder, XLA_FLAGS="--xla_backend_optimization_level=0")
    second, _ = cached(folder, XLA_FLAGS="--xla_backend_optimization_level=1")
    assert first == second > 0
