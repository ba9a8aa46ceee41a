"""Bank: a calibration kept: its items, its scale, how it was made, and what data it has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectral_irt.bank.components import is_measured
from spectral_irt.bank.recognition import Hashes, Salt, digest_of, nobody
from spectral_irt.calibration import LOGITS, Z95, Calibration, Provenance, Scale
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import Labels, label_array, positions
from spectral_irt.errors import BankError, OptionError, listed
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.scores.reliability import sample_of_people
from spectral_irt.numerics import fixed
from spectral_irt.persons.abilities import COLLAPSED, abilities
from spectral_irt.tables import make_table

if TYPE_CHECKING:
    from spectral_irt.bank.linking import Link

FEWEST = 30  # people: with fewer the spread of abilities is anybody's guess
ITEM_COLUMNS = ("difficulty", "se", "status", "n", "n_right", "information", "anchored", "group", "level", "pull")


@dataclass(frozen=True)
class Population:
    """Mean and standard deviation of the abilities, in logits, and how many people say so (0: given by hand)."""

    mean: float
    sd: float
    users: int = 0

    @classmethod
    def given(cls, mean_and_sd: tuple[float, float]) -> Population:
        mean, sd = (float(number) for number in mean_and_sd)
        if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
            raise OptionError(f"`population` is {mean:g},{sd:g}; it is a mean and a standard deviation above zero.")
        return cls(mean, sd)

    @classmethod
    def of(cls, responses: Responses, difficulty: Floats) -> Population | None:
        """Estimated from these answers (of a sample of the people where there are very many); None of too few."""
        if np.count_nonzero(responses.counts) < FEWEST:
            return None
        found = abilities(sample_of_people(responses), difficulty, "eap")
        users = int((found.n > 0).sum())
        if users < FEWEST or found.prior is None or found.prior[1] <= COLLAPSED:
            return None
        return cls(*found.prior, users)


@dataclass(frozen=True)
class DataSet:
    """Data that a bank has seen: their fingerprint, their size, and how they came in."""

    digest: str
    source: str
    users: int
    items: int
    responses: int
    how: str

    @classmethod
    def of(cls, responses: Responses, how: str, salt: Salt | None = None) -> DataSet:
        counts = responses.n_persons, responses.n_items, responses.n_responses
        return cls(digest_of(responses, salt), responses.source, *counts, how)

    def is_in(self, bank: Bank, responses: Responses) -> DataSet | None:
        """These data as the bank has them already, as far as it can tell."""
        plain = DataSet.of(responses, self.how)
        for old in bank.data:
            same = old.users, old.items, old.responses
            if old.digest and (
                old.digest == self.digest != plain.digest
                or (old.digest == plain.digest and same == (plain.users, plain.items, plain.responses))
            ):
                return old
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Bank:
    """A saved calibration.

    Make one with `Bank.from_fit(fit, responses)`; keep it with `save` and `load`. A bank
    is never changed: `update`, `rescale` and a link give a new one.

    Attributes
    ----------
    items : array of labels
    difficulty, se : float arrays
        In logits, whatever the scale; larger = harder; NaN without an estimate.
    status : array of str
    n, n_right : int arrays
        How many answers each item has had, and how many right.
    information : float array
        What the answers told about each item.
    anchored : bool array
        Items whose difficulty was fixed, not estimated. An update leaves them where they are.
    group : int array
        Which items are on one scale: items of different groups are linked by no answers. 0 is the group whose items
        have the status "ok".
    scale : Scale
        How difficulties and abilities are reported.
    estimator, settings : str, mapping
        How the difficulties were estimated.
    data : tuple of DataSet
        Everything that went in.
    findings : tuple of Finding
    prior_precision : float
        Precision of the prior of the items' distances from their levels, where answers are few; 0 is none.
    level : float array
        The mean of the other items that an item's people met, in logits; by default the mean of all.
    pull : float array
        What the prior pulls each item with, against its answers; 0 without one, the default.
    matrix : float array or None
        The information matrix, kept for up to 2,000 items: what `update` needs where test forms are connected by few
        items.
    population : Population or None
        Mean and standard deviation of the abilities of the people it was calibrated with; the prior of "eap".
    users, salt_check : uint64 array, people x 2, and str
        Keyed hashes by which `update` knows people again, and by which it knows the salt; empty without a salt.
    version : str
        Of the package that made it.
    origin : (str, str) or None
        The folder it was read from or saved to, and the checksum it had there: `save` replaces no other.

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> answers = datasets.load_lsat()
    >>> bank = Bank.from_fit(SpectralRasch().fit(answers), answers)
    >>> bank
    <Bank: 5 items, 1,000 people, 5,000 responses, difficulty -1.2... to 1.24 logits>
    >>> bank.rescale(mean=500, unit=50).measure.round().tolist()
    [437.0, 524.0, 562.0, 508.0, 469.0]
    """

    items: Labels
    difficulty: Floats
    se: Floats
    status: NDArray[Any]
    n: Ints
    n_right: Ints
    information: Floats
    anchored: NDArray[np.bool_]
    group: Ints
    estimator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    scale: Scale = LOGITS
    data: tuple[DataSet, ...] = ()
    findings: tuple[Finding, ...] = ()
    prior_precision: float = 0.0
    level: Floats = field(default_factory=lambda: np.zeros(0))
    pull: Floats = field(default_factory=lambda: np.zeros(0))
    matrix: Floats | None = None
    population: Population | None = None
    users: Hashes = field(default_factory=nobody)
    salt_check: str = ""
    version: str = ""
    origin: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        known = self.difficulty[self.known]
        for name, value in (("level", known.mean() if len(known) else 0.0), ("pull", 0.0)):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(len(self.items), value))
        for name in ("items", *ITEM_COLUMNS):
            values = getattr(self, name)
            if len(values) != len(self.items):
                raise BankError(f"{name} has {len(values):,} values for {len(self.items):,} items.")
            object.__setattr__(self, name, fixed(values))

    def __repr__(self) -> str:
        known = self.difficulty[self.known]
        spread = f", difficulty {known.min():.2f} to {known.max():.2f} logits" if len(known) else ""
        counts = f"{self.n_items:,} items, {self.n_persons:,} people, {int(self.n.sum()):,} responses"
        return f"<{type(self).__name__}: {counts}{spread}>"

    # ------------------------------------------------------------------------------------- what it holds

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def n_persons(self) -> int:
        return sum(data.users for data in self.data)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Items that have a difficulty."""
        return np.isfinite(self.difficulty)

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Items that answers have placed, not the prior alone."""
        return self.known & is_measured(self.status)

    @property
    def n_groups(self) -> int:
        """How many groups of items there are that nothing links."""
        return len(np.unique(self.group[self.measured]))

    @property
    def measure(self) -> Floats:
        """Difficulties as they are reported."""
        return self.scale.measure(self.difficulty)

    def item_columns(self) -> dict[str, NDArray[Any]]:
        """The items as columns: label, difficulty, se, interval (as reported), counts, status."""
        difficulty, se = self.measure, self.scale.width(self.se)
        return {
            "item": self.items,
            "difficulty": difficulty,
            "se": se,
            "ci_low": difficulty - Z95 * se,
            "ci_high": difficulty + Z95 * se,
            "n": self.n,
            "score": self.n_right,
            "p_correct": np.divide(self.n_right, self.n, out=np.full(self.n_items, np.nan), where=self.n > 0),
            "status": self.status,
            "information": self.information,
            "anchored": self.anchored,
        }

    def table(self, frame_kind: str | None = None) -> Any:
        """The items as a dataframe, on the scale of the bank."""
        return make_table(self.item_columns(), frame_kind)

    @property
    def calibration(self) -> Calibration:
        """The calibration that the bank keeps; with responses it makes an `Analysis`."""
        return Calibration(thresholds=self.difficulty, threshold_se=self.se, **self._of_items())

    def _of_items(self) -> dict[str, Any]:
        """What a calibration says of items and of itself, whatever their answers are."""
        return {
            "labels": self.items,
            "status": self.status,
            "n": self.n,
            "score": self.n_right,
            "item_information": self.information,
            "scale": self.scale,
            "findings": self.findings,
            "provenance": Provenance(estimator=self.estimator, settings=self.settings, version=self.version),
            "further": {"anchored": self.anchored} if self.anchored.any() else {},
        }

    def in_my_words(self, responses: Responses) -> Responses:
        """The responses with items called as in this bank, where labels differ by their type alone (1 and "1")."""
        where = positions(responses.items, self.items)
        mine, theirs = responses.items.tolist(), self.items.tolist()
        names = [theirs[k] if k >= 0 else label for label, k in zip(mine, where.tolist(), strict=True)]
        if names == mine and all(type(a) is type(b) for a, b in zip(names, mine, strict=True)):
            return responses
        return replace(responses, items=label_array(names))

    # --------------------------------------------------------------------------------------- on disk

    def save(self, folder: str | Path, *, tell: Callable[[str], None] | None = None) -> Path:
        """Write the bank to a folder, complete or not at all; a bank that was there is replaced.

        A bank that was loaded from this folder, or saved there before, replaces only what it was then: if somebody
        else has saved another since, that is an error, and theirs stays. While another program is writing it, this
        one waits; `tell` is told so.
        """
        from spectral_irt.bank.storage import save

        return save(self, folder, tell)

    @classmethod
    def load(cls, folder: str | Path) -> Bank:
        """Read a bank; whatever is missing, damaged or of another version is an error that says so.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from spectral_irt import SpectralRasch, datasets
        >>> answers = datasets.load_lsat()
        >>> with TemporaryDirectory() as folder:
        ...     _ = Bank.from_fit(SpectralRasch().fit(answers), answers).save(f"{folder}/lsat")
        ...     len(Bank.load(f"{folder}/lsat").items)
        5
        """
        from spectral_irt.bank.storage import load

        return load(folder)

    # ------------------------------------------------------------------------------------- new banks

    @classmethod
    def from_fit(cls, fit: Calibration | RaschEstimator, responses: Any, salt: Any = None) -> Bank:
        """The bank of a fitted estimator; see `to_bank`."""
        from spectral_irt.bank.build import to_bank

        return to_bank(fit, responses, salt)

    def rescale(
        self,
        mean: float = 0.0,
        sd: float | None = None,
        *,
        unit: float | None = None,
        abilities: ArrayLike | None = None,
    ) -> Bank:
        """The bank with another scale of report: the difficulties in logits stay as they are.

        Parameters
        ----------
        mean, sd : float
            What the items, or the `abilities` if given, shall have as mean and standard deviation: 500 and 100.
        unit : float, optional
            Instead of `sd`: what a logit is worth; a logit of 0 is then reported as `mean`. Without either, 1.
        abilities : float array, optional
            Abilities in logits that shall have this mean and standard deviation.
        """
        if sd is not None and unit is not None:
            raise OptionError("give sd (the spread on the new scale) or unit (what a logit is worth), not both.")
        if sd is None and abilities is not None:
            raise OptionError("abilities set the scale together with sd; give sd as well.")
        for name, value in (("mean", mean), ("sd", sd), ("unit", unit)):
            if value is not None and (not np.isfinite(value) or (name != "mean" and value <= 0)):
                raise OptionError(f"{name} is {value}; it must be a number{'' if name == 'mean' else ' above zero'}.")
        if sd is None:
            return replace(self, scale=Scale(float(mean), float(unit or 1.0)))
        values = self.difficulty if abilities is None else np.asarray(abilities, dtype=float)
        values = values[np.isfinite(values)]
        spread = float(values.std()) if len(values) else 0.0
        if spread == 0:
            what = "difficulties" if abilities is None else "abilities"
            raise OptionError(f"the {what} do not differ, so they cannot get the sd {sd}; give unit instead.")
        per_logit = sd / spread
        return replace(self, scale=Scale(float(mean - per_logit * values.mean()), float(per_logit)))

    def update(
        self,
        responses: Any,
        method: str = "stream",
        *,
        repeats: str = "error",
        salt: Any = None,
        threads: int | None = None,
    ) -> Bank:
        """The bank after new answers, by people old or new, to items old or new; see `bank.updating.update`."""
        from spectral_irt.bank.update import update

        return update(self, responses, method, repeats=repeats, salt=salt, threads=threads)

    def score(
        self,
        responses: Any,
        ability: str = "wle",
        *,
        population: tuple[float, float] | None = None,
        draws: int = 5,
        seed: int = 0,
        ignore_unknown: bool = False,
    ) -> Any:
        """The people who gave these answers as a table, each with an ability; see `bank.scoring.score`."""
        from spectral_irt.bank.score import score

        how: dict[str, Any] = {"population": population, "draws": draws, "seed": seed}
        return score(self, responses, ability, ignore_unknown=ignore_unknown, **how).table()

    def link(self, other: Bank | Calibration | RaschEstimator, method: str = "robust") -> Link:
        """How to bring another calibration to this bank's scale; see `bank.linking.link`."""
        from spectral_irt.bank.linking import link

        return link(self, other, method)


def calibration_of(given: Any) -> Calibration:
    """The calibration itself, or that of a bank or a fitted estimator."""
    if isinstance(given, RaschEstimator):
        given = given._learned
    if isinstance(given, Calibration):
        return given
    if isinstance(given, Bank):
        return given.calibration
    raise OptionError(f"a calibration, a bank or a fitted estimator is needed here, not a {type(given).__name__}.")


def right_or_wrong(made: Calibration, what: str) -> Calibration:
    """The calibration, if all its items are right or wrong; otherwise an error that says what needs that."""
    if not made.layout.binary:
        several = made.labels[made.layout.max_score > 1]
        verb = "has" if len(several) == 1 else "have"
        raise BankError(
            f"{what} so far only for items that are right or wrong; {listed(several)} {verb} several thresholds."
        )
    return made
