"""Draws the pictures of docs/guides/control-flow.md: python docs/pictures/draw_control_flow.py [NAME ...].

Needs matplotlib and phlox. All that they show is recorded from runs. Colours are those of draw.py.
"""

import sys
from typing import Any

import numpy as np
from draw import BLUE, GREEN, INK, ORANGE, main, plt
from matplotlib.colors import to_rgba
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._ops.control import compact, loop, loop_states, row_chunks

TURNS, STATES = 40, 8
ROWS, SLOW = 1000, 600


# --- a loop, and its derivative in reverse --------------------------------------------------------------


def _events() -> list[tuple[str, int]]:
    """The turns of a loop and the steps of its derivative, in the order in which they run."""
    events: list[tuple[str, int]] = []

    def record(kind: str, number: Any) -> None:
        phlox.debug.callback(lambda number: events.append((kind, int(number))), number, ordered=True)

    @phlox.custom_vjp
    def turn(carry: Any) -> Any:
        record("turn", carry[0])
        return carry[0] + 1, 1.01 * carry[1]

    def backward(number: Any, cotangent: Any) -> Any:
        record("step", number)
        return ((None, 1.01 * cotangent[1]),)

    turn.defvjp(lambda carry: ((carry[0] + 1, 1.01 * carry[1]), carry[0]), backward)
    run = lambda x: lax.while_loop(lambda carry: carry[0] < TURNS, turn, (0, x), checkpoints=STATES)[1]  # noqa: E731
    phlox.grad(run)(1.0)
    phlox.effects_barrier()
    return events


def _stored_turns(turns: int) -> list[int]:
    """The turns before which the state is in memory at the end of a loop of so many turns."""
    cond = phlox.make_jaxpr(lambda i: i < turns)(np.int32(0))
    body = phlox.make_jaxpr(lambda i: i + 1)(np.int32(0))
    programs = {"cond_jaxpr": cond, "cond_nconsts": 0, "body_jaxpr": body, "body_nconsts": 0}
    _, rows, count, stride = loop_states.while_states.bind(np.int32(0), **programs, rows=STATES)
    return np.asarray(rows)[: -(-int(count) // int(stride))].tolist()


def turns() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, width_ratios=(1, 3.4))
    lengths = (8, 10, 20, TURNS)
    for x, length in enumerate(lengths):
        stored = _stored_turns(length)
        left.plot([x, x], [0, length], color=INK, linewidth=0.8)
        left.plot([x] * len(stored), stored, "s", color=INK, markersize=4.5)
    left.set_xticks(range(len(lengths)), [str(n) for n in lengths])
    left.set(xlabel="turns of the loop", ylabel="number of the turn", ylim=(-2, TURNS + 1), xlim=(-0.5, 3.5))
    left.set_title("stored states", color=INK, fontsize=9)
    events = _events()
    points = list(enumerate(events))
    groups = (
        ("turn", BLUE, [(i, number) for i, (kind, number) in points if kind == "turn" and i < TURNS]),
        ("turn again", ORANGE, [(i, number) for i, (kind, number) in points if kind == "turn" and i >= TURNS]),
        ("derivative of a turn", GREEN, [(i, number) for i, (kind, number) in points if kind == "step"]),
    )
    for number in _stored_turns(TURNS):
        right.axhline(number, color=INK, linewidth=0.8, linestyle=":")
    for label, color, pairs in groups:
        right.plot(*zip(*pairs, strict=True), "o", color=color, markersize=2.6, label=f"{len(pairs)} × {label}")
    right.set(xlabel="operations, in the order in which they run", xlim=(-3, len(events) + 2))
    legend = right.legend(frameon=False, fontsize=9, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 0.98))
    for text in legend.get_texts():
        text.set_color(INK)
    figure.tight_layout()


# --- rows of a batch by branch --------------------------------------------------------------------------


def branch_rows() -> None:
    count, taken = 32, (3, 17, 22)
    index = np.isin(np.arange(count), taken).astype(np.int32)
    size = row_chunks.chunk_size(count)
    layout = row_chunks._layout(jnp.asarray(index), count, 2, size)
    branch, source = np.asarray(layout.branch), np.asarray(layout.source).reshape(-1, size)
    positions = set(np.asarray(layout.position).tolist())
    figure, panels = plt.subplots(1, 3, figsize=(7.4, 2.6))
    every = np.arange(count).reshape(-1, size)
    _rows_of_branch(panels[0], every, np.zeros(len(every), int), index, 1, "cheap branch")
    _rows_of_branch(panels[1], every, np.ones(len(every), int), index, 0, "expensive branch")
    _rows_of_branch(panels[2], source, branch, index, None, "both branches", positions)
    needed = int(sum(size for b in branch if b < 2))
    panels[0].text(0, -2.1, f'"select": {2 * count} rows', fontsize=12)
    panels[2].text(0, -2.1, f'"split": {needed} rows', fontsize=12)
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.9, wspace=0.12)


def _rows_of_branch(
    axes: Any, rows: Any, branch: Any, index: Any, unused: int | None, title: str, positions: set[int] | None = None
) -> None:
    """Chunks of rows in the colours of the branch that computes them, pale where the result is not used."""
    cells: dict[tuple[str, float], list[Path]] = {}
    for i, (chunk, number) in enumerate(zip(rows, branch, strict=True)):
        if number > 1:  # no rows are left for this chunk
            continue
        for j, row in enumerate(chunk):
            position = i * rows.shape[1] + j
            used = index[row] == number if positions is None else position in positions
            cell = Affine2D().translate(j, i).transform_path(Path.unit_rectangle())
            cells.setdefault(((BLUE, ORANGE)[number], 0.45 if used else 0.06), []).append(cell)
            axes.text(j + 0.5, i + 0.53, str(row), ha="center", va="center", fontsize=6.5, alpha=1 if used else 0.6)
    for (color, strength), paths in cells.items():  # one path for many cells makes a small file
        face = to_rgba(color, strength)
        axes.add_patch(PathPatch(Path.make_compound_path(*paths), facecolor=face, edgecolor=color, linewidth=0.7))
    axes.text(0, -0.6, title, fontsize=10)
    axes.set(xlim=(-0.2, rows.shape[1] + 0.2), ylim=(5.2, -2.9), aspect="equal")
    axes.axis("off")


# --- rows of a batched loop that finish early -----------------------------------------------------------


def _stages(lengths: Any) -> list[tuple[int, int]]:
    """(rows of the program, number of its turns), for a loop with so many turns for each row."""
    stages: list[tuple[int, int]] = []

    def bind(cond: Any, cond_consts: Any, body: Any, body_consts: Any, carry: Any) -> list[Any]:
        outs = loop.bind_loop(loop.while_p, cond, cond_consts, body, body_consts, carry)
        stages.append((len(carry[0]), int(jnp.max(outs[0])) - int(jnp.max(carry[0]))))
        return outs

    one = (np.int32(0), np.int32(0))
    cond = phlox.make_jaxpr(lambda i, last: i < last)(*one)
    body = phlox.make_jaxpr(lambda i, last: (i + 1, last))(*one)
    carry = [jnp.zeros(ROWS, jnp.int32), jnp.asarray(lengths, jnp.int32)]
    last = compact.CompactedLoop(cond, body, (), (), bind).run(ROWS, [], carry)
    np.testing.assert_array_equal(last[0], lengths)
    return stages


def finished_rows() -> None:
    lengths = 20 + np.random.default_rng(0).exponential(40, ROWS).astype(int)
    lengths[517] = SLOW
    stages = _stages(lengths)
    time = np.arange(SLOW + 1)
    active = [(lengths > t).sum() for t in time]
    figure, axes = plt.subplots(figsize=(7.4, 3.2))
    ends = np.cumsum([0, *(n for _, n in stages)])
    computed = sum(rows * n for rows, n in stages)
    axes.plot([0, SLOW, SLOW], [ROWS, ROWS, 0.7], color=ORANGE, linestyle="--", linewidth=1.2)
    axes.plot(time[:-1], active[:-1], color=GREEN, drawstyle="steps-post")
    heights = [rows for rows, _ in stages]
    axes.stairs(heights, ends, baseline=None, color=BLUE, linewidth=2)
    axes.set(yscale="log", xlabel="turn", ylabel="rows", ylim=(0.7, 2000), xlim=(0, SLOW * 1.01))
    axes.set_yticks(sorted({1, 10, 100, *heights}), [str(n) for n in sorted({1, 10, 100, *heights})])
    axes.minorticks_off()
    labels = (
        (f"all rows until the slowest ends: {ROWS * SLOW:,} rows computed", ORANGE),
        (f"size of the program: {computed:,} rows computed", BLUE),
        (f"rows that go on: {lengths.sum():,}", GREEN),
    )
    for y, (text, color) in zip((480, 250, 130), labels, strict=True):
        axes.text(SLOW * 0.98, y, text, color=color, ha="right", fontsize=10)
    figure.tight_layout()


if __name__ == "__main__":
    main([turns, branch_rows, finished_rows], sys.argv[1:])
