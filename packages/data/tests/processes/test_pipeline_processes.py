"""`map` in worker processes: their order, their errors, and that they end, whatever ends the loop or the program."""

import multiprocessing
import os
import signal
import time

import pytest

import phlox_data as data
from data_processes import finish, start
from phlox.errors import PhloxError
from phlox_data._workers import map_ahead

MODULE = """
import os, time

def double(x):
    time.sleep(0.01 * (x % 3))  # so that they do not end in their order
    return 2 * x

def process(x):
    return os.getpid()

def fails_at_seven(x):
    if x == 7:
        raise ValueError("seven is too much")
    return x

def ends_at_seven(x):
    if x == 7:
        os._exit(3)
    return x
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """The module of a user, which other processes can import."""
    (tmp_path / "functions_of_a_user.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import functions_of_a_user

    return functions_of_a_user


def mapped(f, n=20, workers=2):
    return data.pipeline(range(n)).map(f, workers=workers, processes=True)


def test_order_and_ends(functions):
    assert list(mapped(functions.double)) == [2 * i for i in range(20)]
    processes = set(mapped(functions.process))
    assert os.getpid() not in processes
    assert 1 <= len(processes) <= 2
    made = data.from_iterable(mapped(functions.double).batch(4))
    state = None
    for batch in made:
        assert batch.tolist() == [0, 2, 4, 6]
        state = made.state()
        break
    assert not multiprocessing.active_children()
    made.restore(state)
    assert [batch.tolist()[0] for batch in made] == [8, 16, 24, 32]
    assert not multiprocessing.active_children()


def test_errors(functions):
    with pytest.raises(ValueError, match="seven is too much") as caught:
        list(mapped(functions.fails_at_seven))
    assert caught.value.__notes__ == ["in step 1 of the pipeline, map(fails_at_seven), for example 7"]
    assert "functions_of_a_user.py" in str(caught.value.__cause__)  # the traceback of the worker
    with pytest.raises(PhloxError, match=r"a worker process of map ended by itself, near example \d"):
        list(mapped(functions.ends_at_seven))
    assert not multiprocessing.active_children()


def test_a_worker_that_ends_between_two_examples(functions):
    def examples():
        yield 1, 7
        while multiprocessing.active_children():
            time.sleep(0.01)
        time.sleep(0.2)  # until the pool has seen its end
        yield 2, 8

    with pytest.raises(PhloxError, match="ended by itself, near example 1"):
        list(map_ahead(examples(), functions.ends_at_seven, 1, True, 1))


PROGRAM = """
    import multiprocessing, os, sys, time
    sys.path.insert(0, sys.argv[1])
    import phlox_data as data
    from functions_of_a_user import process

    if __name__ == "__main__":
        batches = data.from_iterable(data.pipeline(range(10**6)).map(process, workers=2, processes=True).batch(8))
        loop = iter(batches)
        found = set()
        while len(found) < 2:
            found |= set(next(loop).tolist())
        print(*found, flush=True)
        {end}
    """


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:  # one that has ended, and that nobody has asked for its status
            return status.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("end", ["sys.exit(0)", "os._exit(0)", "time.sleep(600)", "raise KeyboardInterrupt"])
def test_workers_end_with_the_program(functions, end):
    program = start(PROGRAM.format(end=end), os.path.dirname(functions.__file__))
    workers = [int(word) for word in program.stdout.readline().split()]
    assert len(workers) == 2
    if end.startswith("time"):
        program.send_signal(signal.SIGKILL)
    status, _, errors = finish(program)
    assert status == {"time.sleep(600)": -9, "raise KeyboardInterrupt": -2}.get(end, 0)
    if end == "sys.exit(0)":
        assert errors == ""
    deadline = time.monotonic() + 20
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(map(gone, workers))
