"""The command line of ``python -m phlox.launch``: which processes to start, with which environment, on which hosts."""

from __future__ import annotations

import argparse
import os
import random
import shlex
import socket
import sys
from collections.abc import Sequence

from ._processes import Command, Group

#: Ports that are tried on another machine, of which nobody knows which are free.
_PORTS = (20_000, 32_000)
#: Variables that processes on other machines get too.
_PASSED_ON = ("PHLOX_", "JAX_", "XLA_", "PYTHON", "TF_CPP_")


def main(arguments: Sequence[str]) -> int:
    """Starts the processes that a command line asks for, and waits for them.

    Args:
      arguments: the words after ``python -m phlox.launch``.

    Returns:
      The exit status of the first process that failed; 0 if none did.

    Raises:
      SystemExit: the arguments are not understood, or only help is asked for.

    >>> main(["-n", "2", "-c", "print('hello')"])  # doctest: +SKIP
    0
    """
    wanted = _parser().parse_args(arguments)
    if wanted.processes < 1:
        _parser().error(f"argument -n/--processes: {wanted.processes} is no number of processes")
    program = [*(["-m"] if wanted.module else ["-c"] if wanted.code else []), wanted.program, *wanted.arguments]
    hosts = [host.strip() for host in wanted.hosts.split(",")] if wanted.hosts else []
    if hosts:
        port = wanted.port or random.randrange(*_PORTS)
        address = wanted.coordinator or f"{hosts[0].rpartition('@')[2]}:{port}"
        commands = [_remote(host, i, hosts, address, wanted, program) for i, host in enumerate(hosts)]
        return Group(commands).run()
    address = wanted.coordinator or f"127.0.0.1:{wanted.port or _free_port()}"
    count = wanted.count or wanted.processes
    numbers = range(wanted.first, wanted.first + wanted.processes)
    return Group([_local(number, count, address, wanted, program) for number in numbers]).run(
        until_end_of_input=wanted.until_end_of_input
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m phlox.launch",
        description="Starts a program in several processes that work together. In the program, "
        "phlox.distributed.initialize() needs no arguments.",
    )
    parser.add_argument("-n", "--processes", type=int, default=1, help="number of processes, on each host")
    parser.add_argument("--devices", type=int, help="number of virtual CPU devices of each process")
    parser.add_argument("--hosts", help="machines to start processes on with ssh: names, separated by commas")
    parser.add_argument("--port", type=int, help="port of process 0 (else a free one is taken)")
    parser.add_argument("--python", default=sys.executable, help="the Python to run, also on the hosts")
    parser.add_argument("--ssh", default="ssh", help="the command that runs another one on a host (default: ssh)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("-m", dest="module", action="store_true", help="the program is the name of a module")
    kind.add_argument("-c", dest="code", action="store_true", help="the program is text")
    # What the launcher tells the one that it starts on a host.
    parser.add_argument("--coordinator", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until-end-of-input", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("program", help="a file, a module or text")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the program")
    return parser


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _local(number: int, count: int, address: str, wanted: argparse.Namespace, program: Sequence[str]) -> Command:
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COORDINATOR_ADDRESS"}
    environment |= {"PHLOX_LAUNCH_ADDRESS": address, "PHLOX_LAUNCH_COUNT": str(count)}
    environment |= {"PHLOX_LAUNCH_NUMBER": str(number), "PYTHONUNBUFFERED": "1"}
    if wanted.devices is not None:
        environment["PHLOX_NUM_CPU_DEVICES"] = str(wanted.devices)
    return Command([wanted.python, *program], environment, f"[{number}] ", f"process {number}")


def _remote(
    host: str, i: int, hosts: Sequence[str], address: str, wanted: argparse.Namespace, program: Sequence[str]
) -> Command:
    """Another launcher on `host`. It ends its processes when its standard input ends, which is when ssh does."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    words = [wanted.python, "-m", "phlox.launch", "-n", wanted.processes, "--first", i * wanted.processes]
    words += ["--count", len(hosts) * wanted.processes, "--coordinator", address, "--until-end-of-input"]
    words += ["--python", wanted.python]
    words += ["--devices", wanted.devices] if wanted.devices is not None else []
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in passed.items())
    there = f"cd {shlex.quote(os.getcwd())} && env {settings} {shlex.join(map(str, [*words, *program]))}"
    return Command(
        [*shlex.split(wanted.ssh), host, there], dict(os.environ), "", f"the launcher on {host}", remote=True
    )
