"""The same items calibrated in each group of people on its own: what every comparison of groups starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectral_irt.calibration import Calibration
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Floats
from spectral_irt.data.design import components, estimable
from spectral_irt.errors import DesignError, DisconnectedDesignError, listed
from spectral_irt.estimators.base import KEEP_COVARIANCE
from spectral_irt.estimators.conditional import ConditionalRasch
from spectral_irt.estimators.spectral import SpectralRasch, lands
from spectral_irt.inference.groups.grouping import Split
from spectral_irt.inference.joint_errors import JointErrors

DENSE_ITEMS = KEEP_COVARIANCE  # up to here whole covariance matrices are compared; beyond, items one by one


@dataclass(frozen=True, eq=False)
class Subgroups:
    """Difficulties in each group, on the items that have one in all of them.

    Attributes
    ----------
    names, sizes, informative : tuple of str, int arrays
        The groups, their people, and how many of these have both right and wrong answers to these items.
    items : labels
        The items compared.
    difficulty, se : groups x items
        Mean zero in each group.
    covariances : tuple of items x items, empty for many items
    loglik : tuple of float
        Conditional log-likelihoods, of fits that have them.
    everyone : Responses
        The people of all groups together, and only the items compared.
    left_out : labels
        Items without a finite difficulty in some group.
    method : str
        The estimator and the kind of its standard errors.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    informative: NDArray[np.int64]
    items: NDArray[Any]
    difficulty: Floats
    se: Floats
    covariances: tuple[Floats, ...]
    loglik: tuple[float, ...]
    everyone: Responses
    left_out: NDArray[Any]
    method: str

    def __str__(self) -> str:
        parts = [f"{name} ({_people(n)})" for name, n in zip(self.names, self.sizes, strict=True)]
        shown = " | ".join(parts[:5]) + (f" and {len(parts) - 5} more" if len(parts) > 5 else "")
        return shown + (f", {len(self.left_out)} items left out" if len(self.left_out) else "")

    def errors(self, group: int) -> JointErrors:
        """Of the difficulties in one group."""
        if self.covariances:
            return JointErrors.dense(self.covariances[group])
        return JointErrors.after_centering(self.se[group])

    @property
    def sandwich(self) -> bool:
        """Whether the covariances are estimated from the people's contributions, not from the model."""
        return self.method.endswith("sandwich")

    @property
    def findings(self) -> tuple[Finding, ...]:
        if not len(self.left_out):
            return ()
        one = len(self.left_out) == 1
        return (
            Finding(
                "items_not_compared",
                "warning",
                f"{len(self.left_out):,} item{' is' if one else 's are'} left out of the comparison, because in some "
                f"group {'it has' if one else 'they have'} no difficulty on the common scale (answered right by "
                f"everyone or no one, or by nobody who answered the others): {listed(self.left_out)}.",
                "Use fewer or larger groups to compare them.",
                tuple(self.left_out.tolist()),
            ),
        )


Comparable = ConditionalRasch | SpectralRasch  # estimators with a covariance matrix


def estimator_like(calibration: Calibration) -> Comparable:
    """An estimator without a prior, and with a covariance matrix, for the groups of a comparison.

    Conditional maximum likelihood stays that, with its options; a spectral calibration keeps its weighting. For
    anything else the spectral estimator is used: its sandwich needs no distribution of abilities.
    """
    made = calibration.provenance
    options = dict(made.settings)
    if made.estimator == "ConditionalRasch":
        return ConditionalRasch(**{**options, "se": "information" if options["se"] == "none" else options["se"]})
    kept = ("weighting", "refine", "tol", "max_iter") if made.estimator == "SpectralRasch" else ()
    return SpectralRasch(regularization=0, **{name: options[name] for name in kept if name in options})


def calibrate_groups(responses: Responses, split: Split, make: Comparable) -> Subgroups:
    """Fit every group on its own, on the items that can be estimated in all of them.

    An item without a finite difficulty in one group is left out of all, as eRm does, and then any that this makes
    extreme, until the groups agree.
    """
    if split.n_groups < 2:
        what = f"a single one, {split.names[0]!r}" if split.names else "none"
        raise DesignError(f"{responses.source}: two groups of people are needed to compare, and there is {what}.")
    groups = [responses.take_persons(split.members(k)) for k in range(split.n_groups)]
    kept = _common_items(groups, split.names)
    everyone = responses.take_persons(split.group >= 0)
    if not kept.all():
        everyone = everyone.take_items(kept)
    fits, informative = [], []
    for group in groups:
        part = group if kept.all() else group.take_items(kept)
        informative.append(int(np.sum(part.mixed)))
        fit = type(make)(**make.get_params())
        if not isinstance(fit, ConditionalRasch) and everyone.n_items <= DENSE_ITEMS:
            fit.set_params(se="information" if _lands(fit) else "dense")  # the covariance is wanted too
        fits.append(fit.fit(part))
    covariances = tuple(fit.covariance() for fit in fits) if everyone.n_items <= DENSE_ITEMS else ()
    errors = [np.sqrt(np.diag(v)) for v in covariances] if covariances else [fit.se_ for fit in fits]
    return Subgroups(
        split.names,
        split.sizes,
        np.array(informative),
        everyone.items,
        np.array([fit.difficulty_ for fit in fits]),
        np.array(errors),
        covariances,
        tuple(made.loglik for made in (fit.calibration_.provenance for fit in fits) if made.loglik is not None),
        everyone,
        responses.items[~kept],
        _describe(make),
    )


def _common_items(groups: Sequence[Responses], names: Sequence[str]) -> NDArray[np.bool_]:
    kept = np.ones(groups[0].n_items, dtype=bool)
    while True:
        before = kept.copy()
        for name, group in zip(names, groups, strict=True):
            here = _estimable_here(group if kept.all() else group.take_items(kept), name, group.n_items)
            kept[np.flatnonzero(kept)[~here]] = False
        if (kept == before).all():
            return kept


def _estimable_here(group: Responses, name: str, n_items: int) -> NDArray[np.bool_]:
    """Which items have a common scale in this group: its largest strongly connected component.

    An item that is extreme there is a component of its own. An error names the group when hardly any item is left, or
    when half of them or more are not connected.
    """
    kept = components(group) == 0
    if 2 <= kept.sum() <= group.n_items / 2:
        try:
            estimable(group)
        except DisconnectedDesignError as error:
            raise DisconnectedDesignError(
                f"in the group {name!r} ({_people(group.n_persons)}) of {error.args[0]} Or use fewer or larger groups: "
                "the items must be connected within each."
            ) from None
    if kept.sum() < 2:
        gone = n_items - group.n_items
        others = f" ({gone:,} of {n_items:,} items were already left out, extreme in another group)" if gone else ""
        raise DesignError(
            f"{group.source}: in the group {name!r} ({_people(group.n_persons)}) no two items can be compared, because "
            f"too few there have both right and wrong answers{others}. Use fewer or larger groups, or another split."
        )
    return kept


def _people(number: int) -> str:
    return f"{number:,} {'person' if number == 1 else 'people'}"


def _describe(make: Comparable) -> str:
    if isinstance(make, ConditionalRasch):
        return f"conditional maximum likelihood, {make.se}"
    return "spectral, information" if _lands(make) else f"spectral ({make.weighting} weights), sandwich"


def _lands(make: SpectralRasch) -> bool:
    return lands(make.refine, make.weighting, make.nu)
