"""Sites that do not pool their answers: the same numbers as all answers together, and nothing but sums in any file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from spectral_irt import Responses, SpectralRasch, answer_rounds, federate
from spectral_irt.cli.main import main
from spectral_irt.errors import FederationError, OptionError, SitesMissing
from spectral_irt.federated.coordinating import FederatedEngine, responses_of_sites
from spectral_irt.federated.folder import answer_file, round_file
from spectral_irt.federated.learning import Heard, likely_rates
from spectral_irt.federated.protocol import ASKED, SUMS, TOTALS, Answer, Round
from spectral_irt.federated.site import answer_round
from spectral_irt.responses.labels import label_array

pytestmark = pytest.mark.slow  # many short runs of whole jobs

SAME = 1e-10
NAMES = ["north", "south", "west"]


def drawn(n: int, items: range, share: float, seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    difficulty = np.random.default_rng(99).normal(size=200)[items]
    table = (rng.random((n, len(items))) < 1 / (1 + np.exp(difficulty - rng.normal(size=(n, 1))))).astype(float)
    table[rng.random(table.shape) > share] = np.nan
    return table


def overlapping(m: int, each: int) -> list[range]:
    """Three runs of items that cover m items."""
    return [range(start, start + each) for start in (0, (m - each) // 2, m - each)]


def three_sites(
    ranges: list[range], n: int = 150, share: float = 0.6, seed: int = 0
) -> tuple[dict[str, Responses], Responses]:
    """Sites with different, overlapping items; and all of their answers together."""
    m = max(one.stop for one in ranges)
    sites, rows = {}, []
    for k, (name, items) in enumerate(zip(NAMES, ranges, strict=True)):
        table = drawn(n + 20 * k, items, share, 3 * seed + k)
        sites[name] = Responses.from_wide(table, items=[f"q{i}" for i in items])
        wide = np.full((len(table), m), np.nan)
        wide[:, items.start : items.stop] = table
        rows.append(wide)
    return sites, Responses.from_wide(np.vstack(rows), items=[f"q{i}" for i in range(m)])


def run(folder: Path, sites: dict[str, Responses], **options: Any) -> tuple[SpectralRasch, int]:
    """The calibration, and how many rounds it took."""
    least = options.pop("least", 10)
    for _ in range(60):
        try:
            fit = federate(folder, list(sites), **options)
        except SitesMissing:
            for name, responses in sites.items():
                answer_rounds(folder, responses, name=name, least=least)
        else:
            return fit, sum(1 for path in folder.iterdir() if path.name.count(".") == 1)
    raise AssertionError("no end of rounds")


def in_process(sites: dict[str, Responses], **options: Any) -> tuple[SpectralRasch, int]:
    """The same without files."""

    def ask(asked: Round) -> list[Answer]:
        return [answer_round(responses, asked, site=name, least=1) for name, responses in sites.items()]

    everyone = responses_of_sites(ask, "study", lambda text: None)
    fit = SpectralRasch(refine=False, se="one-pass", **options).fit(everyone)
    return fit, cast(FederatedEngine, everyone.engine).rounds


def assert_same(fit: SpectralRasch, together: SpectralRasch) -> None:
    place = [together.item_labels_.tolist().index(label) for label in fit.item_labels_.tolist()]
    np.testing.assert_allclose(fit.difficulty_, together.difficulty_[place], atol=SAME)
    np.testing.assert_allclose(fit.se_, together.se_[place], atol=SAME)
    for name in ("status_", "item_counts_", "item_scores_"):
        assert getattr(fit, name).tolist() == getattr(together, name)[place].tolist()


@pytest.mark.parametrize(
    ("ranges", "options", "most"),
    [
        ([range(24), range(12, 40), range(20, 48)], {}, 30),
        ([range(24), range(12, 40), range(20, 48)], {"weighting": "persons"}, 30),
        ([range(10), range(4, 14), range(8, 18)], {}, 30),  # few items: the local fit eliminates, sites cannot
    ],
)
def test_the_same_as_all_answers_together(
    tmp_path: Path, ranges: list[range], options: dict[str, Any], most: int
) -> None:
    sites, pooled = three_sites(ranges, n=300)
    fit, rounds = run(tmp_path, sites, **options)
    assert rounds <= most
    assert_same(fit, SpectralRasch(refine=False, se="one-pass", **options).fit(pooled))


def test_at_most_thirty_rounds_at_every_size() -> None:
    """Chains of up to 32 states are learned from their passes; the same numbers as elimination gives."""
    for m in (3, 4, 5, 7, 10, 14, 20, 26, 31, 32, 33, 60, 120, 200):
        for seed in range(3):
            sites, pooled = three_sites(overlapping(m, max(2, -(-3 * m // 5))), n=300, seed=seed)
            fit, rounds = in_process(sites)
            assert rounds <= 30, (m, seed, rounds)
            assert_same(fit, SpectralRasch(refine=False, se="one-pass").fit(pooled))


@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"weighting": "persons"}, {"weighting": "pairs"}, {"regularization": 1.0}])
def test_sites_that_share_few_items(shared: int, options: dict[str, Any]) -> None:
    for m in (9, 18, 31):
        sites, pooled = three_sites(overlapping(m, -(-(m + 2 * shared) // 3)), n=300)
        fit, rounds = in_process(sites, **options)
        assert rounds <= 30, (m, rounds)
        assert_same(fit, SpectralRasch(refine=False, se="one-pass", **options).fit(pooled))


def test_what_passes_tell_about_a_site() -> None:
    """As many passes as items determine its rates; fewer agree with those there are."""
    rng = np.random.default_rng(3)
    y = rng.random((6, 6)) * (1 - np.eye(6))
    vs = rng.random((6, 6))
    for n in (1, 3, 6):
        heard = Heard(np.arange(6), y.sum(axis=1), [(v, v @ y) for v in vs[:n]])
        found = likely_rates(heard)
        np.testing.assert_allclose(vs[:n] @ found, vs[:n] @ y, rtol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), y.sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(found, y, atol=1e-9)
    nobody = Heard(np.arange(3), np.zeros(3), [(np.ones(3), np.zeros(3))])
    assert not likely_rates(nobody).any()


def test_a_round_about_items_of_other_sites() -> None:
    """An item that all got wrong is looked at by itself, and only one site has it."""
    sites, pooled = three_sites([range(6), range(3, 9), range(5, 11)], n=100)
    table = sites["north"].to_dense()
    table[:, 0] = np.where(np.isnan(table[:, 0]), np.nan, 0.0)
    sites["north"] = Responses.from_wide(table, items=sites["north"].items.tolist())
    everyone = pooled.to_dense()
    everyone[: len(table), 0] = table[:, 0]
    fit, _ = in_process(sites)
    together = SpectralRasch(refine=False, se="one-pass").fit(
        Responses.from_wide(everyone, items=pooled.items.tolist())
    )
    assert fit.status_[0] == "all wrong"
    assert_same(fit, together)


def test_under_a_prior(tmp_path: Path) -> None:
    sites, pooled = three_sites([range(24), range(12, 36), range(20, 44)], n=60, share=0.4)
    fit, rounds = run(tmp_path, sites, regularization=1.0, least=1)
    assert rounds <= 30
    assert_same(fit, SpectralRasch(refine=False, se="one-pass", regularization=1.0).fit(pooled))


# ---------------------------------------------------------------------------------- what a file holds


def test_no_file_of_a_site_holds_anything_but_sums_per_item(tmp_path: Path) -> None:
    sites, _ = three_sites([range(20), range(10, 36), range(18, 40)])
    run(tmp_path, sites)
    seen = set()
    for path in tmp_path.iterdir():
        said = json.loads(path.read_text())
        if "site" not in said:
            assert set(said) == {"program", "protocol", "study", "round", "kind", "weighting", "items", "values"}
            continue
        header = {"program", "protocol", "study", "round", "kind", "site", "items", "left_out"}
        assert set(said) == {*header, "sums", "totals"}
        assert set(said["sums"]) == set(SUMS[said["kind"]])
        assert set(said["totals"]) == set(TOTALS[said["kind"]])
        names = sites[said["site"]].items.tolist()
        assert set(said["items"]) <= set(names)
        for numbers in said["sums"].values():  # one number for each item, however many people there are
            assert len(numbers) == len(said["items"]) < sites[said["site"]].n_users / 4
            assert all(isinstance(x, int | float) for x in numbers)
        assert all(isinstance(x, int | float) for x in said["totals"].values())
        seen.add(said["kind"])
    assert seen == {"survey", "links", "flows", "inflow", "spread"}


def test_what_a_round_may_ask_for_is_listed() -> None:
    assert set(ASKED) == set(SUMS) == set(TOTALS)
    north = three_sites([range(4)] * 3)[0]["north"]
    said = answer_round(north, Round("s", 2, "links", label_array(["z"]), {"marks": np.ones(1)}), site="north")
    assert len(said.items) == len(said.sums["reached"]) == 0


def test_items_of_few_people_are_left_out_by_name(tmp_path: Path) -> None:
    table = drawn(60, range(6), 1, 1)
    table[9:, 2] = np.nan
    responses = Responses.from_wide(table, items=list("abcdef"))
    said = answer_round(responses, Round("s", 1, "survey", label_array([])), site="north")
    assert said.items.tolist() == list("abdef")
    assert said.left_out.tolist() == ["c"]
    assert said.totals["people"] == 60
    assert answer_round(responses, Round("s", 1, "survey", label_array([])), site="n", least=9).sums["n"][2] == 9
    with pytest.raises(FederationError, match="no item was answered by 61 people or more"):
        answer_round(responses, Round("s", 1, "survey", label_array([])), site="north", least=61)


def test_left_out_items_do_not_count(tmp_path: Path) -> None:
    sites, _ = three_sites([range(6), range(3, 9), range(5, 11)], n=60, share=1)
    table = sites["north"].to_dense()
    table[9:, 4] = np.nan
    few = {**sites, "north": Responses.from_wide(table, items=sites["north"].items.tolist())}
    fit, _ = run(tmp_path, few, regularization=1.0, weighting="persons")
    counts = dict(zip(fit.item_labels_.tolist(), fit.item_counts_.tolist(), strict=True))
    assert counts["q4"] == 80  # the south's people, and none of the north's nine
    assert "Site 'north' left out 1 item" in next(f.sentence for f in fit.findings_ if f.code == "items_of_few")


# -------------------------------------------------------------------------------------------- bad input


@pytest.fixture
def third_round(tmp_path: Path) -> tuple[Path, dict[str, Responses]]:
    """A folder in which round 3 was asked, and answered by all but the west."""
    sites, _ = three_sites([range(6), range(3, 9), range(5, 11)], n=60, share=1)
    for number in (1, 2, 3):
        with pytest.raises(SitesMissing, match=f"round {number} waits for 3 of 3 sites: 'north', 'south', 'west'"):
            federate(tmp_path, NAMES)
        for name, responses in sites.items():
            if number < 3 or name != "west":
                answer_rounds(tmp_path, responses, name=name)
    return tmp_path, sites


def changed(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def rename_items(path: Path) -> None:
    said = json.loads(path.read_text())
    changed(path, items=["other", *said["items"][1:]])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda path: changed(path, round=2, kind="links", sums={"reached": [0] * 6, "reaching": [0] * 6}),
            "answers round 2 .links., not round 3",
        ),
        (lambda path: changed(path, protocol=2), "is an answer in version 2 of the protocol"),
        (lambda path: changed(path, study="other"), "belongs to study 'other'"),
        (lambda path: changed(path, site="east"), "is from site 'east', which is not one of those"),
        (rename_items, "site 'south' answered round 3 about other items than those it named in round 1: 'other', 'q3'"),
        (lambda path: changed(path, items=["q3"] * 6), "lists items more than once: 'q3'"),
        (
            lambda path: changed(path, sums={"reached": [1.0]}),
            "'reached' should be 6 finite numbers, one for each item",
        ),
        (lambda path: path.write_text(path.read_text()[:90]), "is damaged, or was still being copied"),
        (lambda path: path.write_text("[1]"), "is not an answer of spectral-irt"),
        (lambda path: path.with_name("round003.copy.json").write_text(path.read_text()), "answered round 3 twice"),
    ],
)
def test_answers_that_are_not_what_they_should_be(
    third_round: tuple[Path, dict[str, Responses]], spoil: Callable[[Path], None], said: str
) -> None:
    folder, sites = third_round
    answer_rounds(folder, sites["west"], name="west")
    spoil(folder / "round003.south.json")
    with pytest.raises(FederationError, match=said):
        federate(folder, NAMES)
    assert not round_file(folder, 4).exists()


def test_an_answer_that_changes_later(third_round: tuple[Path, dict[str, Responses]]) -> None:
    folder, sites = third_round
    path = answer_file(round_file(folder, 1), "south")
    path.unlink()
    answer_rounds(folder, sites["south"].take_users(range(40)), name="south")
    with pytest.raises(FederationError, match=r"'.*round002.json' asks something else|other items"):
        federate(folder, NAMES)
    with pytest.raises(FederationError, match="asks something else than this calibration does now"):
        federate(folder, NAMES, weighting="persons", regularization=2.0)


def test_a_site_with_other_items_hears_it_before_it_answers(third_round: tuple[Path, dict[str, Responses]]) -> None:
    folder, sites = third_round
    other = Responses.from_wide(sites["west"].to_dense(), items=[f"other{i}" for i in range(6)])
    with pytest.raises(FederationError, match=r"site 'west' answered round 3 about other items .* 'q5', 'q6'"):
        answer_rounds(folder, other, name="west")
    assert not answer_file(round_file(folder, 3), "west").exists()


def test_a_round_is_answered_once(third_round: tuple[Path, dict[str, Responses]]) -> None:
    folder, sites = third_round
    with pytest.raises(FederationError, match="site 'north' has answered this round already"):
        answer_rounds(round_file(folder, 3), sites["north"], name="north")
    assert answer_rounds(folder, sites["north"], name="north") == []


def test_names_and_places(tmp_path: Path) -> None:
    for names in ([], ["north", "north"]):
        with pytest.raises(OptionError, match="names the sites that take part"):
            federate(tmp_path, names)
    with pytest.raises(OptionError, match=r"a site is called '\.\./north'"):
        federate(tmp_path, ["../north"])
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OptionError, match="is a file, not a folder"):
        federate(file, ["north"])
    with pytest.raises(FederationError, match="cannot be read"):
        Round.read(tmp_path / "round009.json")


# ----------------------------------------------------------------------------------------- as it is typed


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sites, pooled = three_sites([range(6), range(3, 9), range(5, 11)], n=60, share=1)
    for name, responses in sites.items():
        lines = [",".join(responses.items), *(",".join(f"{x:.0f}" for x in row) for row in responses.to_dense())]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    shared, results = tmp_path / "shared", tmp_path / "results"
    command = ["federate", str(shared), "--sites", ",".join(NAMES), "--weighting", "persons", "-o", str(results)]
    assert main(command) == 4
    assert "waiting: round 1 waits for 3 of 3 sites" in capsys.readouterr().err
    for name in NAMES:
        assert main(["site", str(tmp_path / f"{name}.csv"), "--name", name, "--round", str(shared)]) == 0
    while (code := main(command)) == 4:
        assert not results.exists()
        for name, responses in sites.items():
            answer_rounds(shared, responses, name=name)
    assert code == 0
    assert sorted(path.name for path in results.iterdir()) == ["fit.json", "items.csv"]
    record = json.loads((results / "fit.json").read_text())
    assert record["counts"]["users"] == pooled.n_users
    capsys.readouterr()
    again = ["site", str(tmp_path / "north.csv"), "--name", "north", "--round", str(shared / "round001.json")]
    assert main(again) == 2
    assert "answered this round already" in capsys.readouterr().err
    (shared / "round002.south.json").write_text("{}")
    assert main(command) == 2
    assert "is not an answer of spectral-irt" in capsys.readouterr().err
