"""Bank: a calibration kept, with what updating, linking and scoring need of the responses that made it.

A bank is a calibration (items, thresholds, errors), the evidence of its responses (`evidence.py`), a list of the data
that went in, the population of their people, and their forms. It holds sums over people and nothing about single
people. Its methods are short: the work is in a file for each topic (`build`, `storage`, `update`, `drift`, `score`,
`linking`), loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import Calibration, Scale
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import Labels, positions
from spectral_irt.errors import BankError, OptionError
from spectral_irt.estimators.base import RaschEstimator
from spectral_irt.inference.scores.reliability import marginal_reliability
from spectral_irt.persons.abilities import COLLAPSED
from spectral_irt.persons.align import align, align_categories
from spectral_irt.tables import Columns, Table, make_table
from spectral_irt.text import listed

if TYPE_CHECKING:
    from spectral_irt.bank.drift import Drift
    from spectral_irt.bank.linking import Link

FEWEST_PEOPLE = 30  # with fewer the spread of abilities is anybody's guess
# People in a data set of which a checksum is kept: of fewer, all possible responses could be tried until one fits.
FEWEST_FOR_CHECKSUM = 30


@dataclass(frozen=True)
class Population:
    """Mean and standard deviation of the abilities, in logits, and of how many people (0: given by hand)."""

    mean: float
    sd: float
    persons: int = 0

    @classmethod
    def of(cls, responses: Responses, thresholds: Floats, weights: Floats | None = None) -> Population | None:
        """Estimated from these responses (of a sample of the people where there are very many), by the weights of the
        people; None of too few."""
        if np.count_nonzero(responses.counts) < FEWEST_PEOPLE:
            return None
        reliability = marginal_reliability(responses, thresholds, weights)
        if reliability is None or reliability.n < FEWEST_PEOPLE or reliability.sd <= COLLAPSED:
            return None
        return cls(reliability.mean, reliability.sd, reliability.n)


@dataclass(frozen=True)
class DataSet:
    """Data that a bank has seen: their checksum ("" of few people), their size, and how they came in."""

    digest: str
    source: str
    persons: int
    items: int
    responses: int
    how: str

    @classmethod
    def of(cls, responses: Responses, how: str) -> DataSet:
        digest = ""
        if responses.n_persons >= FEWEST_FOR_CHECKSUM:
            digest = responses.digest()
        return cls(
            digest=digest,
            source=responses.source,
            persons=responses.n_persons,
            items=responses.n_items,
            responses=responses.n_responses,
            how=how,
        )

    def in_bank(self, bank: Bank) -> DataSet | None:
        """These data as the bank has them already."""
        if not self.digest:
            return None
        return next((earlier for earlier in bank.data if earlier.digest == self.digest), None)

    def refuse_again(self, earlier: DataSet, what_to_do: str) -> NoReturn:
        raise BankError(
            f"{self.source}: these very data are in the bank already ({earlier.source}, {earlier.persons:,} people, "
            f"{earlier.responses:,} responses, by {earlier.how}); they would count twice. {what_to_do}"
        )


@dataclass(frozen=True)
class BankForm:
    """A form that people of the calibration were given: its name and the labels of its items with a difficulty."""

    name: str
    items: tuple[Any, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Bank:
    """A saved calibration.

    Make one with `Bank.from_fit(fit, responses)`; keep it with `save` and `load`. A bank is never changed: `update`,
    `rescale` and a link give a new one.

    Attributes
    ----------
    calibration : Calibration
        Items, thresholds, standard errors, counts, scale, findings. Those of anchored items are as they came; an update
        leaves them where they are.
    evidence : Evidence
        What the responses told about the thresholds: what an update adds new ones to.
    data : tuple of DataSet
        Everything that went in.
    population : Population or None
        Mean and standard deviation of the abilities of the people it was calibrated with; the prior of "eap".
    forms : tuple of BankForm
        The forms (booklets) that people were given, for equating; none where these are not known.
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

    calibration: Calibration
    evidence: Evidence
    data: tuple[DataSet, ...] = ()
    population: Population | None = None
    forms: tuple[BankForm, ...] = ()
    origin: tuple[str, str] | None = None

    def __repr__(self) -> str:
        words = f"{self.n_items:,} items, {self.n_persons:,} people, {int(self.n.sum()):,} responses"
        difficulty = self.difficulty[self.calibration.known]
        if len(difficulty):
            words += f", difficulty {difficulty.min():.2f} to {difficulty.max():.2f} logits"
        return f"<{type(self).__name__}: {words}>"

    @property
    def items(self) -> Labels:
        return self.calibration.labels

    @property
    def difficulty(self) -> Floats:
        """In logits, whatever the scale; larger = harder; NaN without an estimate."""
        return self.calibration.difficulty

    @property
    def se(self) -> Floats:
        return self.calibration.se

    @property
    def status(self) -> NDArray[Any]:
        return self.calibration.status

    @property
    def n(self) -> Ints:
        """How many responses each item has had."""
        return self.calibration.n

    @property
    def scale(self) -> Scale:
        return self.calibration.scale

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.calibration.findings

    @property
    def n_items(self) -> int:
        return self.calibration.n_items

    @property
    def n_persons(self) -> int:
        return sum(data.persons for data in self.data)

    @property
    def estimated(self) -> NDArray[np.bool_]:
        """Items that responses have placed, not the prior alone, if only within their group of linked items."""
        return self.calibration.measured | (self.calibration.known & (self.status == "unlinked"))

    @property
    def n_groups(self) -> int:
        """How many groups of items there are that nothing links."""
        return len(np.unique(self.evidence.link_group[self.estimated]))

    @property
    def right_or_wrong(self) -> bool:
        """Whether all responses are 1 or 0."""
        return self.calibration.right_or_wrong

    @property
    def measure(self) -> Floats:
        """Difficulties as they are reported."""
        return self.scale.measure(self.difficulty)

    def item_columns(self) -> Columns:
        """The items as columns: label, difficulty, se, interval (as reported), counts, status."""
        columns = self.calibration.item_columns()
        for name in ("difficulty", "ci_low", "ci_high"):
            columns[name] = self.scale.measure(columns[name])
        columns["se"] = self.scale.width(columns["se"])
        columns.pop("anchored", None)
        return {**columns, "information": self.calibration.item_information, "anchored": self.calibration.anchored}

    def table(self, frame_kind: str | None = None) -> Table:
        """The items as a dataframe, on the scale of the bank.

        Parameters
        ----------
        frame_kind : str, optional
            The library of the dataframe, such as "pandas"; polars by default.
        """
        return make_table(self.item_columns(), frame_kind)

    def _as_responses(self, responses: Any) -> Responses:
        """What was given as `Responses`, of the kind that the bank has: right or wrong, or categories."""
        if self.right_or_wrong:
            self._refuse_ordered(responses)
        return self.calibration.responses_of(responses)

    def _refuse_ordered(self, responses: Any) -> None:
        """An error where responses in several categories come to a bank of items that are right or wrong."""
        if not isinstance(responses, Responses) or responses.thresholds.binary:
            return
        several = responses.thresholds.max_score > 1
        in_bank = several & (positions(responses.items, self.items) >= 0)
        named = in_bank if in_bank.any() else several
        raise BankError(
            f"{responses.source}: answers to {listed(responses.items[named])} are in more than two categories, and the "
            "bank has items that are right or wrong. Say what counts as right with `threshold=`, or calibrate the "
            "ordered answers to a bank of their own. The bank is unchanged."
        )

    def _align(self, responses: Responses, ignore_unknown: bool = False) -> Responses:
        """The responses with the items and the categories of this bank, in its order."""
        if self.right_or_wrong:
            return align(self.items, responses, ignore_unknown)
        return align_categories(self.calibration, responses, ignore_unknown)

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

    @classmethod
    def undo(cls, folder: str | Path) -> Bank:
        """Put the bank back that was in this folder before its last load of responses, byte by byte, and return it.

        One step is kept: a load that was undone, or one before the last, cannot be undone. `data` of a bank lists its
        loads.
        """
        from spectral_irt.bank.storage import undo

        return undo(folder).after

    @classmethod
    def from_fit(cls, fit: Calibration | RaschEstimator, responses: Any, *, form: Any = None) -> Bank:
        """The bank of a fitted estimator; see `to_bank`.

        Parameters
        ----------
        fit : fitted estimator or Calibration
        responses : Responses, array or dataframe
            Those that it was fitted to.
        form : str or labels, optional
            As in `analyse`.
        """
        from spectral_irt.bank.build import to_bank

        return to_bank(fit, responses, form=form)

    def rescale(self, mean: float = 0.0, sd: float | None = None, *, unit: float | None = None) -> Bank:
        """The bank with another scale of report: the difficulties in logits stay as they are.

        Parameters
        ----------
        mean, sd : float
            Mean and standard deviation of the items on the new scale: 500 and 100.
        unit : float, optional
            Instead of `sd`: what a logit is worth; a logit of 0 is then reported as `mean`. Without either, 1.
        """
        if sd is not None and unit is not None:
            raise OptionError("give sd (the spread on the new scale) or unit (what a logit is worth), not both.")
        if not np.isfinite(mean):
            raise OptionError(f"mean is {mean}; it must be a number.")
        for name, value in (("sd", sd), ("unit", unit)):
            if value is not None and not (np.isfinite(value) and value > 0):
                raise OptionError(f"{name} is {value}; it must be a number above zero.")
        scale = Scale(float(mean), float(unit or 1.0))
        if sd is not None:
            scale = self._scale_by_items(mean, sd)
        return replace(self, calibration=self.calibration.replace(scale=scale))

    def _scale_by_items(self, mean: float, sd: float) -> Scale:
        """The scale on which the items have this mean and standard deviation."""
        difficulty = self.difficulty[self.calibration.known]
        spread = 0.0
        if len(difficulty):
            spread = float(difficulty.std())
        if spread == 0:
            raise OptionError(f"the difficulties do not differ, so they cannot get the sd {sd}; give unit instead.")
        unit = sd / spread
        return Scale(float(mean - unit * difficulty.mean()), float(unit))

    def update(self, responses: Any, *, repeats: str = "error", threads: int | None = None) -> Bank:
        """The bank after new responses, by people old or new, to items old or new; see `bank.update.update`.

        Parameters
        ----------
        responses : Responses, array or dataframe
            New responses; at least one item must be of the bank.
        repeats : "error" or "skip"
            Data that are in the bank already, as a whole: an error (default), or the bank comes back as it is.
        threads : int, optional
            Threads to compute with.
        """
        from spectral_irt.bank.update import update

        return update(self, responses, repeats=repeats, threads=threads)

    def drift(self, responses: Any) -> Drift:
        """How far these responses put each item from where the bank has it: what `update` looks at before it adds them.

        `table()` has a row for each item that the bank has measured: `item, n, displacement, se, z, p, p_adjusted,
        drifted`, in logits, + is harder than in the bank. An item has drifted when that is significant after Holm and
        0.3 logits or more. Items that are not in the bank are left out.

        Examples
        --------
        >>> from spectral_irt import SpectralRasch, simulate
        >>> responses = simulate.rasch(1000, 10, seed=1).responses
        >>> first, second = responses.take_persons(range(500)), responses.take_persons(range(500, 1000))
        >>> bool(Bank.from_fit(SpectralRasch().fit(first), first).drift(second).drifted.any())
        False
        """
        from spectral_irt.bank.drift import drift

        return drift(self, self._align(self._as_responses(responses), ignore_unknown=True))

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
        """The people who gave these answers as a table, each with an ability; see `bank.score.score`.

        Parameters
        ----------
        responses : Responses, array or dataframe
            Of anybody; items are matched by label.
        ability : "wle", "ml", "eap" or "pv"
            Warm's weighted likelihood (default), maximum likelihood, or the mean under a normal prior; "pv" adds
            plausible values.
        population : (mean, sd), optional
            The prior of "eap" and "pv" in logits; by default the population of the bank.
        draws, seed : int
            Of plausible values: how many for each person, and their seed.
        ignore_unknown : bool
            Leave out answers to items that the bank does not have; by default they are an error.
        """
        from spectral_irt.bank.score import score

        scores = score(
            self, responses, ability, population=population, draws=draws, seed=seed, ignore_unknown=ignore_unknown
        )
        return scores.table()

    def link(self, other: Bank | Calibration | RaschEstimator, method: str = "robust") -> Link:
        """How to bring another calibration to this bank's scale; see `bank.linking.link`.

        Parameters
        ----------
        other : Bank, Calibration or fitted estimator
            Of different people.
        method : "robust" or "mean"
            The mean of the differences of the items that agree (default), or of all common items.
        """
        from spectral_irt.bank.linking import link

        return link(self, other, method)


def calibration_of(source: Any) -> Calibration:
    """The calibration itself, or that of a bank or a fitted estimator."""
    if isinstance(source, RaschEstimator):
        source = source._fitted_calibration
    if isinstance(source, Calibration):
        return source
    if isinstance(source, Bank):
        return source.calibration
    raise OptionError(f"a calibration, a bank or a fitted estimator is needed here, not a {type(source).__name__}.")
