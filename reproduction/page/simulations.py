"""What the simulated experiments found, in words and numbers taken from their tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from reproduction import gap, partial_credit, rates
from reproduction.page.markdown import Full, between, figures, grid, number, pick, ratios, table, values
from reproduction.simulations import AS_PAPER_DOES, DEFAULT, FREE_PRIOR, PAIRS, PAPER, PRIOR, SMALL_NU
from reproduction.trials import Row


def _fall(rows: Sequence[Row], method: str) -> float:
    """By which factor the error falls from the fewest to the most persons."""
    mine = sorted(pick(rows, method=method), key=lambda row: row["n"])
    return mine[0]["error"] / mine[-1]["error"]


def _ends(rows: Sequence[Row]) -> tuple[int, int]:
    persons = values(rows, "n")
    return min(persons), max(persons)


def figure_1a(rows: Sequence[Row]) -> list[str]:
    few, many = _ends(rows)
    last = {row["method"]: row["error"] for row in pick(rows, n=many)}
    return [
        "**The paper:** with few items JMLE is inconsistent; CMLE, MMLE with the right prior and the spectral method "
        "do equally well.",
        f"**Found:** confirmed. From {few:,} to {many:,} persons JMLE's error falls by a factor of "
        f"{figures(_fall(rows, 'JMLE'))}, that of the others by "
        f"{between(_fall(rows, name) for name in last if name != 'JMLE')}. At {many:,} persons JMLE's error is "
        f"{figures(last['JMLE'] / last['CMLE'])} times CMLE's, that of the paper's spectral estimator "
        f"{figures(last[PAPER] / last['CMLE'], 3)} times, that of our default "
        f"{figures(last[DEFAULT] / last['CMLE'], 3)} times.",
        grid(rows, "n", "error", "l2 error", lambda x: figures(x, 3)),
    ]


def figure_1b(rows: Sequence[Row]) -> list[str]:
    few, many = _ends(rows)
    last = {row["method"]: row["error"] for row in pick(rows, n=many)}
    return [
        "**The paper:** when abilities spread twice as far as its prior says, MMLE is inconsistent.",
        f"**Found:** confirmed if the prior's standard deviation is fixed at 1: from {few:,} to {many:,} persons its "
        f"error falls by a factor of {figures(_fall(rows, PRIOR))}, CMLE's by {figures(_fall(rows, 'CMLE'))}. But no "
        f"program has to fix it: with the standard deviation estimated as well, MMLE's error is "
        f"{figures(last[FREE_PRIOR] / last['CMLE'], 3)} times CMLE's at {many:,} persons (fixed: "
        f"{figures(last[PRIOR] / last['CMLE'])} times).",
        grid(rows, "n", "error", "l2 error", lambda x: figures(x, 3)),
    ]


def figure_1c(rows: Sequence[Row]) -> list[str]:
    by_users, by_share = pick(rows, panel="persons"), pick(rows, panel="share shown")
    ours = ratios(by_users, DEFAULT, "CMLE", "error", "n") + ratios(by_share, DEFAULT, "CMLE", "error", "p")
    theirs = ratios(by_users, PAPER, "CMLE", "error", "n") + ratios(by_share, PAPER, "CMLE", "error", "p")
    over_floor = [row["error"] / row["floor"] for row in rows if row["method"] == "CMLE"]
    wrong = ratios(by_users, AS_PAPER_DOES, "CMLE", "error", "n")
    shown, persons = by_users[0]["p"], by_share[0]["n"]
    complete = ratios(pick(by_share, p=1.0), AS_PAPER_DOES, "CMLE", "error", "p")
    return [
        "**The paper:** in larger data with missing answers CMLE degrades, and the spectral method does not.",
        f"**Found:** CMLE does not degrade. Its error is {between(over_floor)} times the Cramér-Rao floor at every "
        f"number of people and every share of items shown, and it is matched only by estimators that come close to it: "
        f"our default has {between(ours, lambda x: figures(x, 3))} times its error, the paper's spectral estimator "
        f"{between(theirs, lambda x: figures(x, 3))} times.",
        f"What degrades is the baseline that the paper calls CMLE. Its program takes, for every person, the symmetric "
        f"function over all items, not over those the person answered, which is the same as counting every missing "
        f"answer as wrong. Computed that way the error is {between(wrong)} times that of CMLE with a share of "
        f"{shown:g} shown" + (f", and {figures(complete[0], 3)} times with complete data." if complete else "."),
        grid(by_users, "n", "error", f"l2 error, p = {shown:g}", lambda x: figures(x, 3)),
        grid(by_share, "p", "error", f"l2 error, {persons:,} persons", lambda x: figures(x, 3)),
    ]


def figure_1d(rows: Sequence[Row]) -> list[str]:
    _, many = _ends(rows)
    last = {row["method"]: row["seconds"] for row in pick(rows, n=many)}
    slowest = max(last, key=lambda name: last[name])
    return [
        "**The paper:** the spectral method is comparatively scalable.",
        f"**Found:** confirmed, and all of these estimators are fast when each is a sum over people: at {many:,} "
        f"people our default takes {figures(last[DEFAULT])} s, the paper's estimator {figures(last[PAPER])} s and the "
        f"slowest, {slowest}, {figures(last[slowest])} s of processor time (point estimates without "
        "standard errors).",
        grid(rows, "n", "seconds", "seconds of processor time", figures),
    ]


def figure_2(rows: Sequence[Row]) -> list[str]:
    few, _ = _ends(rows)
    first = pick(rows, n=few)[0]
    every = [ratio for name in ("Choppin", "eigenvector") for ratio in ratios(rows, name, PAPER, "error", "n")]
    return [
        "**The paper:** on complete data Choppin's and the eigenvector method are about as accurate as the spectral "
        "method; they need every pair of items compared.",
        f"**Found:** confirmed: their errors are {between(every, lambda x: figures(x, 3))} times that of the paper's "
        f"estimator (our default: {between(ratios(rows, DEFAULT, PAPER, 'error', 'n'), lambda x: figures(x, 3))} "
        f"times). With {few:,} people the matrix of ratios had no hole in {first['trials']} of {first['trials_drawn']} "
        "trials; the averages are over the trials without one.",
        grid(rows, "n", "error", "l2 error", lambda x: figures(x, 3)),
    ]


def error_rates(rows: Sequence[Row], slopes: Sequence[Row]) -> list[str]:
    lines = []
    for panel in rates.PANELS:
        for row in pick(slopes, panel=panel.name) if panel.measure == "error" else []:
            found = [number(row[name], 2) for name in ("slope", "slope_worst_item")]
            lines.append([panel.title, row["axis"], row["method"], *found, number(row["theorem_slope"], 1)])
    most = max(values(rows, "n"))
    near = [row["error"] / row["floor"] for row in rows if row["method"] == DEFAULT and row["p"] == 1]
    by_items = pick(rows, panel="worst item")
    return [
        "**The paper:** the error is of order sqrt(m) / sqrt(n p²) for few items (Theorem 1), sqrt(m) / sqrt(n p) for "
        "many (Theorem 2), and no estimator can beat sqrt(4 m / (n p)) (Theorem 3).",
        f"**Found:** the slopes on log-log axes are those of the theorems (up to {most:,} people; by least squares "
        f"over the points of the figure). With complete data our default's error is {between(near)} times the floor.",
        table(["setting", "against", "estimator", "slope", "slope, worst item", "theorem"], lines, left=3),
        "**The authors' next paper** (Nguyen & Zhang, AISTATS 2023, arXiv 2303.06234) bounds the error of every single "
        "item by the best rate, 1 / sqrt(n p), up to a logarithm.",
        f"**Found:** the error of the worst item falls with the slopes of the l2 error. From {_items(by_items, min):,} "
        f"to {_items(by_items, max):,} items the l2 error of the estimator of the theorems grows by a factor of "
        f"{_growth(by_items, 'error')}, the error of its worst item by {_growth(by_items, 'largest')}; sqrt(log m) "
        f"grows by {figures(_root_log(by_items), 3)}, and CMLE's worst item by "
        f"{_growth(by_items, 'largest', 'CMLE')}.",
        grid(by_items, "m", "largest", "error of the worst item", lambda x: figures(x, 3)),
    ]


def _items(rows: Sequence[Row], end: Callable[[Iterable[int]], int]) -> int:
    return end(values(rows, "m"))


def _growth(rows: Sequence[Row], measure: str, method: str = PAIRS) -> str:
    """By which factor the measure grows from the fewest to the most items."""
    mine = sorted(pick(rows, method=method), key=lambda row: row["m"])
    return figures(mine[-1][measure] / mine[0][measure], 3)


def _root_log(rows: Sequence[Row]) -> float:
    return math.sqrt(math.log(_items(rows, max)) / math.log(_items(rows, min)))


def credit(rows: Sequence[Row]) -> list[str]:
    def over(method: str, to: str) -> str:
        every = [
            ratio
            for panel in values(rows, "panel")
            for ratio in ratios(pick(rows, panel=panel), method, to, "error", "n")
        ]
        return between(every, lambda x: figures(x, 3))

    complete, sampled = (pick(rows, panel=panel) for panel in ("complete", "share"))
    shown = sampled[0]["p"]
    return [
        "**Nguyen & Zhang (ICML 2024, PMLR 235)** have a spectral algorithm for partial credit in two phases: a chain "
        "for each level of thresholds, then the levels side by side (`paper.two_phase`, here with nu = "
        f"{partial_credit.PROGRAM_NU:g}, as in their program). They report it as accurate as other methods and much "
        "faster.",
        f"**Found:** its error is {over(partial_credit.TWO_PHASE, 'CMLE')} times that of conditional maximum "
        f"likelihood; that of our chain, which joins all levels, {over(partial_credit.CHAIN, 'CMLE')} times; that of "
        f"our default, which goes on from the chain, {over(DEFAULT, 'CMLE')} times.",
        grid(complete, "n", "error", "l2 error of all thresholds, complete", lambda x: figures(x, 3)),
        grid(sampled, "n", "error", f"l2 error of all thresholds, p = {shown:g}", lambda x: figures(x, 3)),
    ]


def proof_terms(rows: Sequence[Row], trials: Sequence[Row]) -> list[str]:
    mine = sorted(pick(rows, p=gap.SHARES[0]), key=lambda row: row["n"])
    last, first = mine[-1], mine[0]
    usable = [row for row in trials if row["perturbation_bound"] == row["perturbation_bound"]]
    inside = sum(row["pi_error"] <= row["perturbation_bound"] for row in usable)
    slack = [row["perturbation_bound"] / row["pi_error"] for row in rows]
    needed = next((row["n"] for row in mine if row["chain_error"] < row["gap"] / 2), None)
    names = ("gap", "gap_bound", "chain_error", "projected", "projected_bound", "pi_error", "perturbation_bound")
    lines = [[f"{row['n']:,}", *(figures(row[name]) for name in names)] for row in mine]
    return [
        "**The paper:** ‖π − π*‖ ≤ ‖π*ᵀ(P − P*)‖ / (gap − ‖P − P*‖), and its lemmas bound each term.",
        f"**Found:** the inequality holds in {inside:,} of the {len(usable):,} trials (of {len(trials):,}) in which "
        f"its denominator is positive, and with the terms as measured it is on average only {between(slack)} times too "
        "large. The lemmas' constants are far away: the "
        f"gap is {figures(last['gap'])}, the lemma promises {figures(last['gap_bound'])}; at {last['n']:,} persons the "
        f"projected error is {figures(last['projected'])}, the lemma allows {figures(last['projected_bound'])}. "
        + (
            f"‖P − P*‖ is below half the gap, what the proof needs, from {needed:,} persons on."
            if needed
            else f"‖P − P*‖ stays above half the gap up to {last['n']:,} persons."
        ),
        Full(table(["persons", "gap", "lemma", "‖P − P*‖", "projected", "lemma", "‖π − π*‖", "bound"], lines, left=0)),
        f"({first['m']} items with difficulties from {-gap.REACH:g} to {gap.REACH:g}, every item shown to all.)",
    ]


def about_settings() -> str:
    return (
        f"The paper draws difficulties from N(0, 1) and abilities from N(0, σ²) and prints neither the numbers of "
        f"items nor of persons; ours are in the captions. On simulated data its estimator runs with nu = {SMALL_NU:g}, "
        "as its authors' program does."
    )


# --------------------------------------------------------------------------------------- in one line each


def joint_stays(rows: Sequence[Row]) -> str:
    few, many = _ends(rows)
    last = {row["method"]: row["error"] for row in pick(rows, n=many)}
    return (
        f"from {few:,} to {many:,} persons its error falls by a factor of {figures(_fall(rows, 'JMLE'))}, CMLE's by "
        f"{figures(_fall(rows, 'CMLE'))}; it ends at {figures(last['JMLE'] / last['CMLE'])} times CMLE's."
    )


def prior_stays(rows: Sequence[Row]) -> str:
    _, many = _ends(rows)
    last = {row["method"]: row["error"] for row in pick(rows, n=many)}
    return (
        f"{figures(last[PRIOR] / last['CMLE'])} times CMLE's error at {many:,} persons. With the spread estimated, as "
        f"programs do, it is {figures(last[FREE_PRIOR] / last['CMLE'], 3)} times."
    )


def fast(rows: Sequence[Row]) -> str:
    _, many = _ends(rows)
    last = {row["method"]: row["seconds"] for row in pick(rows, n=many)}
    return (
        f"{figures(last[PAPER])} s of processor time as printed and {figures(last[DEFAULT])} s for our default at "
        f"{many:,} persons."
    )


def does_not_degrade(rows: Sequence[Row]) -> str:
    over_floor = [row["error"] / row["floor"] for row in rows if row["method"] == "CMLE"]
    return f"its error is {between(over_floor)} times the Cramér-Rao floor at every share of items shown."


def baseline(rows: Sequence[Row]) -> str:
    wrong = ratios(pick(rows, panel="persons"), AS_PAPER_DOES, "CMLE", "error", "n")
    return f"it counts missing answers as wrong, and has {between(wrong)} times the error of CMLE."


def printed(rows: Sequence[Row]) -> str:
    by_users, by_share = pick(rows, panel="persons"), pick(rows, panel="share shown")
    theirs, ours = (
        ratios(by_users, name, "CMLE", "error", "n") + ratios(by_share, name, "CMLE", "error", "p")
        for name in (PAPER, DEFAULT)
    )
    return (
        f"{between(theirs, lambda x: figures(x, 3))} times CMLE's error with missing data, our default "
        f"{between(ours, lambda x: figures(x, 3))}."
    )
