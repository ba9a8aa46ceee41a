"""Are items as hard for the less able as for the more able? Rao's score test, without calibrating the halves.

Given the items answered and the score, answers depend on the difficulties alone, so people may be divided by these.
With g_h the sum of x - P(X = 1 | score) over the people of half h at the common difficulties, and I_h the information,
that is the sum of their conditional covariances,

    u = g_1 - I_1 (I_1 + I_2)^+ (g_1 + g_2),      W = I_1 - I_1 (I_1 + I_2)^+ I_1,      T = u' W^+ u ~ chi-square

under the model (Glas & Verhelst 1995). The second term makes up for difficulties that are not quite the maximum of the
conditional likelihood. Wald's test (`wald`) asks the same of two calibrations; where few people of one half met an
item, as in vertical designs, its errors are underestimated, while nothing is estimated here that may fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectral_irt.calibration import Calibration
from spectral_irt.conditional.given_score import conditional_probabilities
from spectral_irt.data import Block, Finding, Responses
from spectral_irt.data.block import Floats, Ints
from spectral_irt.engine.threads import one_blas_thread
from spectral_irt.errors import DesignError, listed
from spectral_irt.inference.dimensions.pairs import apart
from spectral_irt.inference.groups.grouping import divide
from spectral_irt.inference.probability import benjamini_hochberg, chi2_tail, holm, two_sided
from spectral_irt.inference.results import EACH, Result, p_text

LEAST = 5.0  # information on an item in either half, like the expected count in a cell of a chi-square test
CELLS = 1_000_000  # of a dense piece on the way
DIGITS = 1e-9  # eigenvalues below this share of the largest are zero


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RaoTest(Result):
    """What `ability_split` found; `table()` has `item, z, p, p_holm, p_bh`.

    Attributes
    ----------
    z : float array
        Of each item compared: above 0 if the less able do better on it than the difficulty says.
    sizes : int array
        People with both right and wrong answers in the less and in the more able half.
    """

    name = "Score test, less able against more able half"
    z: Floats
    sizes: Ints


@one_blas_thread()  # the matrices are small
def ability_split(calibration: Calibration, responses: Responses, *, level: float = EACH) -> RaoTest:
    """Rao's score test between the less and the more able half, for up to some hundreds of items.

    Parameters
    ----------
    calibration, responses
        The responses in the order of the calibration's items.
    level : float
        At which a finding says so.

    References
    ----------
    Glas & Verhelst (1995), in Fischer & Molenaar, Rasch Models, ch. 5; Rao (1948).

    Examples
    --------
    >>> from spectral_irt import SpectralRasch, datasets
    >>> lsat = datasets.load_lsat()
    >>> test = ability_split(SpectralRasch().fit(lsat).calibration_, lsat)
    >>> test.df, test.p > 0.5
    (4, True)
    """
    known = np.flatnonzero(calibration.measured)
    few = DesignError(
        f"{responses.source}: in one half of the people no two items have enough answers to compare the halves."
    )
    if len(known) < 2:
        raise few
    answers = responses if len(known) == responses.n_items else responses.take_items(known)
    beta = apart(calibration.difficulty[known])
    group = divide(answers, "ability", difficulty=beta).group
    score, linear, products, variance, sizes = answers.sum(_group_sums, beta, persons=(group,))
    information = [_information(*each, beta) for each in zip(linear, products, variance, strict=True)]
    inverse = np.linalg.pinv(sum(information), rcond=DIGITS, hermitian=True)
    part = information[0] @ inverse
    u, w = score[0] - part @ score.sum(axis=0), information[0] - part @ information[0]
    kept = np.flatnonzero(np.minimum(*variance) >= LEAST)
    if len(kept) < 2:
        raise few
    u, w = u[kept], w[np.ix_(kept, kept)]
    values, vectors = np.linalg.eigh((w + w.T) / 2)
    real = values > DIGITS * values[-1]
    statistic, df = float(((vectors[:, real].T @ u) ** 2 / values[real]).sum()), int(real.sum())
    p = float(chi2_tail(statistic, df))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = u / np.sqrt(np.diag(w))
    item_p, labels = two_sided(z), answers.items[kept]
    return RaoTest(
        statistic=statistic,
        df=df,
        p=p,
        compared=f"{sizes[0]:,} | {sizes[1]:,} people",
        columns={"item": labels, "z": z, "p": item_p, "p_holm": holm(item_p), "p_bh": benjamini_hochberg(item_p)},
        frame_kind=responses.frame_kind,
        findings=unequal_halves(p, z, labels) if p < level else (),
        z=z,
        sizes=sizes,
    )


def _group_sums(block: Block, group: Ints, beta: Floats) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    """Of each half: sums of x - P; over pairs, of P_j and of P_i P_j; of V; people."""
    m = len(beta)
    g, v = np.zeros((2, m)), np.zeros((2, m))
    linear, products = np.zeros((2, m, m)), np.zeros((2, m, m))
    sizes = np.zeros(2, dtype=np.int64)
    for half in (0, 1):
        mine = block.take(np.flatnonzero(block.informative & (group == half)))
        sizes[half] = mine.n_persons
        if not mine.n_persons:
            continue
        p = conditional_probabilities(mine, beta)
        g[half] = np.bincount(mine.items, weights=mine.right() - p, minlength=m)
        v[half] = np.bincount(mine.items, weights=p * (1 - p), minlength=m)
        person = mine.person_of_response()
        step = max(1, CELLS // m)
        for start in range(0, mine.n_persons, step):
            stop = min(start + step, mine.n_persons)
            span = slice(mine.indptr[start], mine.indptr[stop])
            dense, seen = np.zeros((stop - start, m)), np.zeros((stop - start, m))
            where = (person[span] - start, mine.items[span])
            dense[where], seen[where] = p[span], 1.0
            linear[half] += seen.T @ dense
            products[half] += dense.T @ dense
    return g, linear, products, v, sizes


def _information(linear: Floats, products: Floats, variance: Floats, beta: Floats) -> Floats:
    """The sum of conditional covariances; see `conditional_pairs` for those of two answers."""
    eps = np.exp(beta.mean() - beta)
    away = eps[:, None] - eps
    np.fill_diagonal(away, 1.0)
    weighted = eps[:, None] * linear
    covariance = (weighted - weighted.T) / away - products
    np.fill_diagonal(covariance, variance)
    return covariance


def unequal_halves(p: float, z: Floats, labels: Floats) -> tuple[Finding, ...]:
    order = np.argsort(-np.abs(z), kind="stable")
    certain = order[holm(two_sided(z))[order] < EACH]
    most = f", above all {listed(labels[certain])}" if len(certain) else ""
    return (
        Finding(
            "unequal_halves",
            "warning",
            f"Items are not equally hard for the less and the more able (p {p_text(p)}){most}.",
            "Difficulties then depend on who is asked: be careful when forms or groups of unlike ability are compared.",
            tuple(labels[np.sort(certain)].tolist()),
        ),
    )
