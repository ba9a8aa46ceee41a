"""The chain's prior and its errors: how a precision is found, the sandwich, items that rest on the prior alone."""

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest

from dense import dense_pairs, pair_weight
from spectral_irt import Responses, SpectralPartialCredit, SpectralRasch, simulate
from spectral_irt.chain.prior import (
    IMAGINARY_ITEMS,
    REACH,
    Regularization,
    prior_precision,
    renewed_precision,
    shift_of_step,
    with_effect,
)
from spectral_irt.data.block import Thresholds
from spectral_irt.errors import OptionError
from spectral_irt.estimators.spectral_errors import choose_method

WEIGHTINGS = ["ability", "persons", "pairs"]


def contributions(table, beta, h):
    """g_li = sum_j h_ij (pi_j X_j (1 - X_i) - pi_i X_i (1 - X_j))."""
    pi, g = np.exp(beta), np.zeros(table.shape)
    for person, row in enumerate(table):
        for i, j in itertools.permutations(np.flatnonzero(~np.isnan(row)), 2):
            g[person, i] += h(person, i, j) * (pi[j] * row[j] * (1 - row[i]) - pi[i] * row[i] * (1 - row[j]))
    return g


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_dense_sandwich_is_the_formula(weighting):
    table = simulate.rasch(150, 6, design="sampled", p=0.8, seed=4).responses.to_dense()
    fit = SpectralRasch(refine=False, weighting=weighting, regularization=0, se="dense").fit(table)
    h = pair_weight(table, weighting, fit.difficulty_)
    g = contributions(table, fit.difficulty_, h)
    flow = np.exp(fit.difficulty_)[:, None] * dense_pairs(table, h)[0]
    inverse = np.linalg.pinv(np.diag(flow.sum(axis=1)) - flow.T)
    expected = inverse @ g.T @ g @ inverse.T
    # Ability weights are taken one round before the end: equal to about the square of a standard error.
    rtol = 1e-2 if weighting == "ability" else 1e-8
    np.testing.assert_allclose(fit.se_, np.sqrt(np.diag(expected)), rtol=rtol)
    np.testing.assert_allclose(fit.covariance().sum(axis=0), 0, atol=1e-10)


def test_two_items_have_the_closed_form():
    """beta_1 - beta_2 = log(Y_21 / Y_12) with variance 1 / Y_12 + 1 / Y_21."""
    table = np.array([[1, 0]] * 30 + [[0, 1]] * 20 + [[1, 1]] * 10 + [[0, 0]] * 5, dtype=float)
    fit = SpectralRasch(refine=False, regularization=0).fit(table)
    assert fit.difficulty_[0] - fit.difficulty_[1] == pytest.approx(np.log(20 / 30), abs=1e-12)
    assert 2 * fit.se_[0] == pytest.approx(np.sqrt(1 / 20 + 1 / 30), rel=1e-10)


def test_one_pass_is_close_where_the_chain_mixes_fast():
    data = simulate.rasch(4000, 600, design="popularity", n_responses=110_000, seed=3).responses
    dense, quick = (SpectralRasch(refine=False, se=se, regularization=0).fit(data) for se in ("dense", "one-pass"))
    assert dense.contraction_ < 0.3
    ratio = quick.se_ / dense.se_
    assert 0.98 < np.nanmin(ratio) <= np.nanmax(ratio) < 1.06


def test_the_choice_of_standard_errors():
    assert choose_method(20, 0.1, 1e5) == choose_method(10, 0.1, 1e12) == choose_method(3900, 0.95, 4e8) == "dense"
    assert choose_method(3900, 0.1, 4e8) == choose_method(27_000, 0.1, 1e10) == "one-pass"
    assert choose_method(3900, 0.5, 4e8) == choose_method(27_000, 0.95, 1e10) == "multiplier"


@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_a_threshold_that_rests_on_the_prior_has_the_error_of_the_prior(se):
    table = simulate.partial_credit(300, 8, categories=3, seed=2).responses.to_dense()
    table[table[:, 0] == 2, 0] = 1
    table[:, 1] = np.where(table[:, 1] > 0, 2, np.nan)  # its empty category is left out
    answers = Responses.from_wide(np.vstack([table, np.full((1, 8), 2.0), np.zeros((1, 8))]), ordered=True)
    fit = SpectralPartialCredit(weighting="persons", refine=False, se=se, regularization=4.0).fit(answers)
    alone = [1, 2]  # the second of item 0, and the one left of item 1: only people at the ends of the scale met them
    np.testing.assert_allclose(fit.threshold_se_[alone], 0.5)
    np.testing.assert_allclose(fit.se_[1], 0.5)
    assert 0.25 < fit.se_[0] < 0.3  # half of it is known
    assert np.all(fit.threshold_se_[3:] < 0.3)


@pytest.mark.parametrize("refine", ["auto", False])
@pytest.mark.parametrize("categories", [2, 4])
def test_weak_links_are_found_whatever_the_categories(categories, refine):
    """Two forms that six people link; with two hundred there is no warning."""
    table = simulate.partial_credit(800, 20, categories=categories, seed=5).responses.to_dense()
    for linking, severity in ((6, ["warning"]), (400, [])):
        forms = table.copy()
        forms[linking:400, 10:] = forms[max(400, linking) :, :10] = np.nan
        fit = SpectralPartialCredit(regularization=0, refine=refine).fit(forms)
        found = [finding for finding in fit.findings_ if finding.code == "weak_links"]
        assert [finding.severity for finding in found] == severity
        if found:
            assert "Only 6 of 800 people" in found[0].sentence or "Only 5 of 800 people" in found[0].sentence
            assert set(found[0].items) in ({*range(10)}, {*range(10, 20)})


def test_with_much_information_the_precision_is_that_of_the_estimates():
    beta = np.random.default_rng(1).normal(0, 1.3, 500)
    found = prior_precision(beta, np.full(500, 1e9), 1.0)
    assert found == pytest.approx((500 + IMAGINARY_ITEMS) / (np.sum(beta**2) + IMAGINARY_ITEMS), rel=1e-6)
    wide = np.random.default_rng(3).normal(0, 6, 400)  # a wider spread than any test has, and what bounds it
    assert prior_precision(wide, np.full(400, 10.0), 1 / 36) < 1.2 / 36
    assert prior_precision(wide, np.zeros(400), 1.0) == pytest.approx(1 / (1 + REACH**2))


def test_the_step_is_the_second_moment_of_the_posterior():
    """Against exact integration for an item that ten people of spread 1 answered, under a prior of precision 1."""
    theta = np.linspace(-1.5, 1.5, 10)
    grid = np.linspace(-12, 12, 20_001)
    wrong = 1 / (1 + np.exp(theta - grid[:, None]))
    for right in range(11):
        log_density = -right * grid + np.log(wrong).sum(axis=1) - grid**2 / 2
        density = np.exp(log_density - log_density.max())
        density /= density.sum()
        mode = grid[np.argmax(density)]
        q = 1 / (1 + np.exp(theta - mode))
        information = np.sum(q * (1 - q))
        # The step is (share + 2) / (mode^2 + 2) with share = 1 - alpha (E beta^2 - mode^2).
        share = (
            prior_precision(np.array([mode]), np.array([information]), 1.0) * (mode**2 + IMAGINARY_ITEMS)
            - IMAGINARY_ITEMS
        )
        # The plain 1 / (information + 1) is up to 35% off.
        assert 1 - share == pytest.approx(density @ grid**2 - mode**2, rel=0.025)


def test_precision_is_learned_from_the_items_on_which_the_prior_acts():
    """Against plain loops: items that count nothing do not count, and half an item counts half."""
    rng = np.random.default_rng(2)
    d, information = rng.normal(0, 0.3, 60), np.full(60, 40.0)
    d[:4], information[:4] = [3.0, -3.4, 2.8, 2.0], [2.0, 1.5, 2.5, 4.5]
    fade = np.where(np.arange(60) < 3, 1.0, 0.0)
    fade[3] = 0.5
    share = 1 / (1 + np.exp(d))
    alpha = 0.4
    found = renewed_precision(d, information, share, alpha, fade)
    grid = np.linspace(-8, 8, 4001)
    certain, squares = IMAGINARY_ITEMS, IMAGINARY_ITEMS
    for k in range(4):
        p = share[k]
        n = information[k] / (p * (1 - p))
        u = grid / np.sqrt(information[k] + alpha)
        density = np.exp(-n * (p * u + np.log(1 - p + p * np.exp(-u))) - alpha / 2 * u**2)
        second = density @ (d[k] + u) ** 2 / density.sum()
        certain += fade[k] * (1 - alpha * (second - d[k] ** 2))
        squares += fade[k] * d[k] ** 2
    assert found == pytest.approx(certain / squares, rel=1e-3)
    assert 1.4 < found**-0.5 < 3  # the others lie 0.3 logits from their people
    assert renewed_precision(d, information, share, alpha, np.ones(60)) ** -0.5 < 1
    plain = prior_precision(d, information, alpha, fade)
    assert plain == pytest.approx(found, rel=0.2)
    far = prior_precision(d[:4], information[:4], alpha, fade[:4])
    assert plain == pytest.approx(far, rel=1e-9)


def test_items_far_from_people_who_were_given_items_near_to_them_are_not_drawn_in():
    """Two items of |difficulty| 3.5 with 20 answers among 40 that lie near their people; the prior's sd was 0.4."""
    outward = []
    for seed in range(12):
        rng = np.random.default_rng([seed, 7])
        beta = np.append(rng.normal(0, 0.9, 40), [3.5, -3.5])
        theta = rng.normal(0, 1, 600)
        away = np.abs(beta - theta[:, None] + rng.normal(0, 0.5, (600, 42)))
        away[:, 40:] = np.where(rng.random((600, 2)) < 20 / 600, 0.0, np.inf)
        seen = np.argsort(np.argsort(away, axis=1), axis=1) < 12
        table = np.where(seen, rng.random((600, 42)) < 1 / (1 + np.exp(beta - theta[:, None])), np.nan)
        fit = SpectralRasch().fit(table)
        truth = beta - beta.mean()
        error = fit.difficulty_ - truth
        outward += [error[40], -error[41]]
        assert fit.calibration_.prior.sd > 0.7
    # The error of a mean of 24 is about 0.15 logits; they were drawn in by a logit and more.
    assert np.mean(outward) > -0.65


@pytest.mark.slow
@pytest.mark.parametrize(("people", "p", "ability"), [(500, 0.02, 0.0), (300, 0.05, 0.0), (1000, 0.02, 1.5)])
@pytest.mark.parametrize("spread", [0.7, 1.5])
def test_empirical_bayes_finds_the_spread_of_the_difficulties(people, p, ability, spread):
    """With m items of information I, 1 / alpha is known to about sqrt(2 / m) (1 + 1 / (I spread^2)) of itself."""
    ratios = []
    for seed in range(3):
        sizes = {"design": "sampled", "p": p, "ability_mean": ability, "difficulty_sd": spread}
        data = simulate.rasch(people, 1000, seed=seed, **sizes)
        alpha = SpectralRasch(refine=False, se="none").fit(data.responses).regularization_.alpha
        ratios.append(alpha * np.var(data.difficulty))
    assert 0.8 < np.mean(ratios) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_errors_do_not_depend_on_which_answer_is_called_right(se):
    table = simulate.rasch(300, 300, design="sampled", p=0.05, seed=3).responses.to_dense()
    fit, mirrored = (SpectralRasch(refine=False, se=se).fit(answers) for answers in (table, 1 - table))
    assert np.sum(fit.status_ == "all wrong") >= 3
    # Rounds end when no item moves by more than a small part of its standard error.
    assert np.nanmax(np.abs(fit.difficulty_ + mirrored.difficulty_) / fit.se_) < 0.1
    np.testing.assert_allclose(fit.se_, mirrored.se_, rtol=0.06)
    np.testing.assert_allclose(fit.information_, mirrored.information_, rtol=0.15, atol=0.1)


@pytest.mark.slow
def test_errors_of_items_that_everybody_got_right_or_wrong():
    """Their squared error is on average what the standard errors say; 200 of them, so known to about a tenth."""
    squares = {"all right": [], "all wrong": []}
    for seed in range(6):
        data = simulate.rasch(300, 2000, design="sampled", p=0.1, difficulty_sd=1.5, seed=seed)
        fit = SpectralRasch(refine=False).fit(data.responses)
        error = fit.difficulty_ - data.difficulty + data.difficulty.mean()
        for word, found in squares.items():
            found.append((error[fit.status_ == word] ** 2, fit.se_[fit.status_ == word] ** 2))
    for found in squares.values():
        error, promised = (np.concatenate(part) for part in zip(*found, strict=True))
        assert len(error) > 60
        assert 0.6 < error.mean() / promised.mean() < 1.7


def star(leaves, people, two_sided):
    """Everybody meets the hub (item 0) and one leaf. A leaf always wins, or always loses if its number is odd."""
    table = np.full((leaves * people, leaves + 1), np.nan)
    for row in range(len(table)):
        leaf = 1 + row // people
        wins = not (two_sided and leaf % 2)
        table[row, 0], table[row, leaf] = not wins, wins
    return table


@pytest.mark.slow
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("leaves", "people"), [(20, 10), (200, 5), (200, 30)])
def test_the_prior_of_a_star_stays_within_reach(leaves, people, weighting, two_sided):
    """No comparison ever went both ways, so that no spread of difficulties is too wide for these answers."""
    fit = SpectralRasch(refine=False, weighting=weighting).fit(star(leaves, people, two_sided))
    assert fit.regularization_.alpha > 1 / 100  # a spread of ten logits
    assert np.abs(fit.difficulty_).max() < 23
    assert fit.se_.max() < 10
    assert fit.se_[1:].min() > 1  # and no leaf passes for known
    assert not (fit.status_ == "ok").any()


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_hub_of_a_star_is_not_carried_off_by_its_leaves(weighting):
    """The hub is compared both ways, with few of its leaves; the others only ever lost to it."""
    rng = np.random.default_rng(1)
    table = np.full((400, 201), np.nan)
    table[:, 0] = rng.random(400) < 0.9
    table[np.arange(400), 1 + np.arange(400) // 2] = rng.random(400) < 0.1
    fit = SpectralRasch(refine=False, weighting=weighting).fit(table)
    assert fit.status_[0] == "ok"
    assert np.abs(fit.difficulty_).max() < 15
    assert fit.se_.max() < 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_status_ok_means_compared_both_ways(seed, weighting):
    """Against the definition on small tables: somebody of mixed success was right, and somebody wrong."""
    rng = np.random.default_rng(seed)
    for _ in range(40):
        n, m = rng.integers(4, 12), rng.integers(3, 8)
        table = np.where(rng.random((n, m)) < 0.6, rng.random((n, m)) < 0.6, np.nan)
        right, count = np.nansum(table, axis=1), np.sum(~np.isnan(table), axis=1)
        mixed = table[(right > 0) & (right < count)]
        if not len(mixed) or (count > 0).sum() < 2:
            continue
        status = SpectralRasch(refine=False, weighting=weighting, regularization=1.0, se="none").fit(table).status_
        both = (mixed == 1).any(axis=0) & (mixed == 0).any(axis=0)
        assert both[status == "ok"].all()


def test_nu_gives_no_standard_error_where_it_stands_alone():
    """The sandwich would say 0.02 to 0.2 for items that everybody got right."""
    data = simulate.rasch(300, 30, seed=1).responses.to_dense()
    data[:, 0], data[:, 1] = 1, 0
    fit = SpectralRasch.paper().fit(data)
    assert fit.status_[:3].tolist() == ["all right", "all wrong", "ok"]
    assert np.isfinite(fit.difficulty_).all()
    assert np.isnan(fit.se_[:2]).all()
    assert np.isfinite(fit.se_[2:]).all()
    assert np.isnan(fit.covariance()[:2]).all()
    assert np.isfinite(fit.covariance()[2:, 2:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["persons", "pairs"])
@pytest.mark.parametrize("se", ["dense", "one-pass"])
def test_errors_without_ability_weights_of_items_that_rest_on_the_prior(weighting, se):
    """Their error is on average what the standard error says, the prior's own; it was half of that for most."""
    errors, promised = [], []
    for seed in range(3):
        data = simulate.rasch(300, 400, design="sampled", p=0.05, difficulty_sd=1.2, seed=seed)
        fit = SpectralRasch(refine=False, weighting=weighting, se=se).fit(data.responses)
        extreme = np.isin(fit.status_, ["all right", "all wrong"])
        errors.append((fit.difficulty_ - data.difficulty + data.difficulty.mean())[extreme])
        promised.append(fit.se_[extreme])
    errors, promised = np.concatenate(errors), np.concatenate(promised)
    assert len(errors) > 30
    assert 0.7 < np.sqrt(np.mean(errors**2)) / np.median(promised) < 1.4


@pytest.mark.parametrize("value", [1e308, 1e300, 1e-300, -1.0, float("inf"), float("nan")])
def test_strengths_that_no_arithmetic_can_weigh_are_refused(value):
    table = simulate.rasch(100, 5, seed=1).responses
    with pytest.raises(OptionError, match=r"`regularization` is .* 'auto', 0, or a number from 1e-06 to 1e"):
        SpectralRasch(refine=False, regularization=value).fit(table)
    with pytest.raises(OptionError, match=r"`nu` is .* 0, or a number from 1e-06 to 1e"):
        SpectralRasch.paper(nu=value).fit(table)


@pytest.mark.parametrize("items", [2, 3, 4])
def test_the_note_on_a_prior_says_how_far_it_moves_one_of_few_items(items):
    """Against a fit without it. With two items, moving one moves the other by as much the other way."""
    rng = np.random.default_rng(items)
    table = (rng.random((24, items)) < np.linspace(0.4, 0.65, items)).astype(float)
    fit = SpectralRasch().fit(table)
    moved = fit.difficulty_ - SpectralRasch(regularization=0).fit(table).difficulty_
    (note,) = (finding for finding in fit.findings_ if finding.code == "regularization")
    said = float(re.search(r"by about ([\d.]+) logits", note.sentence).group(1))
    assert said == pytest.approx(np.abs(moved).max(), rel=0.1)


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_said_of_a_prior_is_counted(ordered):
    """Items on which it acts, those without a finite estimate of their own, and the one that it moves most."""
    layout = Thresholds(np.array([2, 2, 3])) if ordered else Thresholds.ones(7)
    first = np.array([0, 0, 1, 1, 2, 2, 2]) if ordered else np.arange(7)
    fade = np.array([1.0, 0.0, 0.4]) if ordered else np.ones(7)
    location = SimpleNamespace(alpha=4.0, fade=fade)
    prior = SimpleNamespace(layout=layout, location=location, alpha=0.25 if ordered else 0.0)
    acts = np.array([True, True, True, False, True, False, True])
    own = np.array([True, False, True, True, True, True, True])
    low = np.array([3.0, 4.0, 8.0, 9.0, 0.0, 7.0, 20.0])
    high = np.array([9.0, 8.0, 4.0, 9.0, 5.0, 7.0, 10.0])
    step = np.array([-0.9, -5.0, 0.3, 3.0, -2.0, 1.0, 0.5])
    labels = np.array(list("abcdefg"), dtype=object)
    found = with_effect(
        Regularization(kind="neighbors", reason=""), prior, labels, acts, own, shift_of_step(step, low, high)
    )
    assert (found.alpha, found.sd) == (4.0, 0.5)
    assert (found.items, found.of) == (5, 7)
    assert found.alone == 2  # of the second, which says so, and the fifth, without answers of the lower kind
    assert found.located == (2 if ordered else 0)  # the second item has no prior on its location
    assert (found.offsets, found.offset_sd) == ((0.25, 2.0) if ordered else (0.0, 0.0))
    shifts = {}
    for k in np.flatnonzero(acts & own & (low > 0)):
        q = high[k] / (low[k] + high[k])
        # p with step = (p - q) / (p (1 - p)), by looking everywhere
        grid = np.linspace(1e-6, 1 - 1e-6, 2_000_001)
        p = grid[np.argmin(np.abs((grid - q) / (grid * (1 - grid)) - step[k]))]
        shifts[k] = abs(np.log(p / (1 - p)) - np.log(q / (1 - q)))
    most = max(shifts, key=shifts.get)
    assert found.shift == pytest.approx(shifts[most], abs=1e-4)
    name = f"item {labels[first[most]]!r}"
    assert found.moved == (f"threshold {layout.level[most]} of {name}" if ordered else name)
