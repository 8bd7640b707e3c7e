"""``python -m phlox.launch``: several processes on one machine, and on hosts that a stand-in for ssh reaches."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from core_processes import environment

#: Programs that do not import phlox, as most tests are about the launcher alone.
FACTS = """
import os, sys
print(os.environ["PHLOX_LAUNCH_NUMBER"], os.environ["PHLOX_LAUNCH_COUNT"], *sys.argv[1:], flush=True)
print(os.environ["PHLOX_LAUNCH_ADDRESS"].split(":")[0], os.environ.get("PHLOX_NUM_CPU_DEVICES"), file=sys.stderr)
"""


def launch(*words, **changes):
    return subprocess.Popen(
        [sys.executable, "-m", "phlox.launch", *map(str, words)],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launched(*words, **changes):
    process = launch(*words, **changes)
    out, err = process.communicate(timeout=60)
    return process.returncode, sorted(out.splitlines()), sorted(err.splitlines())


def test_file_module_and_text(tmp_path):
    (tmp_path / "facts.py").write_text(FACTS)
    status, out, err = launched("-n", 3, "--devices", 2, tmp_path / "facts.py", "--epochs", 10, "-n", 7)
    assert (status, out) == (0, [f"[{i}] {i} 3 --epochs 10 -n 7" for i in range(3)])
    assert err == [f"[{i}] 127.0.0.1 2" for i in range(3)]
    path = os.pathsep.join([environment()["PYTHONPATH"], str(tmp_path)])
    assert launched("-n", 1, "-m", "facts", "a", PYTHONPATH=path, PHLOX_NUM_CPU_DEVICES=None) == (
        0,
        ["[0] 0 1 a"],
        ["[0] 127.0.0.1 None"],
    )
    assert launched("-n", 2, "-c", "print('text')")[:2] == (0, ["[0] text", "[1] text"])


def test_one_that_fails_ends_the_others():
    program = """
import os, sys, time
if os.environ["PHLOX_LAUNCH_NUMBER"] == "1": sys.exit(7)
time.sleep(60)
"""
    start = time.monotonic()
    status, _, err = launched("-n", 3, "-c", program)
    assert status == 7 and time.monotonic() - start < 20
    assert "phlox.launch: process 1 ended with exit status 7; the others are ended" in err
    killed = program.replace("sys.exit(7)", "os.kill(os.getpid(), 9)")
    status, _, err = launched("-n", 2, "-c", killed)
    assert status == 137 and "process 1 ended with signal SIGKILL" in err[-1]
    # Status 75 says that another process failed: that one is reported, though it ends later.
    after = "import os, sys, time\nme = int(os.environ['PHLOX_LAUNCH_NUMBER'])\ntime.sleep(me)\nsys.exit([75, 3][me])"
    status, _, err = launched("-n", 2, "-c", after)
    assert status == 3 and "process 1 ended with exit status 3" in err[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_forwarded_once(number):
    program = """
import signal, sys, time
seen = []
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, lambda number, _: seen.append(number))
print("ready", flush=True)
while not seen: time.sleep(0.05)
time.sleep(0.5)
print([signal.Signals(each).name for each in seen], flush=True)
"""
    process = launch("-n", 2, "-c", program)
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    name = signal.Signals(number).name
    assert sorted(out.splitlines()) == [f"[0] ['{name}']", f"[1] ['{name}']"], err
    assert process.returncode == 0


SSH = """#!/bin/sh
# A stand-in for ssh: notes the host, and runs the command in another folder and with few variables.
echo "$1" >> "$SSH_LOG"
cd /
exec env -i PATH="$PATH" HOME=/nowhere sh -c "$2"
"""


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    """A folder with a stand-in for ssh on PATH; returns a function that reads which hosts were asked."""
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SSH_LOG", str(tmp_path / "log"))
    return lambda: sorted((tmp_path / "log").read_text().split())


def test_hosts(hosts, tmp_path):
    (tmp_path / "facts.py").write_text(FACTS + "print(os.getcwd(), os.environ['XLA_FLAGS'])")
    words = ("--hosts", "me@alpha,beta", "-n", 2, "--devices", 3, tmp_path / "facts.py", "it's", "a b")
    status, out, err = launched(*words, XLA_FLAGS="--a=1 --b=2")
    there = [f"[{i}] {i} 4 it's a b" for i in range(4)] + [f"[{i}] {os.getcwd()} --a=1 --b=2" for i in range(4)]
    assert (status, out) == (0, sorted(there)), err
    assert [line for line in err if "alpha" in line] == [f"[{i}] alpha 3" for i in range(4)]
    assert hosts() == ["beta", "me@alpha"]


def test_hosts_end_together(hosts):
    failing = "import os, sys, time\nif os.environ['PHLOX_LAUNCH_NUMBER'] == '2': sys.exit(5)\ntime.sleep(60)"
    status, _, err = launched("--hosts", "a,b", "-n", 2, "-c", failing)
    assert status == 5 and "phlox.launch: the launcher on b ended with exit status 5; the others are ended" in err
    waiting = (
        "import signal, time\nprint('ready', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('stop')"
    )
    process = launch("--hosts", "a,b", "-n", 1, "-c", waiting)
    assert sorted(process.stdout.readline() for _ in range(2)) == ["[0] ready\n", "[1] ready\n"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, sorted(out.splitlines())) == (0, ["[0] stop", "[1] stop"]), err
    # The machine from which it was launched goes away.
    forever = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    process = launch("--hosts", "a", "-n", 1, "-c", forever)
    child = int(process.stdout.readline().split()[1])
    process.kill()
    process.communicate(timeout=30)
    end = time.monotonic() + 20
    while time.monotonic() < end and _runs(child):
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_wrong_command_lines():
    for words in ((), ("-n", "0", "-c", ""), ("-n", "x", "a.py"), ("-m", "-c", "a")):
        status, _, err = launched(*words)
        assert status == 2 and any("error:" in line for line in err), words
