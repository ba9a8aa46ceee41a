"""OrderedBank: a kept calibration of items with several thresholds, and of items that are right or wrong among them.

What its data said is a quadratic around the thresholds, as in `evidence.py`: the information of the conditional
likelihood there. New answers add their likelihood (`ordered_updating.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from spectral_irt.bank.bank import Bank
from spectral_irt.calibration import Calibration
from spectral_irt.data.block import Floats, Ints
from spectral_irt.data.labels import positions
from spectral_irt.data.responses import Responses
from spectral_irt.data.thresholds import Thresholds
from spectral_irt.errors import BankError, listed
from spectral_irt.numerics import fixed


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class OrderedBank(Bank):
    """A saved calibration of ordered answers. `difficulty` and `se` are those of the items' locations.

    Attributes
    ----------
    thresholds, threshold_se : float arrays
        Item after item, in logits; NaN without an estimate.
    n_thresholds : int array
        How many each item has; 1 for items that are right or wrong.
    category_n, codes : float arrays, items x categories
        How many people gave each answer, and what stands for it in data; NaN where an item has fewer categories.
    step_information : float array
        What the answers told about each threshold, with the others held.
    step_matrix : float array or None
        The whole information matrix, kept for up to 2,000 thresholds.

    Examples
    --------
    >>> from spectral_irt import SpectralPartialCredit, simulate
    >>> answers = simulate.partial_credit(300, 5, categories=3, seed=1).responses
    >>> Bank.from_fit(SpectralPartialCredit().fit(answers), answers)
    <OrderedBank: 5 items, 300 people, 1,500 responses, difficulty ... to ... logits>
    """

    thresholds: Floats = field(default_factory=lambda: np.zeros(0))
    threshold_se: Floats = field(default_factory=lambda: np.zeros(0))
    n_thresholds: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    category_n: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    codes: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    step_information: Floats = field(default_factory=lambda: np.zeros(0))
    step_matrix: Floats | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        steps = int(np.sum(self.n_thresholds))
        for name in ("thresholds", "threshold_se", "step_information"):
            values = getattr(self, name)
            if len(values) != steps:
                raise BankError(f"{name} has {len(values):,} values for {steps:,} thresholds.")
            object.__setattr__(self, name, fixed(values))

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest category that stands in data."""
        return int(np.nanmin(self.codes)), int(np.nanmax(self.codes))

    @cached_property
    def steps(self) -> Thresholds:
        return Thresholds(np.asarray(self.n_thresholds, dtype=np.int64))

    def item_columns(self) -> dict[str, Any]:
        columns = super().item_columns()
        del columns["p_correct"]
        mean = np.divide(self.n_right, self.n, out=np.full(self.n_items, np.nan), where=self.n > 0)
        return {**columns, "mean_score": mean, "max_score": self.steps.max_score}

    @property
    def calibration(self) -> Calibration:
        """The calibration that the bank keeps; with responses it makes an `OrderedAnalysis`."""
        return Calibration(
            thresholds=self.thresholds,
            threshold_se=self.threshold_se,
            location_se=self.se,
            layout=self.steps,
            category_n=self.category_n,
            codes=self.codes,
            **self._of_items(),
        )


def refuse_ordered(bank: Bank, responses: Any) -> None:
    """An error where answers in several categories meet a bank of items that are right or wrong."""
    if not isinstance(responses, Responses) or responses.thresholds.binary:
        return
    wide = responses.thresholds.max_score > 1
    shared = wide & (positions(responses.items, bank.items) >= 0)
    named = responses.items[shared if shared.any() else wide]
    raise BankError(
        f"{responses.source}: answers to {listed(named)} are in more than two categories, and the bank has items that "
        "are right or wrong. Say what counts as right with `threshold=`, or calibrate the ordered answers to a bank "
        "of their own. The bank is unchanged."
    )
