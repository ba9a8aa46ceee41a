"""Pictures of the experiments, as SVG and PNG. matplotlib is imported when one is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.trials import Row

# One color and mark per method in every figure (Okabe and Ito's colors, which the color-blind tell apart).
LOOKS: dict[str, tuple[str, str]] = {
    "spectral (paper)": ("#0072B2", "s"),
    "spectral (default)": ("#D55E00", "o"),
    "spectral (default, by estimate)": ("#E69F00", "o"),
    "spectral (default, by lower end)": ("#D55E00", "D"),
    "spectral (pairs, nothing added)": ("#0072B2", "s"),
    "CMLE": ("#000000", "^"),
    "CMLE as the paper's baseline computes it": ("#7F7F7F", "x"),
    "MMLE": ("#009E73", "v"),
    "MMLE, prior N(0, 1)": ("#009E73", "v"),
    "MMLE, prior sd estimated": ("#56B4E9", "P"),
    "JMLE": ("#CC79A7", "*"),
    "PMLE": ("#56B4E9", "P"),
    "Bayesian (VB)": ("#009E73", "v"),
    "Choppin": ("#009E73", "v"),
    "eigenvector": ("#CC79A7", "*"),
    "two-phase (ICML 2024)": ("#0072B2", "s"),
    "spectral (chain alone)": ("#009E73", "v"),
}
BAND = 1.96  # standard errors of the mean on either side
FLOOR_LABEL = "floor (Cramér-Rao, abilities known)"
FLOOR = {"color": "0.45", "linestyle": ":", "linewidth": 1.2}
DPI = 110
BEST, WORST = 0.85, 1.4  # errors over CMLE's that a picture shows
FIGURES = ("svg", "png")


@dataclass(frozen=True)
class Panel:
    """One of the drawings side by side in a figure.

    Attributes
    ----------
    title : str
    axis, label : str
        The column along x, and what it is called.
    name : str
        Rows of this panel are drawn; "" for all rows.
    slope, theorem : float, str
        The slope that a theorem gives the error on log-log axes, and which theorem.
    measure : "error" or "largest"
        The l2 error, or that of the worst item, which grows with the logarithm of the number of items.
    """

    title: str
    axis: str = "n"
    label: str = "persons n"
    name: str = ""
    slope: float = math.nan
    theorem: str = ""
    measure: str = "error"

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Those that belong here."""
        return [row for row in rows if not self.name or row["panel"] == self.name]


# ------------------------------------------------------------------------------------- the figure itself


def new_figure(columns: int, width: float = 5.2, height: float = 4.3, rows: int = 1) -> tuple[Any, list[Any]]:
    """An empty figure with so many panels side by side, in so many rows; the panels row by row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def save(figure: Any, path: Path, target: Path) -> None:
    """The figure in a file, of the kind that the target's ending says; the same figure gives the same bytes."""
    import matplotlib

    if target.suffix == ".svg":
        with matplotlib.rc_context({"svg.hashsalt": target.stem}):
            figure.savefig(path, format="svg", metadata={"Date": None})
    else:
        figure.savefig(path, format="png", dpi=DPI, metadata={"Software": None})


def _plain(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, color="0.25")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _log_axis(axes: Any, which: str, values: Iterable[float]) -> None:
    """A logarithmic axis with ticks at the values that were run, in plain figures."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_locator(FixedLocator(sorted(set(values))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def short(value: float) -> str:
    """A number for an axis.

    >>> [short(x) for x in (0.05, 1, 500, 20_000)]
    ['0.05', '1', '500', '20k']
    """
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _y_ticks(axes: Any) -> None:
    """A logarithmic y axis with round ticks, in plain figures."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high / low < 8 else (1.0, 2.0, 5.0) if high / low < 1000 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _series(rows: Sequence[Row]) -> dict[str, list[Row]]:
    lines: dict[str, list[Row]] = {}
    for row in rows:
        lines.setdefault(row["method"], []).append(row)
    return lines


def _line(axes: Any, rows: Sequence[Row], axis: str, measure: str, method: str, label: str | None = None) -> None:
    """One method: mean with marks, and a 95% band."""
    color, mark = LOOKS[method]
    rows = sorted(rows, key=lambda row: row[axis])
    x = np.array([row[axis] for row in rows], dtype=float)
    mean, error = (np.array([row[name] for row in rows], dtype=float) for name in (measure, f"{measure}_se"))
    style = "--" if method in ("CMLE", "eigenvector") else "-"
    axes.plot(x, mean, style, color=color, marker=mark, markersize=5.5, linewidth=1.5, label=label or method)
    band = BAND * np.nan_to_num(error)
    axes.fill_between(x, np.maximum(mean - band, mean / 3), mean + band, color=color, alpha=0.16, linewidth=0)


def _legend_below(figure: Any, axes: Any, columns: int) -> None:
    lines, labels = axes.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)


# --------------------------------------------------------------------------------- simulations, rates and the proof


def simulation_figure(rows: Sequence[Row], panels: Sequence[Panel], claim: str, measure: str) -> Any:
    """l2 errors with the floor under them, or seconds: one line per method, one legend for all panels.

    Errors stand a second time over those of CMLE, where lines that lie on each other come apart.
    """
    errors = measure == "error" and any(row["method"] == "CMLE" for row in rows)
    single = len(panels) == 1
    if not errors:
        figure, every = new_figure(len(panels), 6.4 if single else 5.2, 4.6)
    elif single:
        figure, every = new_figure(2, 5.2, 4.6)
    else:
        figure, every = new_figure(len(panels), 5.2, 3.9, rows=2)
    for axes, panel in zip(every, panels, strict=False):
        _errors_or_seconds(axes, panel, panel.rows(rows), measure)
    for axes, panel in zip(every[len(panels) :], panels, strict=True) if errors else ():
        _over_cmle(axes, panel, panel.rows(rows))
    figure.suptitle(claim, fontsize=11.5)
    _legend_below(figure, every[0], 3)
    return figure


def _errors_or_seconds(axes: Any, panel: Panel, rows: Sequence[Row], measure: str) -> None:
    errors = measure == "error"
    lines = _series(rows)
    for method, line in lines.items():
        _line(axes, line, panel.axis, measure, method)
    first = sorted(next(iter(lines.values())), key=lambda row: row[panel.axis])
    x = [row[panel.axis] for row in first]
    if errors:
        axes.plot(x, [row["floor"] for row in first], label=FLOOR_LABEL, zorder=1, **FLOOR)
    axis_label = r"$\ell_2$ error $\Vert\hat\beta-\beta^*\Vert_2$" if errors else "seconds of processor time"
    _plain(axes, panel.title, panel.label, axis_label)
    _log_axis(axes, "x", x)
    _y_ticks(axes)


def _over_cmle(axes: Any, panel: Panel, rows: Sequence[Row]) -> None:
    """Errors over those of CMLE; what is far above leaves the picture, and its name says so."""
    lines = _series(rows)
    base = {row[panel.axis]: row for row in lines["CMLE"]}
    for method, line in lines.items():
        color, mark = LOOKS[method]
        mine = sorted((row for row in line if row[panel.axis] in base), key=lambda row: row[panel.axis])
        x = np.array([row[panel.axis] for row in mine], dtype=float)
        ratio = np.array([row["error"] / base[row[panel.axis]]["error"] for row in mine])
        style = "--" if method == "CMLE" else "-"
        axes.plot(x, ratio, style, color=color, marker=mark, markersize=5.5, linewidth=1.5, clip_on=True)
        if ratio[-1] > WORST:
            inside = np.flatnonzero(ratio <= WORST)
            where = (x[inside[-1]], ratio[inside[-1]]) if len(inside) else (x[0], WORST)
            axes.annotate(
                f"{method}: up to {ratio.max():.2g}",
                where,
                xytext=(4, -10),
                textcoords="offset points",
                fontsize=8,
                color=color,
            )
    _plain(axes, "the same, over CMLE's error", panel.label, "error / CMLE's")
    _log_axis(axes, "x", base)
    axes.set_ylim(BEST, WORST)


def rates_figure(rows: Sequence[Row], slopes: Sequence[Row], panels: Sequence[Panel], claim: str) -> Any:
    """Errors on log-log axes with the theorems' slopes, and both floors."""
    figure, every = new_figure(len(panels), 4.5, 4.8)
    for axes, panel in zip(every, panels, strict=True):
        lines = _series(panel.rows(rows))
        for method, line in lines.items():
            _line(axes, line, panel.axis, panel.measure, method)
        first = sorted(next(iter(lines.values())), key=lambda row: row[panel.axis])
        x = np.array([row[panel.axis] for row in first], dtype=float)
        lowest = first[-1][panel.measure]
        if panel.measure == "error":
            lowest = _floors(axes, x, first)
        promised = 1.7 * first[-1][panel.measure] * (x / x[-1]) ** panel.slope
        if panel.measure == "largest":
            promised = promised * np.sqrt(np.log(x) / np.log(x[-1]))
        axes.plot(x, promised, color="#B8860B", linewidth=1.3, label="the theorem's slope")
        second = (x[1], promised[1])
        above_or_below = 4 if panel.slope < 0 else -14
        axes.annotate(
            panel.theorem, second, xytext=(6, above_or_below), textcoords="offset points", fontsize=8.5, color="#8B6508"
        )
        fitted = [f"{row['method']}: {row['slope']:.2f}" for row in slopes if row["panel"] == panel.name]
        if panel.measure == "error":
            axes.text(
                0.03,
                0.03,
                "slopes found\n" + "\n".join(fitted),
                transform=axes.transAxes,
                fontsize=7.5,
                va="bottom",
                bbox={"facecolor": "white", "edgecolor": "0.85", "alpha": 0.85, "boxstyle": "round"},
            )
        error_label = {"error": r"$\ell_2$ error", "largest": r"error of the worst item, $\ell_\infty$"}[panel.measure]
        _plain(axes, panel.title, panel.label, error_label)
        _log_axis(axes, "x", x)
        low, high = axes.get_ylim()
        axes.set_yscale("log")
        axes.set_ylim(max(low, lowest / 4), high)
        _y_ticks(axes)
    figure.suptitle(claim, fontsize=11.5)
    _legend_below(figure, every[0], 3)
    return figure


def _floors(axes: Any, x: Any, line: Sequence[Row]) -> float:
    """Both floors under the l2 error; the lowest value of the theorem's."""
    axes.plot(x, [row["floor"] for row in line], label=FLOOR_LABEL, **FLOOR)
    of_theorem = [row["theorem_floor"] for row in line]
    label = r"Theorem 3, centered: $\sqrt{4(m-1)/(np)}$"
    axes.plot(x, of_theorem, label=label, color="0.45", linestyle="-.", linewidth=1.1)
    return min(of_theorem)


def gap_figure(rows: Sequence[Row], share: float) -> Any:
    """Each term of the perturbation bound against people, beside the lemma's bound on it."""
    panels = (
        (
            "Spectral gap, and error of the chain",
            (
                ("gap", r"gap $\mu^*(P^*)$", "#000000", "-", "o"),
                ("half_gap", "half the gap: the proof needs the error below it", "#000000", "--", ""),
                ("chain_error", r"error $\Vert P-P^*\Vert_2$", "#D55E00", "-", "s"),
                ("gap_bound", "what the lemma guarantees of the gap (a lower bound)", "#000000", ":", ""),
            ),
        ),
        (
            "Projected error",
            (
                ("projected", r"$\Vert\pi^{*\top}(P-P^*)\Vert_2$", "#0072B2", "-", "o"),
                ("projected_bound", "the lemma's upper bound, few items", "#0072B2", ":", ""),
                ("projected_bound_many", "the lemma's upper bound, many items", "#56B4E9", ":", ""),
            ),
        ),
        (
            "Error of the stationary distribution",
            (
                ("pi_error", r"$\Vert\pi-\pi^*\Vert_2$", "#009E73", "-", "o"),
                (
                    "perturbation_bound",
                    "upper bound: projected / (gap - chain error), as measured",
                    "#009E73",
                    "--",
                    "s",
                ),
            ),
        ),
    )
    mine = [row | {"half_gap": row["gap"] / 2} for row in rows if row["p"] == share]
    mine.sort(key=lambda row: row["n"])
    figure, every = new_figure(len(panels), 4.4, 4.6)
    x = [row["n"] for row in mine]
    for axes, (title, lines) in zip(every, panels, strict=True):
        for name, label, color, style, mark in lines:
            y = [row[name] for row in mine]
            axes.plot(x, y, style, color=color, marker=mark, markersize=4.5, linewidth=1.5, label=label)
        _plain(axes, title, "persons n", "")
        _log_axis(axes, "x", x)
        _y_ticks(axes)
        axes.tick_params(axis="x", labelsize=8.5)
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    m = mine[0]["m"]
    figure.suptitle(f"The terms of the proof, measured: {m} items from -1 to 1, p = {share:g}", fontsize=11.5)
    return figure


# --------------------------------------------------------------------------------------------- real data


def benchmark_figure(rows: Sequence[Row], title: str) -> Any:
    """One line per dataset, one mark per method; the paper's value hollow."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    measures = (("auc", "AUC"), ("loglik", "log-likelihood"), ("top25", "top-25 accuracy"), ("seconds", "CPU seconds"))
    from_below = {name: len(datasets) - 1 - k for k, name in enumerate(datasets)}
    figure, every = new_figure(len(measures), 3.6, 1.9 + 0.34 * len(datasets))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    shift = {name: 0.3 - 0.6 * k / max(1, len(methods) - 1) for k, name in enumerate(methods)}
    for axes, (name, label) in zip(every, measures, strict=True):
        for row in rows:
            color, mark = LOOKS[row["method"]]
            y = from_below[row["dataset"]] + shift[row["method"]]
            said = row[f"paper_{name}"]
            if row["method"].startswith("spectral (default"):
                said = float("nan")  # the paper's value once, beside our run of the paper's estimator
            _mark(axes, row[name], row[f"{name}_se"], said, y, color, mark, log=name == "seconds")
        _plain(axes, label, "", "")
        axes.set_yticks(list(from_below.values()), list(from_below) if axes is every[0] else [""] * len(datasets))
        axes.set_ylim(-0.6, len(datasets) - 0.4)
        for y in from_below.values():
            axes.axhline(y - 0.5, color="0.92", linewidth=0.7, zorder=0)
        if name == "seconds":
            axes.set_xscale("log")
        else:
            axes.locator_params(axis="x", nbins=5)
    figure.suptitle(f"{title} (hollow: the paper's numbers)", fontsize=12)
    figure.legend(handles=_method_handles(methods), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _mark(axes: Any, value: float, error: float, said: float, y: float, color: str, mark: str, *, log: bool) -> None:
    bar = 0.0 if log or error != error else BAND * error
    axes.errorbar([value], [y], xerr=[bar], fmt=mark, color=color, markersize=4.5, elinewidth=0.9, zorder=3)
    if said == said:
        axes.plot([said], [y], mark, markerfacecolor="none", markeredgecolor=color, markersize=6, zorder=2)


def _method_handles(methods: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    looks: Mapping[str, tuple[str, str]] = {name: LOOKS[name] for name in methods}
    return [
        Line2D([], [], color=color, marker=mark, linestyle="", markersize=5.5, label=name)
        for name, (color, mark) in looks.items()
    ]


def variants_figure(rows: Sequence[Row]) -> Any:
    """AUC and top-25 accuracy of each reading of the paper, one line per dataset."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    variants = list(dict.fromkeys(row["variant"] for row in rows))
    colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
    figure, every = new_figure(2, 5.0, 1.9 + 0.5 * len(datasets))
    for axes, (name, label) in zip(every, (("auc", "AUC"), ("top25", "top-25 accuracy")), strict=True):
        for k, variant in enumerate(variants):
            mine = [row for row in rows if row["variant"] == variant]
            y = [len(datasets) - 1 - datasets.index(row["dataset"]) + 0.27 - 0.18 * k for row in mine]
            bars = [BAND * row[f"{name}_se"] if row[f"{name}_se"] == row[f"{name}_se"] else 0.0 for row in mine]
            x = [row[name] for row in mine]
            axes.errorbar(
                x, y, xerr=bars, fmt="osvD"[k % 4], color=colors[k % 4], markersize=5, elinewidth=1, label=variant
            )
        _plain(axes, label, "", "")
        names = datasets[::-1] if axes is every[0] else [""] * len(datasets)
        axes.set_yticks(range(len(datasets)), names)
        axes.set_ylim(-0.6, len(datasets) - 0.4)
        axes.locator_params(axis="x", nbins=6)
    figure.suptitle("The paper's estimator in four readings", fontsize=11.5)
    _legend_below(figure, every[0], 2)
    return figure
