"""Two sets of prompts, and two boards: who changed beside models of the same ability, and who moved.

Cohorts: prompts are the people of the leaderboard's Rasch model and models its items, so that a model's change on new
prompts is differential functioning between two groups of prompts (`inference.groups.dif`): how much harder the new
prompts are for all is conditioned out. Two boards: the ranks of the models that both have, each in an interval that
holds for all at once. `Leaderboard` asks for both tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from spectral_irt.data import Finding
from spectral_irt.data.block import Ints
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError, ReadError
from spectral_irt.inference.groups.dif import differential
from spectral_irt.inference.groups.sampling import Sampling, cluster_numbers
from spectral_irt.inference.ranks.intervals import sure_ranks
from spectral_irt.leaderboard.contrasts import LEVEL
from spectral_irt.reading.formats import read_one
from spectral_irt.tables import Columns
from spectral_irt.text import count, listed

if TYPE_CHECKING:
    from spectral_irt.leaderboard.board import Leaderboard

MODELS_FILE = "models.csv"
CONTRASTS_FILE = "contrasts.csv"


class Cohorts(NamedTuple):
    """Which set each prompt is in (0, 1, or -1 for neither), and what the sets are called."""

    group: Ints
    old: str
    new: str


def cohorts_of(values: NDArray[Any], name: str, since: str | None) -> Cohorts:
    """The two sets of prompts: before and since a date (or number), or the two labels there are."""
    texts = np.array(["" if value is None else str(value).strip() for value in values.tolist()], dtype=object)
    known = texts != ""
    labels = sorted(set(texts[known].tolist()))
    if since is None:
        if len(labels) != 2:
            raise OptionError(
                f"`cohort={name!r}` has {len(labels):,} values ({listed(labels)}), and two sets of prompts are "
                "compared. Say with `since=` from which value on (a date, as 2026-05-01) prompts are new."
            )
        return Cohorts(np.where(known, texts == labels[1], -1).astype(np.int64), labels[0], labels[1])
    is_new = np.full(len(texts), -1, dtype=np.int64)
    order = _in_order(texts[known].tolist(), str(since), name)
    is_new[known] = order
    if not (np.any(order == 0) and np.any(order == 1)):
        raise OptionError(f"all prompts are on one side of {since}: {name} goes from {labels[0]} to {labels[-1]}.")
    return Cohorts(is_new, f"before {since}", f"since {since}")


def _in_order(texts: list[str], since: str, name: str) -> Ints:
    """1 where a value is not before `since`: as numbers, or as dates written from the year on."""
    numbers = pl.Series([*texts, since]).cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        return (numbers[:-1] >= numbers[-1]).to_numpy().astype(np.int64)
    dates = pl.Series([*texts, since]).str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    if dates.null_count():
        odd = [text for text, date in zip([*texts, since], dates.to_list(), strict=True) if date is None]
        raise OptionError(f"`since` is for dates as 2026-05-01, or numbers; {name} has {listed(dict.fromkeys(odd))}.")
    return (dates[:-1] >= dates[-1]).to_numpy().astype(np.int64)


def cohort_columns(board: Leaderboard, cohorts: Cohorts) -> Columns:
    """Each model's own change on the new prompts, the largest fall first; see docs/reference/files.md."""
    by_prompt = board.by_prompt
    names = np.array([cohorts.old, cohorts.new, None], dtype=object)
    clusters = board._clusters
    if clusters is None and board.source.repeated:
        clusters = board.source.prompt
    sampling = Sampling()
    if clusters is not None:
        labels = np.array([None if label == "" else label for label in clusters.tolist()], dtype=object)
        sampling = Sampling(cluster=cluster_numbers(by_prompt, labels))
    found = differential(
        board.calibration, by_prompt, names[cohorts.group], reference=cohorts.old, nonuniform=False, sampling=sampling
    ).contrasts
    place = positions(found["item"], by_prompt.items)
    counts = []
    for group in (0, 1):
        some = by_prompt.take_persons(np.flatnonzero(cohorts.group == group))
        with np.errstate(divide="ignore", invalid="ignore"):
            counts.append((some.item_counts[place], (some.item_scores / some.item_counts)[place]))
    columns: Columns = {
        "model": found["item"],
        "n_old": counts[0][0],
        "n_new": counts[1][0],
        "accuracy_old": counts[0][1],
        "accuracy_new": counts[1][1],
        "change": -found["contrast"],
        "se": found["se"],
        "p": found["p"],
        "p_holm": found["p_holm"],
    }
    order = np.argsort(columns["change"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def harder(board: Leaderboard, cohorts: Cohorts) -> float:
    """By how many logits the new prompts are harder for all."""
    easiness = board.easiness
    known = np.isfinite(easiness)
    return float(easiness[known & (cohorts.group == 0)].mean() - easiness[known & (cohorts.group == 1)].mean())


def cohort_findings(board: Leaderboard) -> Iterator[Finding]:
    """Models whose change is their own."""
    columns = board.cohort_columns
    cohorts = board.cohorts
    if columns is None or cohorts is None:
        return
    more = harder(board, cohorts)
    harder_words = f"The prompts {cohorts.new} are {abs(more):.2f} logits {'harder' if more > 0 else 'easier'} for all"
    significant = columns["p_holm"] < LEVEL
    for worse, word in ((True, "worse"), (False, "better")):
        named = columns["model"][significant & ((columns["change"] < 0) == worse)].tolist()
        if named:
            do = "does" if len(named) == 1 else "do"
            sentence = (
                f"{count(len(named), 'model')} {do} {word} on prompts {cohorts.new} than models of the same ability "
                f"(Holm, 5%): {listed(named)}. {harder_words}, which is taken off."
            )
            remedy = (
                "This is a difference, not its cause, which may be old prompts in the training data as well as new "
                "prompts of another kind. See cohorts.csv."
            )
            yield Finding("cohort_differs", "warning", sentence, remedy, tuple(named))
    if not significant.any():
        yield Finding(
            "cohort_alike", "note", f"No model's own change on prompts {cohorts.new} is seen. {harder_words}."
        )


def against_columns(board: Leaderboard, folder: Path) -> Columns:
    """Ranks among the models that this board and an older one have; see docs/reference/files.md."""
    before = _table(folder / MODELS_FILE, ("model", "ability"))
    pairs = _table(folder / CONTRASTS_FILE, ("model", "other", "difference", "p_adjusted"))
    names = before["model"].cast(pl.String).to_list()
    models = np.array([str(name) for name in board.answers.persons.tolist()], dtype=object)
    place = positions(names, models.tolist())
    common = np.flatnonzero(place >= 0)
    if len(common) < 2:
        raise OptionError(
            f"{folder} and these answers have {len(common)} model in common ({listed(names)}); ranks need two."
        )
    here = place[common]
    m = len(common)
    # Both boards at half the level each, so that both hold at once in 95%.
    tests = board.contrasts_found
    sure_now = ((tests.p < LEVEL / 2) & (tests.z > 0))[np.ix_(here, here)]
    sure_before = np.zeros((m, m), dtype=bool)
    first = positions(pairs["model"].cast(pl.String).to_list(), [names[k] for k in common])
    second = positions(pairs["other"].cast(pl.String).to_list(), [names[k] for k in common])
    listed_pairs = (first >= 0) & (second >= 0)
    shown = listed_pairs & (pairs["p_adjusted"].to_numpy() < LEVEL / 2) & (pairs["difference"].to_numpy() > 0)
    sure_before[first[shown], second[shown]] = True
    low_before, high_before = sure_ranks(sure_before)
    low, high = sure_ranks(sure_now)
    moved = np.full(m, "", dtype=object)
    moved[high < low_before] = "rose"
    moved[low > high_before] = "fell"
    ability = board.ability[here]
    old = before["ability"].to_numpy()[common]
    order = np.argsort(-ability, kind="stable")
    columns: Columns = {
        "model": models[here],
        "rank_low_before": low_before,
        "rank_high_before": high_before,
        "rank_low": low,
        "rank_high": high,
        "ability_before": old - old.mean(),
        "ability": ability - ability.mean(),
        "moved": moved,
    }
    return {name: values[order] for name, values in columns.items()}


def _table(path: Path, needed: tuple[str, ...]) -> pl.DataFrame:
    if not path.is_file():
        raise ReadError(f"{str(path)!r} is not there; `against` names a folder that `leaderboard -o DIR` wrote.")

    def whole(table: Any) -> pl.DataFrame:
        frame: pl.DataFrame = table.whole()
        frame.columns = [str(name) for name in table.columns]
        return frame

    frame = read_one(str(path), "a table of an older board", whole)
    absent = [name for name in needed if name not in frame.columns]
    if absent:
        raise ReadError(f"{str(path)!r} has no column {listed(absent)}; it is no table of a leaderboard.")
    numbers = [name for name in needed if name not in ("model", "other")]
    return frame.with_columns(pl.col(numbers).cast(pl.Float64, strict=False))


def against_findings(board: Leaderboard) -> Iterator[Finding]:
    """Models whose ranks of then and now do not overlap."""
    columns = board.against_columns
    if columns is None:
        return
    words = []
    for moved in ("rose", "fell"):
        named = columns["model"][columns["moved"] == moved].tolist()
        if named:
            words.append(f"{count(len(named), 'model')} {moved}: {listed(named)}")
    among = f"Among the {len(columns['model']):,} models of both boards"
    said = "; ".join(words) if words else "none is seen to have risen or fallen"
    yield Finding("moved_models", "note", f"{among} {said} (rank intervals of both boards, all at once, 95%).")
