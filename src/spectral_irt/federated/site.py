"""A site: it answers a round with sums over its own people, and never with a row."""

from __future__ import annotations

import numpy as np

from spectral_irt.chain.covariance import spread_of_persons
from spectral_irt.chain.operator import ItemChain, flow_in
from spectral_irt.chain.weights import COUNTED, WEIGHTINGS, weighting_named
from spectral_irt.errors import FederationError, OptionError, check_option, option
from spectral_irt.federated.protocol import SUMS, TOTALS, Answer, Round
from spectral_irt.responses import Responses
from spectral_irt.responses.design import across, evidence, spread_marks
from spectral_irt.responses.labels import positions

LEAST = 10  # people of a site behind every number that it gives; the usual rule of statistical offices


def answer_round(responses: Responses, asked: Round, *, site: str, least: int = LEAST) -> Answer:
    """The sums of these people that a round asks for.

    Answers to items that fewer than `least` people of the site answered are left out of every sum, and named.

    Parameters
    ----------
    responses : Responses
        The people of the site.
    asked : Round
        What the coordinator asks: `Round.read(path)`.
    site : str
        The name of the site, the same in every round.
    least : int
        The fewest people that a number per item may stand for; the same in every round.

    Examples
    --------
    >>> from spectral_irt import datasets
    >>> from spectral_irt.responses.labels import label_array
    >>> answers = datasets.load_lsat()
    >>> said = answer_round(answers, Round("test", 1, "survey", label_array([])), site="north")
    >>> said.items.tolist(), said.sums["n"].tolist()
    (['item1', 'item2', 'item3', 'item4', 'item5'], [1000, 1000, 1000, 1000, 1000])
    """
    if not isinstance(site, str) or not site.strip():
        raise OptionError("a site needs a name; say it with ", option("name", ...), ".")
    if least < 1:
        raise OptionError(option("least"), f" is {least}; it is a number of people, 1 or more.")
    enough = responses.item_counts >= least
    left_out = responses.items[~enough & (responses.item_counts > 0)]
    if not enough.any():
        raise FederationError(
            f"{responses.source}: no item was answered by {least:,} people or more, so that any sum would say too much "
            "about single people. Nothing was written; more answers are needed here (or a smaller ",
            option("least"),
            ", if that is allowed).",
        )
    known = np.flatnonzero(enough)
    if asked.number == 1:  # the coordinator does not know the items yet
        rest, place = responses.take_items(known), np.arange(0)
    else:
        place = positions(responses.items[known], asked.items)
        rest, place = responses.take_items(known[place >= 0]), place[place >= 0]
    values = {name: numbers[place] for name, numbers in asked.values.items()}
    sums, totals = _sums(rest, asked, values) if rest.n_items else _nothing(asked.kind)
    return Answer(asked.study, asked.number, asked.kind, site, rest.items, sums, totals, left_out)


def _nothing(kind: str) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The sums of a round in which none of the site's items take part: one about a group of items elsewhere."""
    return {name: np.zeros(0) for name in SUMS[kind]}, dict.fromkeys(TOTALS[kind], 0.0)


def _sums(
    responses: Responses, asked: Round, values: dict[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """What a kind of sum is, for the items of this site that take part."""
    m = responses.n_items
    if asked.kind == "survey":
        right, wrong = responses.sum(evidence, m)
        kinds = dict(
            zip(("no_answer", "one_answer", "all_right", "all_wrong", "mixed"), responses.kinds_of_people, strict=True)
        )
        counts = {"n": responses.item_counts, "right": responses.item_scores}
        return {**counts, "evidence_right": right, "evidence_wrong": wrong}, {"people": responses.n_users, **kinds}
    if asked.kind == "links":  # whether, not how many: a count would be one of a pair of items
        found = [responses.sum(spread_marks, m, values["marks"], against) > 0 for against in (False, True)]
        return dict(zip(("reached", "reaching"), (one.astype(float) for one in found), strict=True)), {}
    if asked.kind == "groups":
        group = values["group"].astype(np.int64)
        return {}, {name: responses.sum(across, group, name != "linking") for name in ("linking", "linking_mixed")}
    check_option("weighting", asked.weighting, WEIGHTINGS)
    weighting = weighting_named(asked.weighting, WEIGHTINGS if asked.weighting not in COUNTED else COUNTED)
    chain = ItemChain.under(responses, weighting, values["beta"])
    if asked.kind == "spread":
        squares, crossed, shared = chain.parts.sum(spread_of_persons, values["pi"], values["shift"])
        return {"squares": squares, "crossed": crossed}, {"shared": float(shared)}
    inflow = chain.parts.sum(flow_in, values["v"])
    return ({"rates": chain.rates, "inflow": inflow} if asked.kind == "flows" else {"inflow": inflow}), {}
