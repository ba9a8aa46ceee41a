"""The coordinator: an engine whose sums over people are rounds that sites answer.

The chain asks its engine for sums, one after the other, and each depends on those before. So the sums asked for are the
rounds: whoever runs the calibration again with the same answers asks the same rounds again, and where an answer is not
there yet, it stops. There is no state but the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spectral_irt.chain.covariance import spread_of_persons
from spectral_irt.chain.operator import Part, flow_in, guessed_rates, total_rates
from spectral_irt.chain.weights import Weighting
from spectral_irt.engines.engine import Kernel
from spectral_irt.engines.translated import TranslatedEngine, Translations
from spectral_irt.errors import FederationError, listed
from spectral_irt.federated.learning import Heard, likely_rates
from spectral_irt.federated.protocol import SUMS, TOTALS, Answer, Round
from spectral_irt.responses import Finding, Responses, kernels
from spectral_irt.responses.block import Block, Floats, Ints
from spectral_irt.responses.design import across, evidence, spread_marks
from spectral_irt.responses.labels import Labels, label_array, positions

Ask = Callable[[Round], Sequence[Answer]]  # every site's answer to a round, in the order of the sites
SAME_DIRECTION = 1e-12  # how far two flows that differ by a factor may be from that, relatively


@dataclass(frozen=True, eq=False)
class Everyone:
    """The answers of all sites to these items."""

    items: Labels
    known: dict[str, Any] = field(default_factory=dict)  # what was asked already


@dataclass(frozen=True, eq=False)
class Weighed:
    """The same under a weighting at these difficulties; flows that were asked for are kept, and what each site said.

    `before` are the rates of each site as learned under the weights before.
    """

    of: Everyone
    weighting: str
    beta: Floats
    before: list[Floats] | None
    inflows: list[tuple[Floats, Floats]] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Said:
    """The answers of all sites to a round, each with the places of its items; and what they add up to."""

    kind: str
    n_items: int
    answers: list[tuple[Ints, Answer]]

    @cached_property
    def sums(self) -> dict[str, Floats]:
        sums = {name: np.zeros(self.n_items) for name in SUMS[self.kind]}
        for place, answer in self.answers:
            for name in sums:
                sums[name][place] += answer.sums[name]
        return sums

    @cached_property
    def totals(self) -> dict[str, float]:
        return {name: sum(answer.totals[name] for _, answer in self.answers) for name in TOTALS[self.kind]}


TRANSLATIONS = Translations()


class FederatedEngine(TranslatedEngine):
    """Sums over people, done by sites."""

    translations = TRANSLATIONS
    gathers: ClassVar[bool] = False
    by_pairs: ClassVar[bool] = False

    def __init__(self, ask: Ask, study: str, tell: Callable[[str], None]) -> None:
        self._ask, self.study, self.tell = ask, study, tell
        self.rounds = 0
        self.own: dict[str, list[Any]] = {}  # the items of each site, as it named them first
        self.left_out: dict[str, list[Any]] = {}

    def refusal(self, kernel: Kernel) -> FederationError:
        return FederationError(
            f"this needs the answers themselves ({kernel.__name__}), and they stay with the sites; what sites can "
            "give is the chain and its one-pass standard errors."
        )

    # ---------------------------------------------------------------------------------------- rounds

    def ask(self, kind: str, items: Labels, weighting: str = "", **values: Floats) -> Said:
        """What every site says to a round."""
        self.rounds += 1
        asked = Round(self.study, self.rounds, kind, items, values, weighting)
        self.tell(f"round {self.rounds}: {kind}")
        answers = self._ask(asked)
        if self.rounds == 1:
            self._meet(answers)
            items = self.items
        return Said(kind, len(items), [(self._place(answer, items), answer) for answer in answers])

    def _meet(self, answers: Sequence[Answer]) -> None:
        """The items of all sites together, in the order of the sites."""
        self.own = {answer.site: answer.items.tolist() for answer in answers}
        self.left_out = {answer.site: answer.left_out.tolist() for answer in answers if len(answer.left_out)}
        every = list(dict.fromkeys(item for items in self.own.values() for item in items))
        texts: dict[str, Any] = {}
        for item in every:
            if str(item) in texts:
                raise FederationError(
                    f"some sites call an item {item!r} and others {texts[str(item)]!r}, a number and a text. Have all "
                    "name it alike."
                )
            texts[str(item)] = item
        self.items = label_array(every)

    def _place(self, answer: Answer, items: Labels) -> Ints:
        answer.check_items(self.own[answer.site], items)
        return positions(answer.items, items)

    def survey(self, part: Everyone) -> Said:
        if "survey" not in part.known:
            part.known["survey"] = self.ask("survey", part.items)
        return part.known["survey"]


def responses_of_sites(ask: Ask, study: str, tell: Callable[[str], None]) -> Responses:
    """Responses that stay with the sites: their first round asks who has which items."""
    engine = FederatedEngine(ask, study, tell)
    known = engine.ask("survey", label_array([]))
    everyone = Everyone(engine.items, {"survey": known})
    notes = tuple(
        Finding(
            "items_of_few",
            "warning",
            f"Site {site!r} left out {len(items):,} {'item' if len(items) == 1 else 'items'}, which too few of its "
            f"people answered: {listed(items)}.",
            "Its answers to them do not count.",
            tuple(items),
        )
        for site, items in engine.left_out.items()
    )
    return Responses(
        blocks=(everyone,),  # type: ignore[arg-type]  # the part of this engine
        items=engine.items,
        users=np.broadcast_to(np.int64(0), int(known.totals["people"])),
        source=f"{len(engine.own)} sites of study {study!r}",
        notes=notes,
        engine=engine,
    )


# -------------------------------------------------------------------------------- kernels as rounds


@TRANSLATIONS.of(kernels.n_persons)
def _n_persons(engine: FederatedEngine, part: Everyone) -> int:
    return int(engine.survey(part).totals["people"])


@TRANSLATIONS.of(kernels.n_responses)
def _n_responses(engine: FederatedEngine, part: Everyone) -> int:
    return int(engine.survey(part).sums["n"].sum())


@TRANSLATIONS.of(kernels.item_counts)
def _item_counts(engine: FederatedEngine, part: Everyone, n_items: int) -> tuple[Ints, Ints]:
    sums = engine.survey(part).sums
    return sums["n"].astype(np.int64), sums["right"].astype(np.int64)


@TRANSLATIONS.of(kernels.kinds_of_people)
def _kinds(engine: FederatedEngine, part: Everyone) -> Ints:
    totals = engine.survey(part).totals
    return np.array([int(totals[name]) for name in ("no_answer", "one_answer", "all_right", "all_wrong", "mixed")])


@TRANSLATIONS.of(evidence)
def _evidence(engine: FederatedEngine, part: Everyone, n_items: int) -> tuple[Floats, Floats]:
    sums = engine.survey(part).sums
    return sums["evidence_right"], sums["evidence_wrong"]


@TRANSLATIONS.of(spread_marks)
def _marked(engine: FederatedEngine, part: Everyone, n_items: int, marks: Floats, against: bool) -> Floats:
    """Both directions in one round: the other is asked for next."""
    key = ("links", marks.tobytes())
    if key not in part.known:
        part.known[key] = engine.ask("links", part.items, marks=marks).sums  # type: ignore[index]
    return part.known[key]["reaching" if against else "reached"]  # type: ignore[index]


@TRANSLATIONS.of(across)
def _across(engine: FederatedEngine, part: Everyone, labels: Ints, informative: bool) -> int:
    key = ("groups", labels.tobytes())
    if key not in part.known:
        part.known[key] = engine.ask("groups", part.items, group=labels.astype(float)).totals  # type: ignore[index]
    return int(part.known[key]["linking_mixed" if informative else "linking"])  # type: ignore[index]


@TRANSLATIONS.of(Block.keep_items)
def _some_items(engine: FederatedEngine, part: Everyone, new_code: np.ndarray) -> Everyone:
    kept = np.flatnonzero(new_code >= 0)
    return Everyone(part.items[kept[np.argsort(new_code[kept])]])


@TRANSLATIONS.of(Part.under)
def _under(engine: FederatedEngine, part: Everyone, weighting: Weighting, beta: Floats) -> Weighed:
    return Weighed(part, weighting.name, beta, part.known.get("rates"))


@TRANSLATIONS.of(Part.again)
def _again(engine: FederatedEngine, part: Weighed, weighting: Weighting, beta: Floats) -> Weighed:
    return _under(engine, part.of, weighting, beta)


@TRANSLATIONS.of(total_rates)
def _rates(engine: FederatedEngine, part: Weighed) -> Floats:
    """The first pass of a solve starts where the weights were taken, so its inflow comes with the rates."""
    start = np.exp(part.beta)
    said = engine.ask("flows", part.of.items, part.weighting, beta=part.beta, v=start)
    part.heard.extend(Heard(place, answer.sums["rates"]) for place, answer in said.answers)
    _hear(part, start, said)
    return said.sums["rates"]


@TRANSLATIONS.of(flow_in)
def _flow_in(engine: FederatedEngine, part: Weighed, flow: Floats) -> Floats:
    for asked, inflow in part.inflows:  # a pass is linear: what differs by a factor was asked already
        factor = float(flow.sum() / asked.sum())
        if np.all(np.abs(flow - factor * asked) <= SAME_DIRECTION * np.abs(flow)):
            return factor * inflow
    said = engine.ask("inflow", part.of.items, part.weighting, beta=part.beta, v=flow)
    _hear(part, flow, said)
    return said.sums["inflow"]


def _hear(part: Weighed, flow: Floats, said: Said) -> None:
    part.inflows.append((flow, said.sums["inflow"]))
    for site, (place, answer) in zip(part.heard, said.answers, strict=True):
        site.passes.append((flow[place], answer.sums["inflow"]))


@TRANSLATIONS.of(guessed_rates)
def _guessed(engine: FederatedEngine, part: Weighed) -> Floats:
    before: Sequence[Floats | None] = part.before or [None] * len(part.heard)
    learned = [likely_rates(site, rates) for site, rates in zip(part.heard, before, strict=True)]
    part.of.known["rates"] = learned
    y = np.zeros((len(part.beta), len(part.beta)))
    for site, rates in zip(part.heard, learned, strict=True):
        y[np.ix_(site.place, site.place)] += rates
    return y


@TRANSLATIONS.of(spread_of_persons)
def _spread(engine: FederatedEngine, part: Weighed, pi: Floats, shift: Floats) -> tuple[Floats, Floats, Floats]:
    said = engine.ask("spread", part.of.items, part.weighting, beta=part.beta, pi=pi, shift=shift)
    return said.sums["squares"], said.sums["crossed"], np.array(said.totals["shared"])
