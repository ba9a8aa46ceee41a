"""The second fit: `study.split("q7", by="sex")` and other moves, each of which gives a new analysis with a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from spectral_irt.analysis.cache import as_table, columns_of
from spectral_irt.analysis.comparison import Comparison, compare_studies
from spectral_irt.analysis.hold_out import Halves, HoldOut, divide_persons
from spectral_irt.analysis.ledger import read_ledger
from spectral_irt.analysis.moves import Changes, Move
from spectral_irt.analysis.tailoring import tailored_columns, tailored_finding
from spectral_irt.calibration import RATING_SCALE
from spectral_irt.data import Finding, Responses
from spectral_irt.data.block import Ints
from spectral_irt.data.categories import group_codes
from spectral_irt.data.groupings import grouping_of
from spectral_irt.data.labels import Labels, positions, text_of
from spectral_irt.errors import AnswersStayError, DesignError, OptionError
from spectral_irt.estimators.anchored import Anchors
from spectral_irt.estimators.base import ADAPTIVE, RaschEstimator
from spectral_irt.estimators.by_name import ORDERED, estimator_name, make_estimator
from spectral_irt.inference.fit.item_fit import misfit_finding
from spectral_irt.tables import Columns

if TYPE_CHECKING:
    from spectral_irt.analysis.analysis import Analysis


class AnalysisWithMoves:
    """What an analysis becomes when items or persons are changed and everything is fitted again; see `Analysis`.

    `moves` is the ledger: every move since the first fit, what asked for it, and what it changed. `before` is the
    analysis before the last one. `held_out` says which part of the persons this is, after `hold_out`.
    """

    moves: tuple[Move, ...] = ()
    before: Any = None
    _first_digest: str | None = None
    ledger_findings: tuple[Finding, ...] = ()
    held_out: HoldOut | None = None
    _everybody: Labels | None = None
    _tailored: Columns | None = None

    @property
    def first_digest(self) -> str:
        """The fingerprint of the responses before any move; "" where nothing was moved."""
        if self._first_digest is None:
            first: Any = self
            while first.before is not None:
                first = first.before
            changed = self.moves or self.held_out is not None
            self._first_digest = digest_of(first.responses) if changed else ""
        return self._first_digest

    def drop(self, *items: Any, because: str = "") -> Self:
        """The analysis without these items, fitted again.

        Parameters
        ----------
        *items : labels
        because : str
            What asked for it, for the ledger; by default the code of the finding that names the item.
        """
        return self.with_moves([Move("drop", {"items": _plain_labels(items)}, because)])

    def drop_persons(self, persons: str | Sequence[Any], *, because: str = "") -> Self:
        """The analysis without some persons, fitted again: labels, or "misfit" for all with an infit or outfit,
        standardized, above 2. The ledger counts them.

        Parameters
        ----------
        persons : labels or "misfit"
        because : str
            Why, for the ledger.
        """
        if not isinstance(persons, str):
            persons = _plain_labels(persons)
        return self.with_moves([Move("drop_persons", {"persons": persons}, because)])

    def split(self, item: Any, by: str, *, cuts: Sequence[float] = (), because: str = "") -> Self:
        """The analysis with one item for each group of persons in the place of this one, fitted again.

        The new items are called `q7[sex=f]`, and are linked through the others. Persons without a group have no
        response to any of them.

        Parameters
        ----------
        item : label
        by : str
            The column about the people.
        cuts : numbers, optional
            Where to cut a column of numbers such as age.
        because : str
            Why, for the ledger.
        """
        arguments = {"item": _plain_label(item), "by": by}
        if len(cuts):
            arguments["cuts"] = list(cuts)
        return self.with_moves([Move("split", arguments, because)])

    def join(self, *items: Any, name: str | None = None, because: str = "") -> Self:
        """The analysis with these items as one super-item, whose category is the sum of theirs, fitted again under the
        partial credit model. Who lacks a response to one of them has none to the super-item.

        Parameters
        ----------
        items : labels
            Two or more.
        name : str, optional
            Of the super-item; by default `q3+q4`.
        because : str
            Why, for the ledger.
        """
        arguments: dict[str, Any] = {"items": _plain_labels(items)}
        if name is not None:
            arguments["name"] = name
        return self.with_moves([Move("join", arguments, because)])

    def collapse(self, item: Any, categories: Sequence[int], *, because: str = "") -> Self:
        """The analysis with categories of an item merged, fitted again.

        Parameters
        ----------
        item : label, or "*" for all items
        categories : whole numbers
            The new category of each code from the lowest to the highest: `[0, 1, 1, 2]` merges the two in the middle.
            Tables of scores have the sums of the old codes beside the new score.
        because : str
            Why, for the ledger.
        """
        arguments = {"item": _plain_label(item), "categories": _plain_labels(categories)}
        return self.with_moves([Move("collapse", arguments, because)])

    def tailor(self, below: float, *, because: str = "") -> Self:
        """The analysis without responses that are likely to be guesses, fitted again (Andrich, Marais & Humphry 2012).

        Responses whose chance of being right is below the limit, by the ability and the difficulty, become missing,
        right or wrong; then everything is fitted again, until nothing is below the limit. `tailored()` of the new
        analysis compares the difficulties.

        Parameters
        ----------
        below : float
            The fitted chance holds guesses, too: it is hardly ever below that of a guess. With four options a limit of
            0.25 takes out a quarter of the bias of the hardest items, 0.5 more than half.
        because : str
            Why, for the ledger.
        """
        return self.with_moves([Move("tailor", {"below": float(below)}, because)])

    def dif_resolve(self, *by: str) -> Self:
        """The analysis after the item with the largest DIF by one of these columns was split, all others were tested
        again, and so on, until none differs or fewer than a third of the items are unsplit. The ledger has each step.
        """
        return self.with_moves([Move("dif_resolve", {"by": list(by)})])

    @as_table
    def tailored(self) -> Columns:
        """After `tailor`, the difficulties beside those of all responses, as a table.

        `item, n, removed` (responses made missing), `difficulty_all, difficulty, difference, se, z, p, p_holm`.
        Both are on the scale of the items that lost fewest responses; an item that lost fewer than 60 is not tested.
        An item that is harder without likely guesses was guessed.
        """
        if self._tailored is None:
            raise OptionError("this analysis is of all responses; study.tailor(0.25) leaves out likely guesses.")
        return self._tailored

    def compare(self, other: Any, cuts: Sequence[float] = ()) -> Comparison:
        """This analysis and another of the same persons side by side: before and after a move.

        Items (difference with its standard error, fit), persons (correlation, largest shift), reliability, targeting
        and findings; of the same responses conditional likelihood, AIC and BIC. `print` shows it; `item_table()` and
        `person_table()` have it in full.

        Parameters
        ----------
        other : Analysis
            The later one.
        cuts : numbers, optional
            Points of the scale of report; how many persons change class there.
        """
        return compare_studies(cast("Analysis", self), other, cuts)

    def with_moves(self, moves: Sequence[Move] | str | Path) -> Self:
        """The analysis after several moves, fitted once; or after those of a file (moves.toml)."""
        study: Any = self
        ledger = None
        if isinstance(moves, str | Path):
            ledger = read_ledger(moves)
            moves = ledger.moves
            if ledger.hold_out is not None and study.held_out is None:
                study = study.hold_out(ledger.hold_out.share, seed=ledger.hold_out.seed).for_results
        changes = _changes_of(study)
        for move in moves:
            findings: tuple[Finding, ...] = ()
            if study.held_out is None or study.held_out.for_choice:  # else the choice was made on other persons
                findings = findings_for([move], study)
            changes.apply([move], findings)
        other: Any = fit_again(study, changes)
        if ledger is not None:
            other.ledger_findings = (*ledger.findings(other.first_digest), *other.ledger_findings)
        return other

    def hold_out(self, share: float = 0.5, *, seed: int = 0) -> Halves:
        """Two analyses of some persons each: `for_choice`, on which changes are chosen, and `for_results`, which gives
        all numbers, with the same changes.

        What is chosen by looking fits the persons that were looked at better than others. Persons are divided at
        random, clusters as a whole.

        Parameters
        ----------
        share : float
            Of the persons, how many are held out for the results.
        seed : int
            Of the division.

        Examples
        --------
        >>> import spectral_irt as si
        >>> answers = si.datasets.load_quiz()
        >>> study = si.SpectralRasch().fit(answers).analyse(answers)
        >>> halves = study.hold_out(0.5, seed=0)
        >>> moves = halves.for_choice.dif_resolve("region").moves
        >>> [move.words for move in moves]
        ['tides split by region']
        >>> second = halves.for_results.with_moves(moves)
        """
        study: Any = self
        if study.held_out is not None:
            raise OptionError("these persons are already a part of others; hold persons out of the first analysis.")
        if study.moves:
            raise OptionError("persons are held out before the first change; call `hold_out` on the first analysis.")
        parts = divide_persons(study.responses.n_persons, share, seed, study.sampling.cluster)
        division = parts.hold_out(share, seed)
        halves = []
        for place, for_choice in ((parts.for_choice, True), (parts.for_results, False)):
            changes = _changes_of(study)
            changes.take_part(place, division._replace(for_choice=for_choice))
            halves.append(fit_again(study, changes))
        return Halves(*halves)


def _plain_label(label: Any) -> Any:
    """A label that was taken from an array, such as `responses.items[2]`, as the ledger can hold it."""
    return label.item() if isinstance(label, np.generic) else label


def _plain_labels(labels: Iterable[Any]) -> list[Any]:
    return list(map(_plain_label, labels))


def _changes_of(study: Analysis) -> Changes:
    """Changes to be made to the responses of an analysis, which is fitted again as it was."""
    changes = Changes(
        study.responses,
        lambda responses: study,
        keep_unused=study.calibration.model == RATING_SCALE,
        moves=study.moves,
        held_out=study.held_out,
        everybody=study._everybody,
    )
    changes.fit = lambda responses: study if responses is study.responses else fit_again(study, changes)
    return changes


def digest_of(responses: Responses) -> str:
    """The fingerprint of the responses; "" where they stay elsewhere."""
    with suppress(AnswersStayError):
        return responses.digest()
    return ""


def findings_for(moves: Sequence[Move], study: Analysis) -> tuple[Finding, ...]:
    """What an analysis finds that may ask for these moves; only what is asked for is computed."""
    names = {move.name for move in moves if not move.because}
    findings = [*study.calibration.findings]
    if study.facets:
        return tuple(findings)
    if "split" in names:
        findings += _differential(moves, study)
    looks = {"drop": _misfit, "join": _dependence, "drop_persons": _misfitting_persons, "tailor": _misfitting_persons}
    for name, look in looks.items():
        if name in names:
            with suppress(DesignError, OptionError):
                findings += look(study)
    return tuple(findings)


def _differential(moves: Sequence[Move], study: Analysis) -> list[Finding]:
    """DIF by the columns that items are split by."""
    findings: list[Finding] = []
    people = study.responses.people
    for move in moves:
        column = str(move.arguments.get("by"))
        if people is not None and column in people:
            labels = grouping_of(column, people[column].tolist(), move.arguments.get("cuts", ())).labels
            with suppress(DesignError, OptionError):
                findings += study.dif(labels).findings
    return findings


def _misfit(study: Analysis) -> list[Finding]:
    columns = columns_of(study.item_fit)
    misfit = [misfit_finding(columns, 0)] if (columns["misfit"] != "").any() else []
    return [*study._item_findings(), *misfit]


def _dependence(study: Analysis) -> Sequence[Finding]:
    dimensions = study._dimensionality()
    return () if dimensions is None else dimensions.findings


def _misfitting_persons(study: Analysis) -> Sequence[Finding]:
    return study.checks().findings


def fit_again(study: Analysis, changes: Changes) -> Analysis:
    """The analysis of the changed responses, fitted and reported as the one before was."""
    responses = changes.responses
    place = changes.positions  # of the persons in the responses before
    estimator, design = _same_again(study, changes)
    weights = study.sampling.weights
    if weights is not None:
        design["weights"] = weights if place is None else weights[place]
    estimator.fit(responses, progress=study._tell, **design)
    other = estimator.analyse(
        responses,
        ability=study.ability,
        population=study.population,
        trait=study.trait,
        form=_of_persons(study._form, study.responses, place),
        progress=study._tell,
    )
    cluster = study.sampling.cluster
    if cluster is not None:
        if place is not None:
            cluster = cluster[place]
        other = other.clustered(cluster.tolist(), name=study.sampling.name)
    scale = study.calibration.scale
    if "people_mean" in study._asked_scale:
        other = other.rescale(float(study._asked_scale["people_mean"]), float(study._asked_scale["people_sd"]))
    elif not scale.is_logits and not other.calibration.anchored.any():
        other = other.rescale(scale.mean, scale.unit, by="formula")
    other.before = study
    with_record(other, changes)
    return other


def with_record(study: Analysis, changes: Changes) -> None:
    """The analysis of changed responses gets the record of what was changed; of tailored responses also the comparison
    with all of them."""
    study.moves = changes.moves
    study.held_out = changes.held_out
    study._everybody = changes.everybody
    if changes.held_out is not None:
        study.ledger_findings += (changes.held_out.finding,)
    if changes.untailored is not None:
        study._tailored = tailored_columns(changes.untailored, study)
        study.ledger_findings += (tailored_finding(study._tailored),)


def _of_persons(labels: Any, responses: Responses, place: Ints | None) -> Any:
    """A label for each person that is left; names of columns and mappings stay as they are."""
    if place is None or labels is None or isinstance(labels, str) or hasattr(labels, "keys"):
        return labels
    return np.asarray(labels, dtype=object)[place].tolist()


def _same_again(study: Analysis, changes: Changes) -> tuple[RaschEstimator, dict[str, Any]]:
    """The estimator of an analysis for changed responses, and what its `fit` has to know of the design."""
    fitted = study._estimator
    if fitted is None:
        raise OptionError(
            "this analysis was not made by a fit (`fit.analyse(responses)`), so that it is not known how to fit again "
            "after a move. Fit the responses first."
        )
    design: dict[str, Any] = {}
    calibration = study.calibration
    if len(study.populations() or ()) > 1:
        raise OptionError("a fit with several populations cannot be repeated after a move; fit the changed responses.")
    measures = calibration.facets
    if measures is not None and set(measures.columns) != {"items", *study.facets}:
        raise OptionError("a fit with a design of its own cannot be repeated after a move; fit the changed responses.")
    if calibration.adaptive:
        design["design"] = ADAPTIVE
    maker = type(fitted).__name__
    parameters = fitted.get_params()
    responses = changes.responses
    if calibration.anchored.any():
        anchors = _anchors_left(fitted.given_anchors_, changes)  # type: ignore[attr-defined]
        parameters.pop("anchors", None)
        parameters.pop("free", None)
        design["anchors"] = anchors
    if fitted.several or responses.thresholds.binary:
        if "anchors" in fitted.get_params():
            estimator = type(fitted)(anchors=design.pop("anchors"), **parameters)  # type: ignore[call-arg]
        else:
            estimator = type(fitted)(**parameters)
    else:
        estimator = in_categories(maker, parameters)
    if calibration.model == RATING_SCALE:
        estimator.set_params(groups=rating_scales(changes, getattr(fitted, "groups", None)))
    return estimator, design


def in_categories(maker: str, parameters: dict[str, Any]) -> RaschEstimator:
    """The estimator of the partial credit model in the place of one for right and wrong responses: a super-item has
    several categories."""
    name = estimator_name(maker)
    if name not in ORDERED["pcm"]:
        raise OptionError(
            "a super-item has several categories, and the estimator of this fit is for right and wrong responses only; "
            f"use one of {', '.join(ORDERED['pcm'])}."
        )
    takes = ORDERED["pcm"][name].takes.split()
    return make_estimator(name, {key: value for key, value in parameters.items() if key in takes}, "pcm")


def rating_scales(changes: Changes, groups: Any = None) -> list[Any]:
    """The rating scale of each changed item: that of the item it comes from, where it has as many categories; a
    super-item, or an item with merged categories, has one of its own. `groups` are those before the changes."""
    items, sizes = rated_items(changes.first)
    labels, code = group_codes(items, groups)
    names = [text_of(label) for label in items.tolist()]
    scale_of = dict(zip(names, labels[code].tolist(), strict=True))
    size_of = dict(zip(names, sizes.tolist(), strict=True))
    for move in changes.moves:
        if move.name == "split":
            item = text_of(move.arguments["item"])
            for label in changes.responses.items.tolist():
                if item in scale_of and text_of(label).startswith(f"{item}[{move.arguments['by']}="):
                    scale_of[text_of(label)] = scale_of[item]
                    size_of[text_of(label)] = size_of[item]
    scales = []
    items, sizes = rated_items(changes.responses)
    for label, size in zip(items.tolist(), sizes.tolist(), strict=True):
        name = text_of(label)
        if name not in scale_of:
            scales.append(f"{name} (joined)")
        elif size == size_of[name]:
            scales.append(scale_of[name])
        else:
            scales.append(f"{scale_of[name]} in {size + 1} categories")
    return scales


def rated_items(responses: Responses) -> tuple[Labels, Ints]:
    """The items and the highest score of each; of ratings the items themselves, not their combinations with raters."""
    max_score = responses.thresholds.max_score
    facets = responses.facets
    if facets is None:
        return responses.items, max_score
    return facets.items, max_score[facets.first]


def _anchors_left(anchors: Anchors, changes: Changes) -> Anchors:
    """The anchors without items whose categories were merged, and those that were set free."""
    responses = changes.responses
    place = positions(anchors.items, responses.items)
    in_data = place >= 0
    same = in_data & (anchors.places.max_score == responses.thresholds.max_score[place])
    if not same.any():
        raise OptionError("these moves leave no anchor as it was; fit without anchors, or leave some items alone.")
    return anchors.without(anchors.items[in_data & ~same].tolist(), responses)[0]
