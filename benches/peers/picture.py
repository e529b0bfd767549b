"""A run as a picture: how long the other systems take, case by case, in units of the subject's own time."""

from pathlib import Path

import report

COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#000000"]
MARKERS = "osD^vP*X"
# Beyond these the exact ratio says nothing more.
LOW, HIGH = 0.25, 32


def draw(run: report.Run, path: Path) -> bool:
    """Writes the picture as SVG; says whether it could be drawn: it takes matplotlib and results of the subject."""
    try:
        import matplotlib
    except ImportError:
        return False
    tables = report.Tables(run)
    ratios: dict[str, dict[str, float]] = {}
    for case in run["cases"]:
        times = tables.timed(case, "median_ms")
        own = times.pop(tables.subject, None)
        if own and times:
            ratios[case] = {name: time / own for name, time in times.items()}
    if not ratios:
        return False
    matplotlib.use("svg")
    # The same figures give the same file, with words that can be searched.
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    order = sorted(ratios, key=lambda case: min(ratios[case].values()))
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.24 * len(order)), layout="constrained")
    axes.axvspan(LOW / 1.05, 1, color="#f6e8e8", zorder=0)
    axes.axvline(1, color="#444444", linewidth=1.2, zorder=1)
    for row, case in enumerate(order):
        least = min(max(min(ratios[case].values()), LOW), HIGH)
        axes.plot([1, least], [row, row], color="#bbbbbb", linewidth=2.5, solid_capstyle="butt", zorder=1)
    for name, colour, marker in zip([n for n in tables.names if n != tables.subject], COLOURS, MARKERS):
        found = [(ratios[case][name], row) for row, case in enumerate(order) if name in ratios[case]]
        places = [min(max(ratio, LOW), HIGH) for ratio, _ in found]
        rows = [row for _, row in found]
        axes.scatter(places, rows, s=26, color=colour, marker=marker, label=name, zorder=2, linewidths=0)
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_ylim(-0.7, len(order) - 0.3)
    axes.set_xscale("log", base=2)
    axes.set_xlim(LOW / 1.05, HIGH * 1.05)
    ticks = [2.0**power for power in range(-2, 6)]
    axes.set_xticks(ticks, [f"{tick:g}×" for tick in ticks[:-1]] + [f"{HIGH}× and more"])
    axes.minorticks_off()
    axes.grid(axis="both", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xlabel(f"time of a call, in units of {tables.subject}'s: to the right of 1× {tables.subject} is faster", fontsize=9)
    axes.set_title(f"{run['conditions']['processor']}, {tables.title()}", fontsize=10, loc="left")
    axes.legend(loc="lower right", fontsize=8, frameon=True, framealpha=1, edgecolor="#dddddd")
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return True
