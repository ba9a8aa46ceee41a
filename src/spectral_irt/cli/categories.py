"""Answers in ordered categories on the command line: how they are read and modeled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

from spectral_irt.cli.clusters import cluster
from spectral_irt.cli.options import MEMORY, Reading, panel
from spectral_irt.cli.progress import Progress
from spectral_irt.errors import OptionError, ResponseValueError, SpectralIrtError, check_option
from spectral_irt.estimators.by_name import MODELS

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.responses import Responses
    from spectral_irt.responses.ordered import OrderedResponses

_categories = panel("Answers in more than two categories")
# Options of reading that ordered answers have too; the others say what is right and what is wrong.
READ = ("format", "user", "item", "response", "orient", "duplicates", "ignore", "items", "sheet", "encoding", "missing")


@dataclass(frozen=True)
class Recoding:
    """What answers in ordered categories are called."""

    recode: Annotated[
        str | None,
        _categories(
            metavar="LABEL,...",
            help="Labels from the lowest category to the highest, as in 'never,sometimes,often'; labels that mean the "
            "same are joined by =.",
        ),
    ] = None
    reverse: Annotated[
        list[str], _categories(metavar="ITEM,...", help="Items to turn round: their highest category is the lowest.")
    ] = field(default_factory=list)

    @property
    def turned(self) -> list[str]:
        """The items to turn round."""
        return [name for names in self.reverse for name in names.split(",")]


@dataclass(frozen=True)
class Categories(Recoding):
    """How answers in ordered categories are read and modeled."""

    model: Annotated[
        str | None,
        _categories(
            metavar="|".join(MODELS),
            help="rasch: right and wrong. pcm: the partial credit model, thresholds for each item. rsm: the rating "
            "scale model, thresholds at the same distances in all items. By default rasch, or pcm where the answers "
            "are whole numbers in more than two categories.",
        ),
    ] = None
    unused: Annotated[
        str | None,
        _categories(
            metavar="collapse|error|keep",
            help="Categories of an item that nobody used: number the answers without them (default), complain, or "
            "keep those that other items have (the default of rsm).",
        ),
    ] = None

    @property
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.model in ("pcm", "rsm") or self.recode is not None or bool(self.reverse) or self.unused is not None

    def check(self) -> None:
        check_option("model", self.model, (None, *MODELS))
        if self.model == "rasch" and (self.recode is not None or self.reverse or self.unused is not None):
            raise OptionError("--recode, --reverse and --unused are for ordered categories; leave out --model rasch.")


def changed(group: Any) -> list[str]:
    """Options of a group that differ from their defaults."""
    default = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(default, one.name)]


def read_categories(
    files: Sequence[str], reading: Reading, recoding: Recoding, progress: Progress, **options: Any
) -> OrderedResponses:
    """The ordered answers in these files."""
    from spectral_irt.engines import set_memory
    from spectral_irt.responses.read_ordered import read_ordered

    foreign = [name for name in changed(reading) if name not in (*READ, *MEMORY)]
    if foreign:
        said = ", ".join(f"--{name.replace('_', '-')}" for name in foreign)
        raise OptionError(f"these answers are in ordered categories, and {said} is for right and wrong answers only.")
    set_memory(reading.memory, reading.spill)
    how: dict[str, Any] = {name: getattr(reading, name) for name in READ} | options
    how |= {"recode": recoding.recode, "reverse": recoding.turned, "client": cluster(reading.dask, progress)}
    return read_ordered(reading.source(files), progress=progress.reading, **how)


def read_for_bank(
    bank: Bank, files: Sequence[str], reading: Reading, recoding: Recoding, progress: Progress
) -> Responses:
    """Answers to items of a bank, in the kind that the bank has."""
    from spectral_irt.bank.ordered_bank import OrderedBank, refuse_ordered
    from spectral_irt.responses.read_ordered import looks_ordered

    if isinstance(bank, OrderedBank):
        if reading.largest_component:
            raise OptionError("--largest-component is for a calibration; a bank has a common scale already.")
        return read_categories(files, reading, recoding, progress, unused="collapse", span=bank.span)
    if recoding.recode is not None or recoding.reverse:
        raise OptionError("--recode and --reverse are for ordered categories, and the bank has right and wrong items.")
    try:
        return reading.read_any(files, progress)
    except ResponseValueError as error:
        try:
            found = read_categories(files, reading, recoding, progress)
        except SpectralIrtError:
            raise error from None
        if looks_ordered(found):
            refuse_ordered(bank, found)
        raise


def read_either(
    files: Sequence[str], reading: Reading, recoding: Recoding, progress: Progress, *, ordered: bool, binary: bool
) -> Responses:
    """Answers of the kind that was said; where nothing was, ordered ones if they look like it."""
    from spectral_irt.responses.read_ordered import looks_ordered

    if ordered:
        return read_categories(files, reading, recoding, progress)
    try:
        return reading.read(files, progress)
    except ResponseValueError as error:
        if binary:
            raise
        try:
            found = read_categories(files, reading, recoding, progress)
        except SpectralIrtError:
            raise error from None
        if not looks_ordered(found):
            raise
        return found
