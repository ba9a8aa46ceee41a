"""Right and wrong is the case of one threshold, for a whole analysis: every method, every finding, every file.

The same 0/1 answers go in as right and wrong and as categories, and once more beside an item of three categories that
nobody answered, so that the kernels for any number of thresholds do the work.
"""

import json

import numpy as np
import polars as pl
import pytest

import spectral_irt as si
from spectral_irt.analysis.cache import columns_of
from spectral_irt.data.block import Thresholds
from spectral_irt.data.responses import Responses

ITEMS = 12
SEX = np.where(np.arange(300) % 2, "f", "m")
CLASS = np.arange(300) % 9


def answers(seed=4, missing=0.15):
    """Answers with a noisy item, an item that is harder for one sex, and one that is turned round."""
    rng = np.random.default_rng(seed)
    beta = np.linspace(-1.5, 1.5, ITEMS)
    theta = rng.normal(0.3, 1.2, 300)
    logits = theta[:, None] - beta
    logits[:, 3] = rng.normal(size=300)
    logits[:, 5] += np.where(SEX == "f", 0.9, -0.9)
    logits[:, 7] *= -1
    right = (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)
    right[rng.random(right.shape) < missing] = np.nan
    return right


def as_right_and_wrong(x):
    return si.ConditionalRasch().fit(Responses.from_wide(x)).analyse(Responses.from_wide(x))


def as_categories(x):
    given = Responses.from_wide(x, ordered=True)
    return si.ConditionalPartialCredit().fit(given).analyse(given)


def beside_another(x):
    """The calibration of right and wrong answers, with an item of three categories that nobody answered."""
    made = si.ConditionalRasch().fit(x).calibration_
    layout = Thresholds(np.append(np.ones(ITEMS, dtype=np.int64), 2))
    made = made.replace(
        layout=layout,
        labels=np.arange(ITEMS + 1),
        thresholds=np.append(made.thresholds, [np.nan, np.nan]),
        threshold_se=np.append(made.threshold_se, [np.nan, np.nan]),
        location_se=np.append(made.se, np.nan),
        item_information=np.append(made.item_information, np.nan),
        status=np.append(made.status, "no responses"),
        n=np.append(made.n, 0),
        score=np.append(made.score, 0),
        category_n=np.vstack([np.pad(made.category_n, ((0, 0), (0, 1)), constant_values=np.nan), [0.0, 0.0, 0.0]]),
        codes=np.vstack([np.pad(made.codes, ((0, 0), (0, 1)), constant_values=np.nan), [0.0, 1.0, 2.0]]),
        threshold_covariance=None,
        further={},
    )
    person, item = np.nonzero(~np.isnan(x))
    code = x[person, item].astype(np.int64)
    ids = {"persons": np.arange(len(x)), "items": np.arange(ITEMS + 1)}
    return si.Analysis(made, Responses.from_codes(person, item, code, thresholds=layout, codes=made.codes, **ids))


@pytest.fixture(scope="module", params=[0.0, 0.15], ids=["complete", "missing"])
def studies(request):
    x = answers(missing=request.param)
    return as_right_and_wrong(x), as_categories(x), beside_another(x)


def same(one, other, *, atol=1e-6, names=None):
    """Columns of the same content, but for items that only one of them has."""
    rows = np.ones(len(next(iter(other.values()))), dtype=bool)
    if "item" in other and other["item"].dtype.kind == "i":
        rows = other["item"] != ITEMS
    for name in names or one:
        mine, theirs = np.asarray(one[name]), np.asarray(other[name])[rows]
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=atol, err_msg=name)
        else:
            assert mine.tolist() == theirs.tolist(), name


TABLES = {
    "person_ranking": lambda s: columns_of(s.person_ranking),
    "persons": lambda s: columns_of(s.persons),
    "persons_ml": lambda s: columns_of(s.persons, "ml"),
    "persons_eap": lambda s: columns_of(s.persons, "eap"),
    "residuals": lambda s: columns_of(s.residuals),
    "unexpected_answers": lambda s: columns_of(s.unexpected_answers),
    "scores": lambda s: columns_of(s.scores),
    "group_means": lambda s: columns_of(s.group_means, SEX),
    "cuts": lambda s: columns_of(s.cuts, [0.0, 1.0]),
    "cuts_raw": lambda s: columns_of(s.cuts, [4, 8], raw=True),
    "item_fit": lambda s: columns_of(s.item_fit),
    "item_analysis": lambda s: columns_of(s.item_analysis),
    "ranking": lambda s: columns_of(s.ranking),
    "dif": lambda s: s.dif(SEX).contrasts,
}


@pytest.mark.parametrize("name", [*list(TABLES)[1:], pytest.param("person_ranking", marks=pytest.mark.slow)])
def test_tables(studies, name):
    right, categories = (TABLES[name](study) for study in studies[:2])
    assert list(right) == list(categories)
    same(right, categories, atol=1e-8 if name == "dif" else 1e-6)
    if name not in ("ranking", "cuts", "cuts_raw", "dif"):  # these name or count the item that nobody answered
        beside = TABLES[name](studies[2])
        common = [column for column in right if column in beside and column != "alpha_if_deleted"]
        same(right, beside, names=common, atol=1e-5)


def test_reliability(studies):
    one, other, beside = (study.reliability() for study in studies)
    for name, value in one.to_dict().items():
        assert value == (pytest.approx(other.to_dict()[name], nan_ok=True) if value is not None else None), name
    for name in ("eap_reliability", "sep_rel", "n_lowest", "n_highest", "targeting"):
        assert getattr(one, name) == pytest.approx(getattr(beside, name), abs=1e-5), name


@pytest.mark.parametrize("ask", ["quick_model_test", "model_test", "hausman"])
def test_tests_of_the_model(studies, ask):
    one, other, _ = (getattr(study, ask)() for study in studies)
    near = 0.01 if ask == "model_test" else 1e-4  # which calibrates halves, each with errors of its estimator's kind
    assert one.statistic == pytest.approx(other.statistic, rel=near)


def test_findings_and_text(studies):
    one, other, beside = studies
    said = [[(f.code, f.severity, f.items) for f in study.findings()] for study in (one, other)]
    assert said[0] == said[1]
    assert {code for code, *_ in said[0]} <= {f.code for f in beside.findings()} | {"low_information"}
    first, second = (study.summary().splitlines() for study in (one, other))
    table = next(k for k, line in enumerate(first) if line.startswith("people"))
    assert first[:table] == second[:table]
    assert "thresholds" in beside.summary()


def test_records_and_files(studies, tmp_path):
    one, other, beside = studies
    records = [study.record() for study in studies]
    assert list(records[0]) == list(records[1]) == list(records[2])
    assert (records[0]["model"], records[1]["model"]) == ("rasch", "pcm")
    assert records[0]["estimator"] == records[1]["estimator"] == "cml"
    for study, folder in ((one, "a"), (other, "b"), (beside, "c")):
        study.write(tmp_path / folder, every=True)
    names = [path.name for path in sorted((tmp_path / "a").iterdir())]
    assert names == [path.name for path in sorted((tmp_path / "b").iterdir())]
    assert {*names, "thresholds.csv", "curves.csv"} == {path.name for path in (tmp_path / "c").iterdir()}
    for name in names:
        if name != "fit.json":
            frames = [pl.read_csv(tmp_path / folder / name, infer_schema_length=None) for folder in "ab"]
            same(*({column: frame[column].to_numpy() for column in frame.columns} for frame in frames))
    assert json.loads((tmp_path / "c" / "fit.json").read_text())["counts"]["thresholds"] == ITEMS + 2


@pytest.mark.slow
def test_what_was_asked_is_what_is_kept():
    """Another grouping under the same name, or none: never the answer to an earlier question."""
    x = answers()
    study = as_right_and_wrong(x)
    by_sex, by_class = study.parts(groups={"g": SEX}), study.parts(groups={"g": CLASS % 3})
    first, second = (study.tables(parts)["dif"] for parts in (by_sex, by_class))
    assert len(first["group"]) != len(second["group"])
    described = [columns_of(study.group_means, {"g": labels})["group"].tolist() for labels in (SEX, CLASS)]
    assert [len(groups) for groups in described] == [2, 9]
    assert study.dif(SEX) is study.dif(SEX.tolist())
    one, other = study._quick_hausman(None), study._quick_hausman(SEX)
    assert one is None or one is not other


def test_only_what_users_ask_is_offered():
    offered = {name for name in dir(as_right_and_wrong(answers())) if not name.startswith("_")}
    assert not {name for name in offered if name.endswith("_columns")}
