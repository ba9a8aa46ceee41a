"""Questions to look at: each reason on data in which it was planted, with counts taken by a plain loop."""

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.data.answer_key import KEY
from spectral_irt.data.scoring import BLANK
from spectral_irt.inference.items.distractors import Distractors
from spectral_irt.inference.items.review import items_to_look_at, surely_low

N = 120
CLEAN = 12


def planted():
    """Persons in order of ability; clean questions that the better ones answer right, and five with something odd."""
    columns = {"person": [f"p{k:03d}" for k in range(N)]}
    for i in range(CLEAN):
        limit = 10 + 8 * i  # the answer of every seventh person is the other way round
        right = [(k >= limit) != (k % 7 == i % 7) for k in range(N)]
        columns[f"clean{i}"] = ["A" if each else "BCD"[k % 3] for k, each in enumerate(right)]
    columns["miskeyed"] = ["B" if k >= 50 else "ACD"[k % 3] for k in range(N)]  # the key says A
    columns["easy"] = ["B" if k == 3 else "A" for k in range(N)]
    columns["hard"] = ["A" if k % 10 == 9 else "BCD"[k % 3] for k in range(N)]
    columns["popular"] = ["A" if k >= 80 else "C" if k % 4 else "BD"[k % 8 == 0] for k in range(N)]  # 60 C
    columns["coin"] = ["A" if (k * 37) % 11 < 6 else "BCD"[k % 3] for k in range(N)]
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def study():
    frame = planted()
    key = dict.fromkeys(frame.columns[1:], "A")
    responses = si.read(frame, key=key)
    return si.SpectralRasch().fit(responses).analyse(responses)


def test_each_planted_question_is_named_for_its_reason(study):
    looks = {look.item: look for look in study._to_look_at()}
    assert set(looks) == {"miskeyed", "easy", "hard", "popular", "coin"}
    assert looks["miskeyed"].reasons == ("key",)
    assert looks["miskeyed"].option == "B"
    assert looks["easy"].reasons == ("easy",)
    assert looks["popular"].reasons == ("more",)
    assert looks["coin"].reasons == ("flat",)
    assert looks["hard"].reasons[-1] == "hard"


def test_numbers_are_those_of_a_plain_count(study):
    frame = planted()
    for look in study._to_look_at():
        answers = frame[look.item].to_list()
        assert look.n == len(answers)
        assert look.right == answers.count("A")
        assert look.n_options == len(set(answers))
        if look.option is not None:
            assert look.chose == answers.count(look.option)


def test_serious_reasons_come_first(study):
    looks = study._to_look_at()
    assert looks[0].item == "miskeyed"
    assert looks[-1].item == "easy"


def test_a_low_correlation_is_one_whose_interval_is_below_the_usual():
    correlation, n = 0.05, 400
    upper = np.tanh(np.arctanh(correlation) + 1.6448536 / np.sqrt(n - 3))
    assert upper < 0.2
    assert surely_low(np.array([correlation]), np.array([n])).tolist() == [True]
    assert surely_low(np.array([correlation]), np.array([50])).tolist() == [False]


def test_clean_data_are_hardly_ever_named():
    """Of simulated questions without a fault, keys are not suspected, and few are named flat."""
    data = si.simulate.rasch(200, 30, seed=5)
    rng = np.random.default_rng(8)
    x = data.responses.to_dense()
    letters = np.where(x == 1, "A", rng.choice(["B", "C", "D"], size=x.shape))
    frame = pl.DataFrame({"person": np.arange(200).astype(str), **{f"q{i}": letters[:, i] for i in range(30)}})
    responses = si.read(frame, key={f"q{i}": "A" for i in range(30)})
    study = si.SpectralRasch().fit(responses).analyse(responses)
    reasons = [reason for look in study._to_look_at() for reason in look.reasons]
    assert "key" not in reasons
    assert reasons.count("flat") + reasons.count("higher") <= 1


def table_of_one(counts, suspect=(), above_key=()):
    """An item with the key in the first row, so many people each; blanks in the last."""
    n = len(counts)
    code = np.array([KEY, *range(2, n), BLANK])
    columns = {"item": np.full(n, "q"), "option": np.array(list("ABCDEFG"[:n])), "n": np.array(counts)}
    rows = np.arange(n)
    return Distractors(columns, np.isin(rows, suspect), np.isin(rows, above_key), code, ())


@pytest.mark.parametrize(
    ("counts", "correlation", "marks", "reasons", "option"),
    [
        ((60, 30, 10, 0), 0.4, {}, (), None),
        ((40, 40, 20, 0), 0.4, {}, (), None),  # as many is not more
        ((40, 41, 19, 0), 0.4, {}, ("more",), "B"),
        ((40, 19, 41, 0), 0.4, {}, ("more",), "C"),
        ((40, 20, 20, 20), 0.4, {}, (), None),  # blanks are no option
        ((40, 41, 19, 0), 0.4, {"suspect": (2,)}, ("key",), "C"),
        ((30, 41, 29, 0), 0.0, {"suspect": (1, 2)}, ("key",), "B"),  # of two the more frequent; nothing else is said
        ((60, 10, 30, 0), 0.4, {"above_key": (1, 2)}, ("higher",), "C"),
        ((40, 41, 19, 0), 0.4, {"above_key": (2,)}, ("more",), "B"),
        ((40, 41, 19, 0), -0.3, {"above_key": (1,)}, ("swapped", "flat"), "B"),
        ((40, 41, 19, 0), -0.3, {}, ("more", "flat"), "B"),
        ((60, 30, 10, 0), 0.0, {}, ("flat",), None),
        ((60, 30, 10, 0), 0.1, {}, (), None),  # it may be .2
        ((60, 30, 10, 0), np.nan, {}, (), None),
        ((33, 33, 33, 0), 0.4, {}, ("hard",), None),  # at the level of guessing, with three options in use
        ((34, 33, 33, 0), 0.4, {}, (), None),
        ((20, 16, 16, 16, 16, 16, 0), 0.4, {}, ("hard",), None),
        ((21, 16, 16, 16, 16, 15, 0), 0.4, {}, (), None),
        ((95, 5, 0, 0), 0.0, {}, ("easy",), None),  # a flat correlation says nothing there
        ((94, 6, 0, 0), 0.0, {}, ("flat",), None),
        ((0, 50, 50, 0), 0.0, {}, ("most", "hard"), "B"),
        ((1, 17, 5, 3, 0), 0.1, {}, ("most", "hard"), "B"),  # a key of which too few chose it to compare them
        ((12, 50, 20, 18, 0), 0.3, {}, ("most", "hard"), "B"),
        ((13, 50, 20, 17, 0), 0.3, {}, ("more", "hard"), "B"),  # more than half of what guessing gives
        ((12, 49, 21, 18, 0), 0.3, {}, ("more", "hard"), "B"),
        ((100, 0, 0, 0), np.nan, {}, ("easy",), None),
    ],
)
def test_reasons_to_look_at_a_question(counts, correlation, marks, reasons, option):
    (look,) = items_to_look_at(table_of_one(counts, **marks), np.array([correlation])) or [None]
    if look is None:
        assert reasons == ()
        return
    assert look.reasons == reasons
    assert look.option == option
    assert (look.n, look.right, look.chose_key) == (sum(counts), counts[0], counts[0])
    assert look.chose == (0 if option is None else counts["ABCDEFG".index(option)])
    assert look.n_options == 1 + sum(n > 0 for n in counts[1:-1])
