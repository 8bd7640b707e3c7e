"""What happens to a distributed program when a process fails, or when the processes do not find each other.

The cases of a test run at the same time, each in processes of its own.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

from core_processes import environment, free_port

HEARTBEAT = 5
#: The processes say when they are in the middle of work in which each waits for the others.
WORK = """
import os, sys
os.dup2(2, 1)
import numpy as np
import phlox
from phlox import P
me, count, port, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
phlox.distributed.initialize(f"127.0.0.1:{port}", count, me, heartbeat_timeout_seconds=HEARTBEAT,
    initialization_timeout=60)
where = phlox.NamedSharding(phlox.make_mesh((count,), ("i",)), P("i"))
x = phlox.make_array_from_callback((count,), where, lambda index: np.ones(count, np.float32)[index])
total = phlox.jit(lambda x: x.sum())
victim = int(how[-1])
i = 0
while True:
    assert float(total(x).addressable_data(0)) == count
    if i == 3:
        print("works", file=sys.stderr, flush=True)
    if i == 10 and how.startswith("raise") and me == victim:
        raise ValueError("the cause")
    i += 1
""".replace("HEARTBEAT", str(HEARTBEAT))


class Process:
    """A running program, whose error stream goes to a file, so that it can be read at any time."""

    def __init__(self, program, *arguments):
        self.file = tempfile.TemporaryFile("w+")  # noqa: SIM115
        cleared = {"XLA_FLAGS": None, "JAX_COORDINATOR_ADDRESS": None, "PHLOX_NUM_CPU_DEVICES": None}
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            env=environment(**cleared),
            stdout=subprocess.DEVNULL,
            stderr=self.file,
        )

    def said(self):
        self.file.seek(0)
        return self.file.read()

    def wait_for(self, line):
        end = time.monotonic() + 60
        while line not in self.said().splitlines():
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.05)

    def ended(self):
        """Exit status and error stream."""
        return self.process.wait(60), self.said()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.file.close()


class Network:
    """Passes connections on to a port, until it is cut: then they stay open, and nothing arrives any more."""

    def __init__(self, port):
        self.target = port
        self.open = threading.Event()
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = [self.listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                here, _ = self.listener.accept()
                there = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # closed, or nobody listens yet
                if self.listener.fileno() < 0:
                    return
                here.close()
                continue
            self.sockets += [here, there]
            for pair in ((here, there), (there, here)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source, target):
        try:
            while data := source.recv(1 << 16):
                if self.open.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self):
        for each in self.sockets:
            each.close()


@pytest.fixture
def start():
    started = []

    def one(*words):
        started.append(Process(*words))
        return started[-1]

    yield one
    for process in started:
        process.close()


def test_the_others_end_when_one_fails(start):
    cases = {"kill 1": signal.SIGKILL, "kill 0": signal.SIGKILL, "stop 1": signal.SIGSTOP, "stop 0": signal.SIGSTOP}
    cases |= {"raise 1": None, "raise 0": None, "cut 1": None}
    counts = {"kill 1": 3}
    running, ports = {}, {how: free_port() for how in cases}
    network = Network(ports["cut 1"])
    for how, port in ports.items():
        # One process reaches the coordinator through a network that is cut later.
        ways = [port, network.port if how == "cut 1" else port, port]
        count = counts.get(how, 2)
        running[how] = [start(WORK, me, count, ways[me], how) for me in range(count)]
    for how, number in cases.items():
        if not how.startswith("raise"):
            for process in running[how]:
                process.wait_for("works")
        if number is not None:
            running[how][int(how[-1])].process.send_signal(number)
    network.open.clear()
    begin = time.monotonic()
    for how, processes in running.items():
        victim = int(how[-1])
        for me, process in enumerate(processes):
            if me != victim or how.startswith(("raise", "cut")):
                _check(how, me, victim, *process.ended())
    assert time.monotonic() - begin < 6 * HEARTBEAT
    network.close()
    # A process that goes on after a stop ends, too: the others have given it up.
    for how in ("stop 1", "stop 0"):
        stopped = running[how][int(how[-1])]
        stopped.process.send_signal(signal.SIGCONT)
        status, err = stopped.ended()
        assert status != 0 and _is_clear(err), (how, err)


def _is_clear(err):
    return "phlox.distributed: process" in err or "Error: " in err


def _check(how, me, victim, status, err):
    """The victim of an exception ends as any program; the others with a line of ours, or with Gloo's exception."""
    assert "stack trace" not in err and "Fatal" not in err, (how, err)
    if how.startswith("cut"):
        assert status in (1, 75) and _is_clear(err), (how, status, err)
    elif me == victim:
        assert status == 1 and "ValueError: the cause" in err, (how, status, err)
    elif how.startswith("raise"):
        assert status in (1, 75) and _is_clear(err), (how, status, err)
    elif how.startswith("stop"):
        assert status == 75, (how, status, err)
        told = "process 1 sent no heartbeat for 5 s" if victim else "the coordination service, which process 0 runs"
        assert told in err, (how, err)
    else:
        assert status in (1, 75) and _is_clear(err), (how, status, err)


IDLE = """
import sys, time
import phlox
me, count, address, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
begin = time.monotonic()
phlox.distributed.initialize(address, count, me, initialization_timeout=int(sys.argv[5]), heartbeat_timeout_seconds=5,
    shutdown_timeout_seconds=4)
print("connected", file=sys.stderr, flush=True)
if how == "twice":
    try:
        phlox.distributed.initialize(address, count, me)
    except phlox.errors.DeviceError as error:
        assert "already" in str(error)
    else:
        raise AssertionError
if how == "leave" and me == 1:
    sys.exit(3)
time.sleep({"leave": 60, "stay": 60, "rubbish": 3}.get(how, 0))
"""


def test_processes_that_do_not_find_each_other(start):
    """Wrong address, wrong count, one number twice, a port in use: an error, within the time that was allowed."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        addresses = [f"127.0.0.1:{free_port()}" for _ in range(8)]
        apart = "did not come together within 6 s"
        cases = {
            "nobody listens": (["1 2 ? x 3"], "cannot reach the coordinator"),
            "no such host": (["1 2 no-such-host.invalid:77 x 3"], "cannot reach the coordinator"),
            "no runtime listens": ([f"1 2 127.0.0.1:{busy} x 3"], "did not come together within 3 s"),
            "port in use": ([f"0 2 127.0.0.1:{busy} x 3"], "cannot listen at"),
            "one is missing": (["0 2 ? x 6"], apart),
            "too large a number": (["0 2 ? x 6", "2 3 ? x 6"], apart),
            "another count": (["0 2 ? stay 30", "1 3 ? x 30"], "process 0 has 2"),
            "a number twice": (["0 3 ? x 6", "1 3 ? x 6", "1 3 ? x 6"], apart),
        }
        begin = time.monotonic()
        running = {}
        for (name, (processes, _)), address in zip(cases.items(), addresses, strict=True):
            running[name] = [start(IDLE, *words.replace("?", address).split()) for words in processes]
        for name, (_, words) in cases.items():
            ends = [process.ended() for process in running[name]]
            for status, err in ends:
                assert status in (1, 75) and _is_clear(err) and "stack trace" not in err, (name, status, err)
            assert any(words in err for _, err in ends), (name, ends)
        assert time.monotonic() - begin < 60


def test_a_second_initialize_a_second_process_and_an_early_end(start):
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    twice, late, leaving = (
        [start(IDLE, me, 2, address, how, 30) for me in range(2)]
        for address, how in zip(addresses, ("twice", "stay", "leave"), strict=True)
    )
    for process in late:
        process.wait_for("connected")
    late.append(start(IDLE, 1, 2, addresses[1], "stay", 4))
    for process in late:  # the number is in use: all end
        status, err = process.ended()
        assert status in (1, 75) and _is_clear(err), err
    for process in twice:
        assert process.ended()[0] == 0, process.said()
    for process in leaving:  # the one that leaves waits for the other as long as it may, which then ends too
        status, err = process.ended()
        assert status == 75 and "phlox.distributed: " in err, (status, err)


def test_rubbish_at_the_port_of_the_coordinator(start):
    port = free_port()
    processes = [start(IDLE, me, 2, f"127.0.0.1:{port}", "rubbish", 30) for me in range(2)]
    for process in processes:
        process.wait_for("connected")
    for what in (
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(5000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(5000),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
            peer.sendall(what)
    held = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(50)]
    for process in processes:
        assert process.ended()[0] == 0, process.said()
    for peer in held:
        peer.close()


FORK = """
import os, sys, warnings
import phlox
warnings.simplefilter("always")
def fork():
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
fork()
print("silent so far", file=sys.stderr)
phlox.numpy.ones(3).sum()
fork()
"""


def test_a_fork_after_use_warns():
    """As in jax: the child would wait forever for threads that it does not have."""
    done = subprocess.run([sys.executable, "-c", FORK], env=environment(), capture_output=True, text=True, timeout=100)
    before, after = done.stderr.split("silent so far")
    assert "RuntimeWarning" not in before
    assert "CheckRuntimeWarning: os.fork() was called" in after and "get_context('spawn')" in after


#: Process 0 is slow to come back from the client's shutdown, or process 1 is killed while process 0 waits in it.
LEAVE = """
import os, signal, sys, time
import phlox
from phlox._xla import distributed
me, port, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
phlox.distributed.initialize(f"127.0.0.1:{port}", 2, me, heartbeat_timeout_seconds=HEARTBEAT)
state = distributed._state
client = state.client

class Slow:
    def shutdown(self):
        client.shutdown()
        time.sleep(3)

if me == 0 and how == "slow":
    distributed._state = state._replace(client=Slow())
if me == 1 and how == "kill":
    time.sleep(2)
    os.kill(os.getpid(), signal.SIGKILL)
phlox.distributed.shutdown()
print("left", file=sys.stderr, flush=True)
""".replace("HEARTBEAT", str(HEARTBEAT))


def test_who_leaves_first_is_not_lost(start):
    running = {}
    for how in ("slow", "kill"):
        port = free_port()
        running[how] = [start(LEAVE, me, port, how) for me in range(2)]
    for process in running["slow"]:
        status, said = process.ended()
        assert status == 0 and "left" in said.splitlines() and "heartbeat" not in said, said
    status, said = running["kill"][0].ended()
    assert status != 0 and "process 0" in said and "left" not in said.splitlines(), said
