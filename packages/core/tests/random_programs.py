"""Runs random programs in phlox and in the real jax, and makes those small on which the two disagree.

    python random_programs.py --seed 7              # one program: its source and both outcomes
    python random_programs.py --start 2000 --forever

docs/random-programs.md says more.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

if __name__ == "__main__":  # XLA reads its environment once, and an unlimited run must not fill the disk
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("PHLOX_ENABLE_COMPILATION_CACHE", "0")
    os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")

import jax
import ml_dtypes
import numpy as np

import judge
import phlox
from random_grammar import draw
from random_program_data import Block, Program, Statement, constant_text

_DERIVATIVES = re.compile("grad|jvp|vjp|linearize|hessian|jac")


#: Errors of jax, by their text, where phlox may give a result, or say that there is no derivative, instead.
MORE_LENIENT = (
    # phlox refuses only if the result of that function is used
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function",
    # the same, where a linearized function is differentiated
    "Differentiation rule for 'custom_lin' not implemented",
    # jacrev of a function without results, which jacfwd of jax takes
    "at least one array or dtype is required",
)


class Disagreement(AssertionError):
    """phlox and jax differ on a program."""


def tolerance(source: str) -> float:
    """How far right answers may lie apart, relative to the largest number: it follows from the narrowest floats."""
    if "bfloat16" in source:
        return 6e-2
    if "float16" in source:
        return 1e-2
    return 1e-6 if "enable_x64=True" in source and not re.search("float32|complex64", source) else 3e-4


def run(source: str, module: Any, x64: bool) -> tuple[Any, Exception | None]:
    """(result, error) of a program in a library."""
    names: dict[str, Any] = {"np": np, "bfloat16": ml_dtypes.bfloat16}
    exec(compile(source, "<program>", "exec"), names)
    with module.enable_x64(x64), np.errstate(all="ignore"):
        return judge.outcome(names["program"], module, ())


def compare(mine: Any, theirs: Any, bound: float, weak: bool) -> None:
    """Asserts that two results agree in structure, classes, shapes, dtypes, values and (if asked) weak types."""
    structure, expected = str(phlox.tree.structure(mine)), str(jax.tree.structure(theirs))
    assert structure == expected, f"{structure}, jax has {expected}"
    pairs = list(zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True))
    for a, b in pairs:
        assert isinstance(a, phlox.Array) or not isinstance(b, jax.Array), f"a {type(a).__name__}, no Array"
    hosts = [(judge.to_host(a), judge.to_host(b)) for a, b in pairs]
    wide = lambda x: x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    sizes = [abs(wide(y)) for _, (y, name, _) in hosts if name in judge.TOLERANCE]
    scale = max([1.0, *(float(s[np.isfinite(s)].max(initial=0)) for s in sizes)])
    for i, ((x, x_dtype, x_weak), (y, y_dtype, y_weak)) in enumerate(hosts):
        what = f"leaf {i}"
        assert x.shape == y.shape, f"{what}: shape {x.shape}, jax has {y.shape}"
        assert x_dtype == y_dtype, f"{what}: dtype {x_dtype}, jax has {y_dtype}"
        assert not weak or x_weak == y_weak, f"{what}: weak_type {x_weak}, jax has {y_weak}"
        if x_dtype not in judge.TOLERANCE:
            same = x == y
        else:
            same = np.isclose(wide(x), wide(y), rtol=bound, atol=bound * scale, equal_nan=True)
        assert same.all(), f"{what}: {x.tolist()}, jax has {y.tolist()} (tolerance {bound}, scale {scale})"


def check(program: Program) -> str:
    """Compares the libraries on a program: "agree", or "refused" where both raise. Raises `Disagreement`."""
    source = program.source()
    theirs, their_error = run(source, jax, program.x64)
    mine, my_error = run(source, phlox, program.x64)
    try:
        if my_error is None and their_error is None:
            compare(mine, theirs, tolerance(source), not _DERIVATIVES.search(source))
            return "agree"
        is_lenient = my_error is None or isinstance(my_error, phlox.errors.DerivativeError)
        if is_lenient and any(text in str(their_error) for text in MORE_LENIENT):
            return "refused"
        judge.same_kind(my_error, their_error, "errors")
        return "refused"
    except Exception as error:
        raise Disagreement(f"{type(error).__name__}: {error}") from error


def fails(program: Program) -> str | None:
    try:
        check(program)
    except Disagreement as error:
        return str(error)
    return None


# --- making a program smaller ------------------------------------------------------------------------------


def blocks_of(block: Block) -> Iterator[Block]:
    yield block
    for statement in block.body:
        for inner in statement.blocks:
            yield from blocks_of(inner)


def _names(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]+\d+\b", text))


def _pruned(program: Program) -> Program:
    """Without statements that nobody reads."""
    while True:
        read = _names(" ".join(s for b in blocks_of(program.main) for s in (b.result, *(t.text for t in b.body))))
        count = 0
        for block in blocks_of(program.main):
            kept = [s for s in block.body if s.name in read]
            count += len(block.body) - len(kept)
            block.body = kept
        if not count:
            return program


def _kind(failure: str) -> str:
    """What must stay the same while a program shrinks: the beginning of the message, without numbers."""
    kind, _, text = failure.partition(": ")
    return kind + (re.sub(r"[\d.\-e+]+", "#", text)[:25] if kind == "AssertionError" else "")


def smaller(program: Program) -> Iterator[Program]:
    """Programs that are one step smaller, the greatest steps first."""
    for i in range(len(program.outers)):
        candidate = program.copy()
        del candidate.outers[i]
        yield candidate
    for name in sorted(_names(program.main.result)):
        for text in (name, f"({name},)"):
            if len(text) < len(program.main.result):
                candidate = program.copy()
                candidate.main.result = text
                yield _pruned(candidate)
    places = [(i, j) for i, b in enumerate(blocks_of(program.main)) for j in reversed(range(len(b.body)))]
    types = {s.name: s.type for b in blocks_of(program.main) for s in b.body}
    for i, j in places:
        original = list(blocks_of(program.main))[i].body[j]
        options = [constant_text(original.type)]
        options += [n for n in sorted(_names(original.text)) if types.get(n) == original.type]
        for text in options:
            if len(text) < len(" ".join(original.lines())) - len(original.name) - 3:
                candidate = program.copy()
                list(blocks_of(candidate.main))[i].body[j] = Statement(original.name, original.type, text)
                yield _pruned(candidate)


def shrink(program: Program, failure: str, seconds: float = 60) -> tuple[Program, str]:
    """A smaller program with the same failure, and the failure."""
    end = time.monotonic() + seconds
    wanted = _kind(failure)
    while True:
        for candidate in smaller(program):
            if time.monotonic() > end:
                return program, failure
            found = fails(candidate)
            if found is not None and _kind(found) == wanted:
                program, failure = candidate, found
                break
        else:
            return program, failure


def report(program: Program, failure: str) -> str:
    """What a failing test says: a small program, where it came from, and both outcomes."""
    small, reason = shrink(program, failure)
    source = small.source()
    outcomes = [run(source, module, small.x64) for module in (phlox, jax)]
    lines = [f"phlox and jax differ on the program of seed {program.seed}, made small:", source, reason]
    for name, (result, error) in zip(("phlox", "jax"), outcomes, strict=True):
        lines.append(f"{name}: {result if error is None else f'{type(error).__name__}: {error}'}")
    return "\n".join([*lines, f"python packages/core/tests/random_programs.py --seed {program.seed}"])


# --- the command -------------------------------------------------------------------------------------------


def forget() -> None:
    """Drops compiled programs: a process may map 65530 pieces of memory, and each program takes several."""
    phlox.clear_caches()
    jax.clear_caches()
    gc.collect()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="run this program alone, and show it")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--count", type=int, default=2000, help="how many programs (default 2000)")
    parser.add_argument("--forever", action="store_true", help="go on until interrupted")
    options = parser.parse_args(argv)
    if options.seed is not None:
        print(draw(options.seed).source())
        options.start, options.count = options.seed, 1
    seeds = itertools.count(options.start) if options.forever else range(options.start, options.start + options.count)
    counts = {"agree": 0, "refused": 0, "differ": 0}
    begin = time.monotonic()
    try:
        for i, seed in enumerate(seeds, 1):
            program = draw(seed)
            failure = None
            try:
                answer = check(program)
            except Disagreement as error:
                answer, failure = "differ", str(error)
            counts[answer] += 1
            if failure is not None:
                print(f"\n{report(program, failure)}\n", flush=True)
            if i % 200 == 0:
                print(f"{i} programs in {time.monotonic() - begin:.0f} s: {counts}", flush=True)
                forget()
    except KeyboardInterrupt:
        pass
    print(f"{counts}")
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
