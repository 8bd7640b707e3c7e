"""The command line of ``python -m phlox doctor``: gathers the report, and prints it as text or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from .._api.recording.answers import aligned
from .._xla.memory import readable
from . import checks, facts


def main(arguments: Sequence[str]) -> int:
    """Runs the command that `arguments` name. Returns the exit status: 0 if every check agrees with NumPy, else 1."""
    parser = argparse.ArgumentParser(prog="python -m phlox", description="Commands of phlox, a library of arrays.")
    parser.add_argument("--version", action="version", version=f"phlox {facts.versions()['phlox']}")
    commands = parser.add_subparsers(dest="command")
    about = "shows versions, devices and settings, and compares what each device computes with NumPy"
    doctor = commands.add_parser("doctor", help=about, description=f"{about.capitalize()}.")
    doctor.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    commands.add_parser("debug", help="runs a program and stops at its first nan; see `python -m phlox debug --help`")
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    contents = report()
    print(json.dumps(contents, indent=2) if options.json else "\n".join(text(contents)))
    return 0 if contents["ok"] else 1


def report() -> dict[str, Any]:
    """All that the doctor finds. `ok` is True if there are devices and every check agrees with NumPy."""
    # Only here are clients started; nothing before it waits for a device.
    there, states = facts.platforms()
    results = [row for devices in there.values() for row in checks.rows(devices)]
    return {
        "ok": bool(results) and all(row["ok"] for row in results),
        "versions": facts.versions(),
        "platforms": states,
        "plugins": facts.plugins(),
        "host": facts.host(),
        "kernels": facts.kernels(),
        "devices": [facts.device(one) for devices in there.values() for one in devices],
        "cache": facts.cache(),
        "variables": facts.variables(),
        "checks": results,
    }


def text(contents: dict[str, Any]) -> list[str]:
    """The lines of a report for people."""
    host, cache, results = contents["host"], contents["cache"], contents["checks"]
    memory = readable(host["memory_bytes"]) if host["memory_bytes"] else "unknown memory"
    sections = {
        "Versions": list(contents["versions"].items()),
        "Platforms": [(each["name"], each["state"]) for each in contents["platforms"]],
        "Plugins": [(each["name"], each["version"], each["state"]) for each in contents["plugins"]],
        "Devices": [
            *((each["name"], each["kind"], _memory(each["memory"])) for each in contents["devices"]),
            ("host", f"{host['processors']} processors", memory),
        ],
        "Kernels for CPUs": list(contents["kernels"].items()),
        "Cache of compiled programs": [
            ("state", cache["state"]),
            ("folder", cache["directory"]),
            ("content", f"{cache['entries']} programs, {readable(cache['bytes'])} of {readable(cache['max_bytes'])}"),
        ],
        "Environment variables": [
            (f"{each['name']}={each['value']}", each["note"] or f"read by {each['read_by']}")
            for each in contents["variables"]
        ],
        "Checks against NumPy": [
            ("check", "on", "first call", "fastest", "difference", "result"),
            *(_check(each) for each in results),
        ],
    }
    lines = []
    for title, rows in sections.items():
        lines += [title, *(f"  {line}" for line in aligned(rows or [("none",)])), ""]
    failed = sum(not each["ok"] for each in results)
    if not results:
        return [*lines, "There is no device to check."]
    return [*lines, f"{failed} of {len(results)} checks failed." if failed else f"All {len(results)} checks agree."]


def _check(result: dict[str, Any]) -> tuple[str, ...]:
    if result["error"]:
        return result["name"], result["device"], "", "", "", f"FAILED: {result['error']}"
    times = [f"{result[key] * 1e3:.2f} ms" for key in ("first_seconds", "seconds")]
    verdict = "ok" if result["ok"] else f"FAILED: more than {result['tolerance']:.0e}"
    return result["name"], result["device"], *times, f"{result['difference']:.1e}", verdict


def _memory(counts: dict[str, int] | None) -> str:
    if not counts or "bytes_limit" not in counts:
        return "memory is not counted"
    return f"{readable(counts.get('bytes_in_use', 0))} of {readable(counts['bytes_limit'])} in use"
