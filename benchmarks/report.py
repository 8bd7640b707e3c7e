"""The tables in the terminal, and out/bench.json."""

from __future__ import annotations

import json
import math
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measure import Measurement

console = Console(width=131)


def shown(value: float | None, unit: str) -> str:
    """A number with a unit that fits it."""
    if value is None:
        return ""
    if unit == "of 1":
        return f"{value:.2f}"
    if unit == "B":
        return f"{value / 2**20:.0f} MB"
    for size, name in ((1e-6, "ns"), (1e-3, "µs"), (1.0, "ms")):
        if value < size:
            return f"{value / size * 1e3:.1f} {name}"
    return f"{value:.2f} s"


#: phlox's sizes divided by jax's: what is more than this has gone wrong, however busy the machine
GROSS = {"modules": 0.75, "programs": 1.0, "equations": 1.3, "bytes of StableHLO": 1.3, "bytes of HLO": 1.3}

#: Programs whose form is longer than jax's, and what is right for them in place of GROSS. Those of cumsum and sort are
#: faster on CPUs. Derivatives of eigenvectors and absolute values are right at equal eigenvalues and at infinity.
LONGER = {
    "gradient of cumsum": {"bytes of StableHLO": 1.6},
    "gradient of sort": {"bytes of HLO": 1.6},
    "gradient of eigenvalues": {"equations": 1.6},
    "gradient of fft": {"equations": 1.6, "bytes of HLO": 1.5},
}


def gross(sizes: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Sizes that have grown beyond all measure, in words."""
    found = []
    for name, by in sizes.items():
        for what, mine in by["phlox"].items():
            theirs, most = by["jax"][what], LONGER.get(name, {}).get(what, GROSS[what])
            if mine > most * theirs:
                found.append(f"{name}: {mine:.0f} {what}, jax has {theirs:.0f}; at most {most} times that is right")
    return found


def verdict(m: Measurement) -> str:
    if m.case.budget is None or m.ratio() is None:
        return ""
    return "[red]over[/red]" if m.over else "[green]ok[/green]"


class Report:
    """A table that grows while cases are measured, and what is written when all are."""

    def __init__(self) -> None:
        self.done: list[Measurement] = []
        self.group = ""

    def add(self, m: Measurement) -> None:
        """Prints the row of a case."""
        self.done.append(m)
        if m.case.group != self.group:
            self.group = m.case.group
            console.print(
                f"\n[bold]{self.group:<34}{'jax':>11}{'phlox':>11}{'torch':>11}{'compile':>11}{'numpy':>11}{'ratio':>8}{'paired':>8}{'budget':>8}"
            )
        libraries = ("jax", "phlox", "torch", "torch.compile", "numpy")
        columns = "".join(f"{shown(m.best(x), m.case.unit):>11}" for x in libraries)
        ratio, budget = m.ratio(), m.case.budget
        paired = m.paired()
        middle = "" if paired is None or m.case.unit == "of 1" else f"{paired:.2f}"
        console.print(
            f"{m.case.name.partition('/')[2]:<34}{columns}"
            f"{'' if ratio is None else f'{ratio:.2f}':>8}{middle:>8}{'' if budget is None else f'{budget:.2f}':>8}  "
            f"{verdict(m)}"
        )
        for library, error in m.errors.items():
            console.print(f"  {library}: {error[:200]}", markup=False, style="yellow")

    def others(self) -> None:
        """How kernels compare with the faster one of torch and NumPy."""
        ratios = []
        for m in self.done:
            mine, theirs = m.best("phlox"), [t for t in map(m.best, ("torch", "numpy")) if t]
            if m.case.group == "kernels" and mine and theirs:
                ratios.append(mine / min(theirs))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            slow = sum(ratio >= 2 for ratio in ratios)
            console.print(
                f"of {len(ratios)} kernels, phlox to the best of torch and NumPy: {mean:.2f} in the geometric mean, "
                f"{slow} at twice or more"
            )

    def growth(self) -> None:
        """How the time of tracing and lowering grows with the length of a program: 1 is linear."""
        rows = [m for m in self.done if m.case.group == "growth"]
        for library in ("jax", "phlox"):
            points = [(int(m.case.name.split("/")[1].split()[0]), m.best(library)) for m in rows]
            known = [(math.log(n), math.log(t)) for n, t in points if t]
            if len(known) > 1:
                (x0, y0), (x1, y1) = known[0], known[-1]
                per = points[-1][1] / points[-1][0] * 1e6  # type: ignore[operator]
                console.print(
                    f"{library}: grows as length to the {(y1 - y0) / (x1 - x0):.2f}, {per:.1f} µs an equation"
                )

    def beside(self, title: str, found: dict[str, dict[str, dict[str, float]]]) -> None:
        """What both say of programs; red where phlox's number is the larger one."""
        if not found:
            return
        table = Table(title=f"{title}: jax | phlox", title_justify="left", box=None, pad_edge=False)
        columns = list(next(iter(found.values()))["jax"])
        table.add_column("")
        for column in columns:
            table.add_column(column, justify="right")
        for name, by in found.items():
            cells = []
            for column in columns:
                theirs, mine = by["jax"][column], by["phlox"][column]
                text = f"{theirs:.4g} | {mine:.4g}"
                cells.append(f"[red]{text}[/red]" if mine > theirs else text)
            table.add_row(name, *cells)
        console.print()
        console.print(table)

    def counted(self, found: dict[str, dict[str, dict[str, float]]]) -> None:
        """One line for each thing that was counted."""
        for name, by in found.items():
            words = ", ".join(f"{what} {n:.0f} in {x}" for x, counts in by.items() for what, n in counts.items())
            console.print(f"{name}: {words}")

    def write(self, folder: Path, **found: Any) -> Path:
        """Everything that was measured, and what else was `found`, as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        cases = {
            m.case.name: {
                "budget": m.case.budget,
                "unit": m.case.unit,
                "ratio": m.ratio(),
                "paired": m.paired(),
                "best": {x: m.best(x) for x in m.samples},
                "median": {x: m.median(x) for x in m.samples},
                "errors": m.errors,
            }
            for m in self.done
        }
        path = folder / "bench.json"
        machine = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
        path.write_text(json.dumps({"machine": machine, "cases": cases, **found}, indent=1) + "\n")
        return path
