"""Answers in ordered categories on the command line: how they are read and modeled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

from spectral_irt.cli.options import Reading, panel
from spectral_irt.cli.progress import Progress
from spectral_irt.errors import OptionError, check_option
from spectral_irt.estimators.by_name import MODELS

if TYPE_CHECKING:
    from spectral_irt.bank import Bank
    from spectral_irt.data import Responses

_categories = panel("Answers in more than two categories")


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
    def said(self) -> bool:
        """Whether the options say that answers are in ordered categories."""
        return self.recode is not None or bool(self.reverse)

    def options(self, ordered: bool | None) -> dict[str, Any]:
        """Options of `read`: whether answers are ordered, where that is known, and what was said of categories."""
        turned = [name for names in self.reverse for name in names.split(",")]
        return {"ordered": ordered, "recode": self.recode, "reverse": turned}


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
        return self.model in ("pcm", "rsm") or super().said or self.unused is not None

    def how(self) -> dict[str, Any]:
        """Options of `read`; where nothing was said of categories, the answers tell whether they are ordered."""
        if not self.said:
            return {"ordered": False if self.model == "rasch" else None}
        return {**self.options(True), "unused": self.unused or ("keep" if self.model == "rsm" else "collapse")}

    def check(self) -> None:
        check_option("model", self.model, (None, *MODELS))
        if self.model == "rasch" and (self.recode is not None or self.reverse or self.unused is not None):
            raise OptionError("--recode, --reverse and --unused are for ordered categories; leave out --model rasch.")


def changed(group: Any) -> list[str]:
    """Options of a group that differ from their defaults."""
    default = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(default, one.name)]


def read_for_bank(
    bank: Bank, files: Sequence[str], reading: Reading, recoding: Recoding, progress: Progress
) -> Responses:
    """Answers to items of a bank, in the kind that the bank has."""
    if not bank.right_or_wrong:
        codes = bank.calibration.codes
        codes = codes[codes == codes]
        span = int(codes.min()), int(codes.max())
        return reading.read_any(files, progress, span=span, **recoding.options(True))
    if recoding.said:
        raise OptionError("--recode and --reverse are for ordered categories, and the bank has right and wrong items.")
    responses = reading.read_any(files, progress)
    bank.refuse_ordered(responses)
    return responses
