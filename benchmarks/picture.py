"""out/bench.png: the ratio of each case, with its budget."""

from __future__ import annotations

from pathlib import Path

from .measure import Measurement


def draw(done: list[Measurement], path: Path) -> None:
    """One bar for each case: phlox's time divided by jax's, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [(m, m.ratio()) for m in done if m.ratio() is not None]
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(9, 0.24 * len(rows) + 1.6), constrained_layout=True)
    colors = ["#c44e52" if m.over else "#4c72b0" for m, _ in rows]
    places = range(len(rows))
    axes.barh(places, [r for _, r in rows], color=colors, height=0.7, label="phlox / jax")
    marked = [(i, m.case.budget) for i, (m, _) in enumerate(rows) if m.case.budget is not None]
    axes.scatter(
        [b for _, b in marked], [i for i, _ in marked], marker="|", s=90, color="black", label="budget", zorder=3
    )
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.05, 0.1, 0.2, 0.5, 1, 2], ["0.05", "0.1", "0.2", "0.5", "1", "2"])
    axes.set_xlim(0.03, max(2.2, *(1.1 * r for _, r in rows if r)))
    axes.set_yticks(places, [m.case.name for m, _ in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("time of phlox divided by time of jax (least of all samples)")
    axes.set_title("How long phlox makes you wait", loc="left")
    axes.legend(loc="lower right")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=130)
    plt.close(figure)
