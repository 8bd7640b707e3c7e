"""./bench --native table: the kernels beside all libraries, as the page docs/kernels.md, with the code of each row."""

from __future__ import annotations

import ast
import dataclasses
import datetime
import importlib.metadata
import math
import os
import platform
from pathlib import Path

from .case import Case, load
from .cases import kernels
from .measure import NATIVE, OPTIONAL, ROOT, Measurement, measure
from .report import console, shown

#: the columns, in order
COLUMNS = ("phlox", NATIVE, "jax", "torch", "torch.compile", "numpy", "numba")
PAGE = ROOT / "docs" / "kernels.md"
_ABOUT = """\
# Kernels beside other libraries

One call of each function on arrays that are there, in processes that take turns. A time is the least of all samples;
the fastest of a row is bold. *ratio* is phlox with phlox-kernels, divided by the best of the other libraries. Each row
links to its code. `./bench --native table` measures all rows, and writes this page.
"""


def write_table(python: str, rounds: int) -> None:
    """Measures the kernels, and writes the page."""
    if not OPTIONAL:
        raise SystemExit("./bench table: the table needs phlox-kernels; instead: ./bench --native table")
    done = []
    for result in measure([_in_all(case) for case in load().values() if case.group == "kernels"], python, rounds):
        done.append(result)
        console.print(f"{result.case.name:<50}", *(f"{x} {shown(result.best(x), 's')}" for x in result.samples))
        for library, error in result.errors.items():
            console.print(f"  {library}: {error[:200]}", markup=False, style="yellow")
    PAGE.write_text(page(done))
    console.print(f"{len(done)} kernels; {PAGE}")


def _in_all(case: Case) -> Case:
    """The case for all columns: the compilers of torch where torch has it, and both forms of phlox."""
    compiled = ("torch.compile",) if "torch" in case.libraries else ()
    return dataclasses.replace(case, libraries=(*case.libraries, NATIVE, *compiled))


def page(done: list[Measurement]) -> str:
    """The page, from what was measured."""
    statements = _statements()
    numbers = {statement: i for i, statement in enumerate(dict.fromkeys(map(statements.get, _lines(done))), 1)}
    rows = [_row(m, numbers[statements[kernels.LINES[m.case.name]]]) for m in done]
    head = ["", *(x.replace("torch.compile", "compiled torch") for x in COLUMNS), "ratio"]
    table = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
    codes = [f'<a id="code-{i}"></a>\n\n```py\n{code}\n```\n' for code, i in numbers.items()]
    return "\n".join([_ABOUT, _machine(), _summary(done), *table, "", "## Code", "", *codes])


def _lines(done: list[Measurement]) -> list[int]:
    return [kernels.LINES[m.case.name] for m in done]


def _statements() -> dict[int, str]:
    """The statement of the file of kernels that each line is part of."""
    text = Path(kernels.__file__).read_text()
    lines = text.splitlines()
    statements = {}
    for node in ast.parse(text).body:
        assert node.end_lineno is not None
        code = "\n".join(lines[node.lineno - 1 : node.end_lineno]).replace("  # fmt: skip", "")
        statements.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), code))
    return statements


def _row(m: Measurement, code: int) -> str:
    times = {x: m.best(x) for x in COLUMNS}
    least = min(t for t in times.values() if t)
    cells = [f"**{shown(t, 's')}**" if t == least else shown(t, "s") for t in times.values()]
    ratio = _ratio(m)
    name = m.case.name.partition("/")[2]
    return f"| [{name}](#code-{code}) | {' | '.join(cells)} | {'' if ratio is None else f'{ratio:.2f}'} |"


def _ratio(m: Measurement, *others: str) -> float | None:
    """phlox with kernels, divided by the best of `others`: by default all other libraries."""
    mine = m.best(NATIVE)
    theirs = [t for x in others or COLUMNS[2:] if (t := m.best(x))]
    return mine / min(theirs) if mine and theirs else None


def _summary(done: list[Measurement]) -> str:
    known = [ratio for m in done if (ratio := _ratio(m)) is not None]
    to_jax = [ratio for m in done if (ratio := _ratio(m, "jax")) is not None]
    twice, slower = sum(ratio >= 2 for ratio in known), sum(ratio > 1.05 for ratio in to_jax)
    best, jax = _mean(known), _mean(to_jax)
    return (
        f"In the geometric mean over {len(known)} kernels phlox with phlox-kernels takes {best:.2f} of the time of the "
        f"best other library, and {jax:.2f} of jax's. {twice} take twice the best or more; {slower} take more than "
        "1.05 of jax's time.\n"
    )


def _mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _machine() -> str:
    names = ("jax", "torch", "numpy", "numba")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    today = datetime.datetime.now(tz=datetime.UTC).date()
    cores = f"{platform.machine()}, {os.cpu_count()} cores{_vectors()}"
    return f"Measured on {today}: {cores}, Python {platform.python_version()}, {versions}.\n"


def _vectors() -> str:
    """The widest vectors of the processor, which decide about the times of functions of elements."""
    try:
        features = Path("/proc/cpuinfo").read_text(errors="replace").split()
    except OSError:
        return ""
    return next((f" with {name}" for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in features), "")
