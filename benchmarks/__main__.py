"""./bench [--quick] [CASE ...]: measures, prints tables, and writes out/bench.json and out/bench.png.

./bench --native table measures the kernels beside all libraries, and writes docs/kernels.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .case import PROGRAMS, Case, load
from .measure import OPTIONAL, ROOT, counts, has, measure, set_platform, told
from .picture import draw
from .report import Report, console, gross
from .table import write_table


def chosen(cases: dict[str, Case], names: list[str], quick: bool) -> list[Case]:
    """Cases that a name is part of, or all; with `quick` those that take little time."""
    found = [c for c in cases.values() if not names or any(name in c.name for name in names)]
    if not found:
        groups = ", ".join(sorted({c.group for c in cases.values()}))
        raise SystemExit(f"./bench: no case has {' or '.join(names)} in its name; the groups are {groups}")
    return [c for c in found if c.quick or not quick]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="./bench", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="parts of names of cases (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer cases and samples: a few minutes")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    parser.add_argument("--rounds", type=int, help="samples for each library (default: 25, with --quick 5)")
    parser.add_argument("--python", default=sys.executable, help="the Python whose libraries are measured")
    parser.add_argument("--native", metavar="FOLDER", help="where phlox_kernels is, which phlox is to use")
    parser.add_argument("--platform", default="cpu", help="where jax and phlox compute, such as cuda (default: cpu)")
    parser.add_argument("--out", type=Path, default=ROOT / "out", help="folder for the results")
    given = parser.parse_args(arguments)
    OPTIONAL.extend([given.native] if given.native else [])
    if given.cases == ["table"]:
        return write_table(given.python, given.rounds or 9)
    cases = chosen(load(), given.cases, given.quick)
    if given.list:
        print(*[c.name for c in cases], sep="\n")
        return
    if given.platform != "cpu":
        set_platform(given.platform)
    console.print("phlox", "with" if has(given.python, "phlox_kernels") else "without", "the kernels of phlox-kernels")
    report = Report()
    for done in measure(cases, given.python, given.rounds or (5 if given.quick else 25)):
        report.add(done)
        report.write(given.out)  # a run that is ended keeps what it has measured
    report.growth()
    report.others()
    on_cpu = given.platform == "cpu"  # what follows compares what is the same on all platforms
    names = [name for name in PROGRAMS if on_cpu and any(c.name == f"run/{name}" for c in cases)]
    compiled, sizes = told("program", names, given.python), told("structure", names, given.python)
    counted = counts(given.python) if names else {}
    report.beside("compiled programs", compiled)
    report.beside("sizes of programs", sizes)
    report.counted(counted)
    sizes |= counted
    path = report.write(given.out, programs=compiled, sizes=sizes)
    draw(report.done, given.out / "bench.png")
    over = [m.case.name for m in report.done if m.over]
    console.print(f"\n{len(report.done)} cases, {len(over)} over budget; {path} and bench.png beside it")
    wrong = [f"{m.case.name}: {m.errors['phlox']}" for m in report.done if "phlox" in m.errors]
    if wrong:
        raise SystemExit("\n".join(["./bench: phlox did not run, or computes something else:", *wrong]))
    if wrong := gross(sizes):
        raise SystemExit("\n".join(["./bench: what does not depend on the machine's load has grown:", *wrong]))


if __name__ == "__main__":
    main()
