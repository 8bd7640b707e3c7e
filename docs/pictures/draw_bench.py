"""Draws docs/pictures/bench.svg from what the last ./bench wrote: python docs/pictures/draw_bench.py [out/bench.json].

One point for each case, phlox's time divided by jax's, in the groups of ./bench. Colours are those of draw.py.
"""

import json
import sys
from pathlib import Path

from draw import BLUE, FOLDER, INK, ORANGE, plt


def main(file: Path) -> None:
    """Draws the picture."""
    groups: dict[str, list[float]] = {}
    for name, case in json.loads(file.read_text())["cases"].items():
        if case.get("ratio"):
            groups.setdefault(name.split("/")[0], []).append(case["ratio"])
    figure, axes = plt.subplots(figsize=(7, 0.32 * len(groups) + 0.8))
    for row, ratios in enumerate(groups.values()):
        colors = [BLUE if ratio <= 1.02 else ORANGE for ratio in ratios]
        axes.scatter(
            [max(ratio, 0.01) for ratio in ratios], [row] * len(ratios), s=26, c=colors, alpha=0.7, linewidths=0
        )
    axes.axvline(1, color=INK, linewidth=1)
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.03, 0.1, 0.3, 1, 2], ["≤ 0.01", "0.03", "0.1", "0.3", "as jax", "2"])
    axes.minorticks_off()
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xlabel("phlox's time divided by jax's")
    figure.savefig(FOLDER / "bench.svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/bench.json"))
