"""Change between waves: missing waves against enumeration, response shift by formula, persons, orders, refusals."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import spectral_irt as si
from spectral_irt.data.crossing import answers_of, cross_with_column, persons_by_level
from spectral_irt.errors import DesignError, OptionError


def table(seed=0, n=120, items=3, waves=3, missing=0.3, categories=3, growth=0.5, effect=0.6, shift=0.0):
    """A row for each person and wave; `shift` makes the first item harder in the last wave."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=n)
    treated = rng.random(n) < 0.5
    beta = np.linspace(-0.7, 0.7, items)[:, None] + (np.zeros(1) if categories == 2 else np.array([-0.5, 0.5]))
    rows = []
    for person, wave in product(range(n), range(waves)):
        if wave and rng.random() < missing:
            continue
        level = ability[person] + wave * (growth + effect * treated[person])
        harder = np.zeros(items)
        harder[0] = shift * (wave == waves - 1)
        steps = np.cumsum(level - beta - harder[:, None], axis=1)
        p = np.exp(np.hstack([np.zeros((items, 1)), steps]))
        p = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
        category = (rng.random((items, 1)) > p).sum(axis=1)
        arm = "treated" if treated[person] else "control"
        rows.append(
            {"person": f"p{person:03}", "wave": wave + 1, "arm": arm}
            | {f"q{k}": int(x) for k, x in enumerate(category)}
        )
    return pl.DataFrame(rows)


def read(frame, **options):
    return si.read(frame, facets=["wave"], people=["arm"], **options)


def enumerated(frame, items, waves):
    """Trend and effects at the maximum of the likelihood given the totals, by all response patterns of each person."""
    highest = frame.select(f"q{k}" for k in range(items)).max().row(0)
    n_steps = sum(highest)

    def thresholds(eta, wave, treated):
        trend = np.concatenate([[0.0], eta[n_steps : n_steps + waves - 1]])[wave - 1]
        effect = np.concatenate([[0.0], eta[n_steps + waves - 1 :]])[wave - 1]
        return np.split(eta[:n_steps] - trend - treated * effect, np.cumsum(highest)[:-1])

    people = []
    for _, rows in frame.group_by("person", maintain_order=True):
        observed = [row[f"q{k}"] for row in rows.iter_rows(named=True) for k in range(items)]
        people.append((rows["wave"].to_list(), rows["arm"][0] == "treated", observed))

    patterns = {}
    for seen, _, _ in people:
        every = np.array(list(product(*[range(m + 1) for _ in seen for m in highest])))
        patterns[len(seen)] = (every, every.sum(axis=1))

    def loss(eta):
        total = 0.5 * np.sum(eta[:n_steps]) ** 2  # the level of the items is free
        logits = {}
        for seen, treated, observed in people:
            key = (tuple(seen), treated)
            if key not in logits:
                every, score = patterns[len(seen)]
                steps = [t for wave in seen for t in thresholds(eta, wave, treated)]
                logits[key] = (
                    score,
                    -sum(np.append(0.0, np.cumsum(t))[every[:, k]] for k, t in enumerate(steps)),
                    steps,
                )
            score, logit, steps = logits[key]
            own = -sum(np.append(0.0, np.cumsum(t))[x] for x, t in zip(observed, steps, strict=True))
            among = logit[score == sum(observed)]
            total -= own - (among.max() + np.log(np.exp(among - among.max()).sum()))
        return total

    fit = minimize(loss, np.zeros(n_steps + 2 * (waves - 1)), method="BFGS", options={"gtol": 1e-7})
    return fit.x[n_steps:], -fit.fun


@pytest.mark.parametrize("categories", [2, 3])
def test_missing_waves_against_enumeration(categories):
    frame = table(seed=3, n=40, items=2, waves=3, missing=0.4, categories=categories)
    found = si.change(read(frame), "wave", arm="arm").change.one_ability
    expected, loglik = enumerated(frame, 2, 3)
    value = {(each.arm, each.wave, each.against): x for each, x in zip(found.contrasts, found.value, strict=True)}
    ours = [value[0, 1, -1], value[0, 2, -1], value[1, 1, 0], value[1, 2, 0]]
    np.testing.assert_allclose(ours, expected, atol=2e-5)
    assert found.loglik == pytest.approx(loglik, abs=1e-6)
    assert value[1, 2, -1] == pytest.approx(value[0, 2, -1] + value[1, 2, 0], abs=1e-12)


@pytest.fixture(scope="module")
def frame():
    return table(seed=1, n=400, items=5, shift=0.9)


@pytest.fixture(scope="module")
def study(frame):
    return si.change(read(frame), "wave", arm="arm")


def test_the_shifted_item_is_named(study):
    shifts = study.change.shifts
    rows = study.change.shifted
    assert [(shifts["item"][k], int(shifts["wave"][k])) for k in rows[:1]] == [("q0", 3)]
    assert shifts["shift"][rows[0]] == pytest.approx(0.9, abs=0.35)
    [finding] = [finding for finding in study.change.findings if finding.code == "response_shift"]
    assert finding.items[0] == "q0"


def test_the_score_test_is_about_the_likelihood_ratio(frame):
    """Of one more column, item q0 in wave 3: both are chi-square, and close in this sample."""
    plain = si.change(read(frame), "wave").change
    split = frame.with_columns(q0b=pl.when(pl.col("wave") == 3).then(pl.col("q0")))
    split = split.with_columns(q0=pl.when(pl.col("wave") != 3).then(pl.col("q0")))
    apart = si.change(read(split), "wave").change
    ratio = 2 * (apart.one_ability.loglik - plain.one_ability.loglik)
    # The thresholds of the item in that wave are free in one, and its location alone in the other: one df apart.
    k = np.flatnonzero((plain.shifts["item"] == "q0") & (plain.shifts["wave"] == 3))[0]
    assert plain.shifts["z"][k] ** 2 == pytest.approx(ratio, rel=0.25)


def test_persons_have_a_measure_for_each_wave(study, frame):
    persons = study.change.person_columns
    assert len(persons["person"]) == 400
    assert persons["waves"].sum() == len(frame)
    k = int(np.flatnonzero((persons["waves"] == 2) & np.isfinite(persons["measure_2"]))[0])
    assert persons["last_wave"][k] == 2
    assert persons["change"][k] == pytest.approx(persons["measure_2"][k] - persons["measure_1"][k])
    assert persons["change_se"][k] == pytest.approx(np.hypot(persons["se_1"][k], persons["se_2"][k]))
    alone = persons["waves"] == 1
    assert np.isnan(persons["change"][alone]).all()
    assert any(finding.code == "one_wave" for finding in study.change.findings)
    rescaled = study.change.persons_on(si.Scale(50, 10))
    np.testing.assert_allclose(rescaled["change"], 10 * persons["change"])
    np.testing.assert_allclose(rescaled["measure_1"], 50 + 10 * persons["measure_1"])


def test_reliable_change_is_beyond_196_errors(study):
    persons = study.change.person_columns
    ratio = persons["change"] / persons["change_se"]
    assert ((persons["reliable"] == "increase") == (ratio > 1.96)).all()
    assert ((persons["reliable"] == "decrease") == (ratio < -1.96)).all()
    for arm in study.change.spread:
        assert arm["sd_beyond"] ** 2 == pytest.approx(max(arm["sd"] ** 2 - arm["sd_of_errors"] ** 2, 0))


def test_p_is_adjusted_for_the_waves_of_an_arm(study):
    columns = study.change.table_columns
    family = (columns["arm"] == "treated") & (columns["against"] == "control")
    p = np.sort(columns["p"][family])
    assert columns["p_holm"][family].min() == pytest.approx(2 * p[0])


def test_waves_in_another_order(study, frame):
    backward = si.change(read(frame), "wave", arm="arm", order=[3, 2, 1]).change
    forward = study.change
    ours = {
        (e.arm, e.against): x
        for e, x in zip(backward.one_ability.contrasts, backward.one_ability.value, strict=True)
        if e.wave == 2
    }
    theirs = {
        (e.arm, e.against): x
        for e, x in zip(forward.one_ability.contrasts, forward.one_ability.value, strict=True)
        if e.wave == 2
    }
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(-value, abs=1e-6)


def test_one_threshold_is_the_case_of_two_categories():
    frame = table(seed=5, n=150, categories=2)
    binary = si.change(read(frame), "wave", arm="arm", each_item=True).change.table_columns
    ordered = si.change(read(frame, ordered=True), "wave", arm="arm", each_item=True).change.table_columns
    np.testing.assert_allclose(binary["change"], ordered["change"], atol=1e-6)
    np.testing.assert_allclose(binary["se"], ordered["se"], atol=1e-6)


def test_crossed_and_regrouped_keep_every_response(frame):
    responses = read(frame)
    virtual = cross_with_column(responses, "arm")
    assert virtual.n_responses == responses.n_responses
    assert virtual.facets.names == ("item", "wave", "arm")
    before, after = answers_of(responses), answers_of(virtual)
    assert sorted(zip(before.person, before.category, strict=True)) == sorted(
        zip(after.person, after.category, strict=True)
    )
    waves, code = responses.facets.column("wave")
    by_wave = persons_by_level(responses, code, waves)
    assert by_wave.responses.n_responses == responses.n_responses
    assert by_wave.responses.items.tolist() == responses.facets.items.tolist()
    person, wave = by_wave.person[7], by_wave.level[7]
    row = frame.filter((pl.col("person") == responses.persons[person]) & (pl.col("wave") == waves[wave]))
    assert by_wave.responses.scores[7] == sum(row.row(0)[3:])


def test_items_that_everybody_gets_alike_are_left_out(study, frame):
    found = si.change(read(frame.with_columns(q9=pl.lit(1), q8=pl.lit(0))), "wave", arm="arm").change
    np.testing.assert_allclose(found.one_ability.value, study.change.one_ability.value, atol=1e-8)
    assert found.extreme_items == ("q8", "q9")


def test_refusals(frame):
    with pytest.raises(DesignError, match="a single wave"):
        si.change(read(frame.filter(pl.col("wave") == 1)), "wave")
    with pytest.raises(DesignError, match="a single arm"):
        si.change(read(frame.filter(pl.col("arm") == "control")), "wave", arm="arm")
    with pytest.raises(OptionError, match="more than one value in the column 'arm'"):
        read(frame.with_columns(arm=pl.when(pl.col("wave") == 1).then(pl.lit("control")).otherwise(pl.col("arm"))))
    apart = [frame.filter(pl.col("wave") == w).rename({f"q{k}": f"q{k}_{w}" for k in range(5)}) for w in (1, 2)]
    with pytest.raises(DesignError, match="no items are in common"):
        si.change(read(pl.concat(apart, how="diagonal")), "wave")
    once = pl.concat(
        [frame.filter(pl.col("wave") == 1), frame.filter(pl.col("wave") == 2).with_columns(pl.col("person") + "x")]
    )
    with pytest.raises(DesignError, match="nobody has responses in two waves"):
        si.change(read(once), "wave")
    with pytest.raises(OptionError, match="lacks 3"):
        si.change(read(frame), "wave", order=[1, 2])
    with pytest.raises(OptionError, match="main effect is in their abilities"):
        si.SpectralPartialCredit().fit(read(frame), design=si.LinearDesign("items + wave + arm"))


def test_the_llra_with_effects_for_each_item(frame):
    """Twice the gain of the likelihood; a trend and an effect for each later wave and item, less the shared ones."""
    found = si.change(read(frame), "wave", arm="arm", each_item=True).change
    statistic, df, p = found.likelihood_ratio
    assert statistic == pytest.approx(2 * (found.item_effects.loglik - found.each_item.loglik))
    assert df == 2 * 2 * (5 - 1)
    assert p == pytest.approx(chi2.sf(statistic, df))
    assert found.to_dict()["each_item"] == {"statistic": statistic, "df": df, "p": p}
    models = found.table_columns["model"]
    assert models.tolist() == ["one ability"] * 6 + ["each item"] * 6
    assert [found.one_ability.contrasts[k].against for k in found.one_ability.where(0)] == [0, 0]
    assert len(found.one_ability.where()) == 4
    assert si.change(read(frame), "wave", arm="arm").change.likelihood_ratio is None


def test_the_sentence_is_about_the_last_wave(study, frame):
    table = study.change.table_columns
    (sentence,) = study.change.sentences
    assert sentence.startswith("Change in logits from wave 1 to 3: control ")
    last = table["wave"] == 3
    assert sentence.count("SE") == last.sum() == 3
    for value in table["change"][last]:
        assert f"{value:+.2f} (SE" in sentence
    assert "treated less control" in sentence
    everybody = si.change(read(frame), "wave").change.sentences[0]
    assert "1 to 3: change " in everybody


def test_persons_in_two_waves_count(study, frame):
    """Of each arm and wave those who have another wave; of a difference of arms those of both."""
    table = study.change.table_columns
    waves = frame.group_by("person").len().filter(pl.col("len") > 1)["person"]
    several = frame.filter(pl.col("person").is_in(waves.to_list()))
    for arm, against, wave, n in zip(*(table[name] for name in ("arm", "against", "wave", "n")), strict=True):
        arms = [arm, against]
        assert n == len(several.filter(pl.col("arm").is_in(arms) & (pl.col("wave") == wave)))
    for row in study.change.spread:
        persons = study.change.person_columns
        change = persons["change"][(persons["arm"] == row["arm"]) & np.isfinite(persons["change"])]
        assert (row["n"], row["mean"]) == (len(change), pytest.approx(change.mean()))
        assert row["sd"] == pytest.approx(change.std(ddof=1))
