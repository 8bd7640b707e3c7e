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
    options = _parser().parse_args(arguments)
    if options.processes < 1:
        _parser().error(f"argument -n/--processes: {options.processes} is no number of processes")
    program = [*(["-m"] if options.module else ["-c"] if options.code else []), options.program, *options.arguments]
    hosts = [host.strip() for host in options.hosts.split(",")] if options.hosts else []
    if hosts:
        port = options.port or random.randrange(*_PORTS)
        # ssh takes ``user@host``, of which the others need the host.
        address = options.coordinator or f"{hosts[0].rpartition('@')[2]}:{port}"
        commands = [_remote(host, i, hosts, address, options, program) for i, host in enumerate(hosts)]
        return Group(commands).run()
    address = options.coordinator or f"127.0.0.1:{options.port or _free_port()}"
    count = options.count or options.processes
    numbers = range(options.first, options.first + options.processes)
    return Group([_local(number, count, address, options, program) for number in numbers]).run(
        until_end_of_input=options.until_end_of_input
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
        # Port 0 asks the system for a free one. It is free again after this, for the process that will listen.
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _local(number: int, count: int, address: str, options: argparse.Namespace, program: Sequence[str]) -> Command:
    # An address that is left from another run would be preferred.
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COORDINATOR_ADDRESS"}
    environment |= {"PHLOX_LAUNCH_ADDRESS": address, "PHLOX_LAUNCH_COUNT": str(count)}
    # Without buffers, so that lines appear when they are printed.
    environment |= {"PHLOX_LAUNCH_NUMBER": str(number), "PYTHONUNBUFFERED": "1"}
    if options.devices is not None:
        environment["PHLOX_NUM_CPU_DEVICES"] = str(options.devices)
    return Command([options.python, *program], environment, f"[{number}] ", f"process {number}")


def _remote(
    host: str, i: int, hosts: Sequence[str], address: str, options: argparse.Namespace, program: Sequence[str]
) -> Command:
    """Another launcher on `host`. It ends its processes when its standard input ends, which is when ssh does."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    words = [options.python, "-m", "phlox.launch", "-n", options.processes, "--first", i * options.processes]
    words += ["--count", len(hosts) * options.processes, "--coordinator", address, "--until-end-of-input"]
    words += ["--python", options.python]
    words += ["--devices", options.devices] if options.devices is not None else []
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in passed.items())
    # As one text: ssh passes its words to a shell.
    there = f"cd {shlex.quote(os.getcwd())} && env {settings} {shlex.join(map(str, [*words, *program]))}"
    return Command(
        [*shlex.split(options.ssh), host, there], dict(os.environ), "", f"the launcher on {host}", remote=True
    )
