"""Datasets by name: found where the person keeps them, read, and made right or wrong by the authors' rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from reproduction.datasets.catalog import Source, source_named, sources
from reproduction.datasets.locating import VARIABLE, Data, data_path, find, unpacked
from spectral_irt.data import Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.datasets import load_lsat
from spectral_irt.errors import OptionError, ReadError, ResponseValueError
from spectral_irt.reading import read

if TYPE_CHECKING:
    import polars as pl

Cutoff = Literal["none", "authors"] | int
# A rating is above the mean when it exceeds it by more than this share of the person's mean |rating|: the sum of equal
# ratings is not always their exact multiple, and the order of summation must not decide.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset ready to be fitted.

    Attributes
    ----------
    name, title : str
    responses : Responses
        Ratings: 0 where a rating is above the mean of all by the same person, else 1, so that a larger difficulty means
        better liked (the paper's polarity). Answers: 1 = right or good.
    kind : "ratings" or "answers"
    item_means : array or None
        Mean rating of each item of `responses`; None for answers.
    item_ratings : array
        How many ratings (answers) each item has in the file.
    paper : str or None
        The row of the paper's tables that it stands for.
    notes : tuple of str
        What differs or is good to know: a stand-in, a different number of rows than published, what was dropped.
    """

    name: str
    title: str
    responses: Responses
    kind: str
    item_means: Floats | None
    item_ratings: Ints | None
    paper: str | None
    notes: tuple[str, ...] = ()


def open_dataset(name: str, data: Data = None, *, cutoff: Cutoff = "none") -> Dataset:
    """A dataset by name, read from the file as its publisher ships it or from the neutral Parquet.

    Parameters
    ----------
    name : str
        One of `available()`.
    data : path, optional
        The directory that holds the files (zipped or not), or the file itself. Default: the environment variable
        SPECTRAL_IRT_DATA.
    cutoff : "none", "authors" or int
        "none" keeps every item. "authors" drops what the authors' program drops: items, and in two datasets people,
        with few ratings. A number drops items with fewer ratings than that. People's means are taken before anything is
        dropped; everybody else stays, perhaps without answers.

    Examples
    --------
    >>> open_dataset("lsat").responses
    Responses(1,000 persons x 5 items, 5,000 responses, 76.4% right)
    """
    source = source_named(name)
    if cutoff not in ("none", "authors") and (isinstance(cutoff, str | bool) or not int(cutoff) == cutoff >= 0):
        raise OptionError(f"cutoff is {cutoff!r}; it can be 'none', 'authors' or a whole number, zero or more.")
    if source.layout == "bundled":
        responses = load_lsat()
        return _cut(source, responses, None, responses.item_counts, [], cutoff)

    place = data_path(data)
    found = find(source, place)
    if found is None:
        unsaid = f"was not looked for: say `data=`, or set {VARIABLE}"
        where = f"is not in {str(place)!r}" if place else unsaid
        raise ReadError(f"{source.title} {where}. Get {source.download} from {source.page} ({source.license}).")
    from reproduction.datasets.publishers import read_long
    from spectral_irt.reading.frame import polars_errors_named

    with unpacked(found) as path, polars_errors_named(found.name):
        frame = read_long(path, source)
        return _dataset(source, frame, found.name, cutoff)


def available(data: Data = None) -> list[Source]:
    """Every dataset that can be opened by name; `found` says where it is, or None.

    Examples
    --------
    >>> [source.name for source in available()][:3]
    ['lsat', 'uci_student', 'grades_three']
    """
    place = data_path(data)
    if place is not None and not place.is_dir():
        raise ReadError(f"{str(place)!r} is a file; name the directory that holds the datasets.")
    places = ((source, find(source, place)) for source in sources())
    return [replace(source, found=found.path if found else None) for source, found in places]


# ------------------------------------------------------------------------------ from a long table


def _dataset(source: Source, frame: pl.DataFrame, file: str, cutoff: Cutoff) -> Dataset:
    if not frame.height:
        raise ReadError(f"{file} holds no {source.kind}; download it again from {source.page}.")
    for role, called in (("person", "person"), ("item", "item")):
        if frame[role].null_count():
            row = int(frame[role].is_null().arg_max() or 0) + 1
            raise ReadError(
                f"{file}: row {row:,} has no {called}; it is damaged. Download it again from {source.page}."
            )
    try:
        answers = below_own_mean(frame) if source.kind == "ratings" else frame
        responses = read(
            answers, format="long", person="person", item="item", response="value", ordered=False, duplicates="first"
        )
    except ResponseValueError as error:
        what = str(error).removeprefix("the dataframe: ").split(". Say")[0]
        raise ResponseValueError(f"{file}: {what}; the responses of {source.title} are 0 and 1.") from None
    responses = replace(responses, source=source.title, frame_kind=None)
    counts, means = _per_item(frame, responses)
    notes = list(source.remarks)
    notes += _sizes_off(source, responses, int(frame["value"].count()), file)
    return _cut(source, responses, means if source.kind == "ratings" else None, counts, notes, cutoff)


def below_own_mean(ratings: pl.DataFrame) -> pl.DataFrame:
    """The ratings as the paper scores them: 0 above the mean of the person's ratings (liked), else 1. Of repeated
    ratings of an item by a person the first counts, in the mean too; `read` drops the others."""
    import polars as pl

    value = pl.col("value").cast(pl.Float64).fill_nan(None)
    first = value.is_not_null() & pl.struct("person", "item", value.is_null().alias("missing")).is_first_distinct()
    counted = pl.when(first).then(value)
    mean = counted.mean().over("person")
    size = counted.abs().mean().over("person")
    return ratings.with_columns((value - mean <= SLACK * size).cast(pl.Int8).alias("value"))


def _per_item(frame: pl.DataFrame, responses: Responses) -> tuple[Ints, Floats]:
    """How many values each item has, and their mean, in the order of the responses' items."""
    import polars as pl

    value = pl.col("value")
    found = frame.group_by("item").agg(value.count().alias("count"), value.cast(pl.Float64).mean().alias("mean"))
    order = pl.DataFrame({"item": pl.Series([str(label) for label in responses.items.tolist()], dtype=pl.String)})
    found = found.with_columns(pl.col("item").cast(pl.String))
    aligned = order.join(found, on="item", how="left", maintain_order="left")
    return aligned["count"].to_numpy().astype(np.int64), aligned["mean"].to_numpy().astype(np.float64)


def _sizes_off(source: Source, responses: Responses, n_rows: int, file: str) -> list[str]:
    notes = []
    again = n_rows - responses.n_responses
    if again:
        notes.append(f"{again:,} repeated {source.kind} of the same person and item: only the first of each is used.")
    sizes = (
        (source.kind, n_rows, source.rows),
        ("people", responses.n_persons, source.persons),
        ("items", responses.n_items, source.items),
    )
    off = [f"{have:,} {what} (published: {said:,})" for what, have, said in sizes if said and have != said]
    if off:
        notes.append(f"{file} has {', '.join(off)}.")
    return notes


def _cut(
    source: Source, responses: Responses, means: Floats | None, counts: Ints, notes: list[str], cutoff: Cutoff
) -> Dataset:
    if cutoff == "none":
        least_item, least_user = 0, 0
    elif cutoff == "authors":
        least_item, least_user = source.least_item, source.least_user
    else:
        least_item, least_user = int(cutoff), 0
    enough = counts >= least_item
    active = responses.counts >= least_user
    if cutoff == "authors" and source.first_users:
        active &= np.arange(responses.n_persons) < source.first_users
    if not enough.any() or not active.any():
        raise OptionError(f"{source.title} has no item with at least {least_item:,} {source.kind}; lower cutoff.")
    if not enough.all():
        notes.append(f"{int(enough.sum()):,} of {len(enough):,} items kept: at least {least_item:,} {source.kind}.")
        responses = responses.take_items(enough)
    if not active.all():
        why = f"at least {least_user:,} {source.kind}" if least_user else "the first, as in the paper"
        notes.append(f"{int(active.sum()):,} of {len(active):,} people kept: {why}.")
        responses = responses.take_persons(active)
    return Dataset(
        source.name,
        source.title,
        responses,
        source.kind,
        None if means is None else means[enough],
        counts[enough],
        source.paper,
        tuple(notes),
    )
