"""Tables 7, 8, 13 and 14 of Facets for the ratings that come with the package, counted from the file.

Every essay has a rating of every rater on every item, so that one set of polynomials serves all essays: with
P_v(t) = sum_c w_vc t^c and w_vc = exp(-beta_v1 - ... - beta_vc), the chance of category c on v given the total r is
w_vc [t^(r-c)] prod_{u != v} P_u / [t^r] prod P_u, and likewise for two of them. Sums of these chances over the essays
are what is expected, and the covariances of passed thresholds are the information. Only the thresholds are the
package's; that the scores of its own parameters are zero there is tested first.
"""

from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from scipy import stats

import spectral_irt as si

ALLOWED = 1e-4  # standard errors: what series may move a parameter of few responses by

pytestmark = pytest.mark.slow


class Hand(NamedTuple):
    """All that is counted by hand; cells are raters with items, as the package has its virtual items."""

    study: object
    ratings: pl.DataFrame  # student, rater, item, rating, and total: that of the student
    raters: list
    items: list
    codes: np.ndarray
    observed: list[np.ndarray]  # of each cell: essays in each category, without those of extreme totals
    expected: list[np.ndarray]
    information: np.ndarray  # of the thresholds of all cells, given the totals
    residual: np.ndarray  # of each threshold: how often it is expected to be passed less how often it was
    design: np.ndarray  # thresholds x parameters: thresholds of the items, severities of all raters but the last

    def of_cell(self, rater, item):
        (cell,) = [k for k, one in enumerate(zip(self.raters, self.items, strict=True)) if one == (rater, item)]
        return cell

    def column(self, rater, item):
        """One for the thresholds of a rater on an item: a severity of its own."""
        owner = np.repeat(np.arange(len(self.expected)), [len(one) - 1 for one in self.expected])
        return (owner == self.of_cell(rater, item)).astype(float)

    def beyond_the_model(self, columns):
        """Score and information of further columns, less what the parameters of the model take up."""
        taken = columns.T @ self.information @ self.design
        own = self.design.T @ self.information @ self.design
        left = columns.T @ self.information @ columns - taken @ np.linalg.solve(own, taken.T)
        return columns.T @ self.residual, left


def product(polynomials):
    total = [np.ones(1)]
    for one in polynomials:
        total.append(np.convolve(total[-1], one))
    return total


@pytest.fixture(scope="module")
def hand():
    responses = si.datasets.load_writing()
    study = si.SpectralPartialCredit().fit(responses).analyse(responses)
    rated = study.calibration.facets
    names, rater = rated.facets.column("rater")
    raters = names[rater].tolist()
    items = rated.facets.items[rated.facets.item].tolist()
    steps = np.split(rated.likeliest, study.calibration.layout.first[1:])
    weight = [np.exp(-np.append(0, np.cumsum(beta))) for beta in steps]

    wide = pl.read_csv(si.datasets.writing_file())
    ratings = wide.unpivot(sorted(set(items)), index=["student", "rater"], variable_name="item", value_name="rating")
    codes = np.unique(ratings["rating"].to_numpy())
    ratings = ratings.with_columns(pl.col("rating").sub(codes[0]).sum().over("student").alias("total"))
    most = sum(len(beta) for beta in steps)
    number = np.bincount(ratings.unique("student")["total"].to_numpy(), minlength=most + 1).astype(float)
    number[[0, -1]] = 0  # no other way to that total
    inside = ratings.filter(pl.col("total").is_between(0, most, closed="none"))

    n_cells = len(weight)
    per_total = number / product(weight)[-1]
    observed, expected, both = [], [], {}
    for v in range(n_cells):
        others = weight[:v] + weight[v + 1 :]
        before, after = product(others), product(others[::-1])
        rest = before[-1]
        expected.append(np.array([w * (per_total[c : c + len(rest)] @ rest) for c, w in enumerate(weight[v])]))
        given = inside.filter((pl.col("rater") == raters[v]) & (pl.col("item") == items[v]))["rating"]
        observed.append(np.bincount(given.to_numpy() - codes[0], minlength=len(weight[v])))
        for u in range(v + 1, n_cells):
            rest = np.convolve(before[u - 1], after[n_cells - 1 - u])
            size = len(weight[v]) + len(weight[u]) - 1
            sums = np.array([per_total[c : c + len(rest)] @ rest for c in range(size)])
            place = np.add.outer(np.arange(len(weight[v])), np.arange(len(weight[u])))
            both[v, u] = np.outer(weight[v], weight[u]) * sums[place]

    # Covariances of thresholds passed: sums over essays of E[ab] - E[a] E[b], which goes by total.
    passed = [at_least(one)[1:] for one in expected]
    information = np.zeros((most, most))
    first = np.cumsum([0, *map(len, passed)])
    for (v, u), joint in both.items():
        block = at_least(at_least(joint).T).T[1:, 1:]
        information[first[v] : first[v + 1], first[u] : first[u + 1]] = block
        information[first[u] : first[u + 1], first[v] : first[v + 1]] = block.T
    for v, one in enumerate(passed):
        larger = np.maximum.outer(np.arange(len(one)), np.arange(len(one)))
        information[first[v] : first[v + 1], first[v] : first[v + 1]] = one[larger]
    for total in np.flatnonzero(number):
        alone = np.zeros(most + 1)
        alone[total] = 1 / product(weight)[-1][total]
        chances = []
        for v in range(n_cells):
            rest = np.convolve(*[product(part)[-1] for part in (weight[:v], weight[v + 1 :])])
            given = [w * (alone[c : c + len(rest)] @ rest) for c, w in enumerate(weight[v])]
            chances.append(at_least(np.array(given))[1:])
        together = np.concatenate(chances)
        information -= number[total] * np.outer(together, together)

    residual = np.concatenate([at_least(e)[1:] - at_least(o)[1:] for e, o in zip(expected, observed, strict=True)])
    level = np.concatenate([np.arange(len(one)) for one in passed])
    owner = np.repeat(np.arange(n_cells), list(map(len, passed)))
    of_thresholds = [(items[v], k) for v, k in zip(owner, level, strict=True)]
    of_raters = [raters[v] for v in owner]
    columns = [[one == wanted for one in of_thresholds] for wanted in sorted(set(of_thresholds))]
    columns += [[one == wanted for one in of_raters] for wanted in sorted(set(of_raters))[:-1]]
    design = np.array(columns, dtype=float)[1:].T  # the totals fix the mean of all
    return Hand(study, ratings, raters, items, codes, observed, expected, information, residual, design)


def at_least(counts):
    """From how many are in each category to how many are in it or above."""
    return np.cumsum(counts[::-1], axis=0)[::-1]


def test_the_scores_of_the_model_are_zero_at_its_thresholds(hand):
    score = hand.design.T @ hand.residual
    own = np.diag(hand.design.T @ hand.information @ hand.design)
    np.testing.assert_allclose(score / np.sqrt(own), 0, atol=ALLOWED)


def test_table_8_counts_the_categories_of_every_rater(hand):
    found = hand.study.category_use("rater")
    counted = hand.ratings.group_by("rater", "rating").len()
    of_rater = hand.ratings.group_by("rater").len()
    extreme = hand.ratings.join(pl.DataFrame({"total": [0]}), on="total").group_by("rater", "rating").len()
    assert found["n"].sum() == len(hand.ratings)
    for row in found.iter_rows(named=True):
        same = (pl.col("rater") == row["rater"]) & (pl.col("rating") == row["category"])
        assert row["n"] == counted.filter(same)["len"].sum()
        assert row["share"] == pytest.approx(row["n"] / of_rater.filter(pl.col("rater") == row["rater"])["len"].item())
        category = row["category"] - hand.codes[0]
        expected = sum(
            one[category] for one, rater in zip(hand.expected, hand.raters, strict=True)
            if rater == row["rater"] and category < len(one)
        )  # fmt: skip
        without_choice = extreme.filter(same)["len"].sum()
        assert row["expected"] == pytest.approx(expected + without_choice, rel=1e-4, abs=1e-3)


def test_table_7_has_the_averages_of_the_file(hand):
    found = hand.study.facet("rater")
    means = dict(hand.ratings.group_by("rater").agg(pl.col("rating").mean()).iter_rows())
    assert dict(zip(found["rater"], found["observed_average"], strict=True)) == pytest.approx(means)
    severe = found.sort("severity")["observed_average"].to_list()
    assert severe == sorted(severe, reverse=True)  # where everybody rates everything, severity goes by the average


def test_table_13_has_bias_with_observed_and_expected_averages(hand):
    found = hand.study.interactions("rater")
    assert len(found) == len(hand.expected) == 84
    means = hand.ratings.group_by("rater", "item").agg(pl.col("rating").mean(), pl.len())
    z = []
    for row in found.iter_rows(named=True):
        given = means.filter((pl.col("rater") == row["rater"]) & (pl.col("item") == row["item"]))
        assert (row["n"], row["observed_average"]) == (given["len"].item(), pytest.approx(given["rating"].item()))
        cell = hand.of_cell(row["rater"], row["item"])
        codes = hand.codes[: len(hand.expected[cell])]
        more = (hand.expected[cell] - hand.observed[cell]) @ codes / row["n"]
        assert row["expected_average"] == pytest.approx(given["rating"].item() + more, abs=1e-4)
        score, left = hand.beyond_the_model(hand.column(row["rater"], row["item"])[:, None])
        assert row["bias"] == pytest.approx((score / left).item(), abs=2e-3)
        assert row["se"] == pytest.approx(left.item() ** -0.5, rel=1e-3)
        z.append(score.item() / left.item() ** 0.5)
    np.testing.assert_allclose(found["z"], z, atol=1e-2)
    np.testing.assert_allclose(found["p"], 2 * stats.norm.sf(np.abs(z)), atol=1e-3)


def test_table_14_has_every_two_items_of_a_rater(hand):
    found = hand.study.contrasts("rater")
    assert len(found) == 21 * 6
    for row in found.iter_rows(named=True):
        columns = np.column_stack([hand.column(row["rater"], row[name]) for name in ("item", "other_item")])
        score, left = hand.beyond_the_model(columns)
        difference = np.array([1.0, -1.0])
        assert row["contrast"] == pytest.approx(difference @ np.linalg.solve(left, score), abs=5e-3)
        assert row["se"] == pytest.approx((difference @ np.linalg.solve(left, difference)) ** 0.5, rel=2e-3)
