"""EAP (marginal) reliability: the squared correlation of posterior means with the abilities that they estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spectral_irt.data import Responses
from spectral_irt.data.block import Block, Floats
from spectral_irt.errors import OptionError
from spectral_irt.persons.abilities import abilities

# Beyond so many responses a sample of the people is asked. From n of them the population is known to about a hundredth,
# and the reliability rho to (1 - rho) sqrt(2 / n): where people are few each has many answers, and rho is near 1.
ENOUGH = 100_000
COPIES = 4  # of a person of mean weight: weights are then right to an eighth
LEAST_SAMPLE = 200  # people, however many answers each has


@dataclass(frozen=True)
class Marginal:
    """What `marginal_reliability` found.

    Attributes
    ----------
    reliability : float
        var(EAP) / (var(EAP) + mean posterior variance).
    mean, sd : float
        Of the normal population under which the answers are most likely.
    n : int
        People it was computed from.
    """

    reliability: float
    mean: float
    sd: float
    n: int


def sample_of_people(responses: Responses, weights: Floats | None = None) -> Responses:
    """The people who answered something; of very many, a sample that is taken evenly over the data.

    With weights, everybody as often as their weight says among four times as many people, or as many as are enough.
    """
    someone = np.flatnonzero(responses.counts)
    most = max(LEAST_SAMPLE, int(ENOUGH / max(responses.counts[someone].mean(), 1))) if len(someone) else 0
    if weights is not None and len(someone):
        number = max(len(someone), min(COPIES * len(someone), most))
        upto = np.cumsum(weights[someone])
        chosen = np.searchsorted(upto, (np.arange(number) + 0.5) / number * upto[-1])
        together = responses.take_persons(someone).in_one_block()
        chosen = np.minimum(chosen, len(someone) - 1)
        copies = together.engine.prepare(Block.take, together.blocks, each=[[chosen]]).parts
        return replace(together, blocks=copies, persons=np.arange(number), raw=None)
    if len(someone) > most:
        someone = someone[np.linspace(0, len(someone) - 1, most).astype(np.int64)]
        return responses.take_persons(someone).in_one_block()
    return responses if len(someone) == responses.n_persons else responses.take_persons(someone)


def marginal_reliability(responses: Responses, difficulty: Floats, weights: Floats | None = None) -> Marginal | None:
    """EAP reliability under a normal population estimated from these people by marginal maximum likelihood.

    Everybody with answers counts, extreme scores too. Where there are very many people it comes from a sample of them,
    taken evenly over the data. None where a population cannot be estimated: too few people, who do not differ.

    References
    ----------
    Bechger, Maris, Verstralen & Béguin (2003), Applied Psychological Measurement 27, 319-334; Adams (2005), Studies in
    Educational Evaluation 31, 162-172.

    Examples
    --------
    >>> from spectral_irt import ConditionalRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> round(marginal_reliability(lsat, ConditionalRasch().fit(lsat).difficulty_).reliability, 3)
    0.294
    """
    try:
        found = abilities(sample_of_people(responses, weights), difficulty, "eap")
    except OptionError:  # too few people, who do not differ
        return None
    answered = found.n > 0
    if found.prior is None or answered.sum() < 2:
        return None
    spread, error = float(found.ability[answered].var()), float(np.mean(found.se[answered] ** 2))
    number = int(answered.sum()) if weights is None else int(np.sum(responses.counts > 0))
    return Marginal(spread / (spread + error), *found.prior, number)
