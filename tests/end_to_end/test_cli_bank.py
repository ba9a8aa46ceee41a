"""Banks through the command line: kept by `fit --bank`, used by `score`, `link` and `update`."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import numbers, read_csv
from spectral_irt import Analysis, SpectralRasch, simulate, tables
from spectral_irt.bank import Bank, store
from spectral_irt.cli.main import main
from spectral_irt.errors import OutputError
from spectral_irt.responses.read import read_responses

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]


def write(path: str, seed: int, items: int = 10, users: int = 400, first: int = 0) -> Path:
    """Answers of people called after the file, to items q0, q1, ... of fixed difficulties."""
    beta = np.linspace(-1.5, 1.5, 20)[first : first + items]
    data = simulate.rasch(users, items, difficulty=beta, seed=seed).responses.to_dense().astype(int)
    names = [f"q{first + k}" for k in range(items)]
    table = pl.DataFrame(data, schema=names, orient="row")
    people = pl.Series("user", [f"{Path(path).stem}{k}" for k in range(users)])
    table.insert_column(0, people).write_csv(path)
    return Path(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with old.csv and a bank of it."""
    place = tmp_path_factory.mktemp("made")
    with chdir(place):
        write("old.csv", 1)
        assert main(["fit", "old.csv", "--bank", "bank"]) == 0
    return place


@pytest.fixture
def bank(cli: Cli, made: Path) -> Path:
    """A bank of q0 to q9 from old.csv."""
    shutil.copytree(made, ".", dirs_exist_ok=True)
    return Path("bank")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refused(done: Any, *says: str) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    for text in says:
        assert text in done.err


# -------------------------------------------------------------------------------------------- keeping


def test_a_fit_is_kept(cli: Cli, bank: Path) -> None:
    fit = SpectralRasch().fit(read_responses("old.csv"))
    kept = Bank.load(bank)
    assert kept.items.tolist() == fit.item_labels_.tolist()
    np.testing.assert_array_equal(kept.difficulty, fit.difficulty_)
    assert kept.data[0].source == "old.csv"
    write("other.csv", 2)
    assert cli("fit", "other.csv", "--bank", bank).code == 0  # a bank is replaced by a bank
    assert Bank.load(bank).data[0].source == "other.csv"


def test_a_bank_that_cannot_be_saved_takes_the_results_with_it(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)

    def full(*_: Any) -> None:
        raise OutputError("the bank 'bank' cannot be written: No space left on device.")

    monkeypatch.setattr(store, "save", full)
    write("other.csv", 2)
    refused(cli("fit", "other.csv", "--bank", bank, "-o", "out"), "No space left")
    assert not Path("out").exists()
    assert contents(bank) == before


def test_results_that_cannot_be_written_leave_the_bank_alone(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tables, "write_json", full)
    write("other.csv", 2)
    refused(cli("fit", "other.csv", "--bank", bank, "-o", "out"), "the disk is full")
    assert contents(bank) == before


# -------------------------------------------------------------------------------------------- scoring


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_new_people_are_scored(cli: Cli, bank: Path, method: str) -> None:
    write("new.csv", 3, users=50)
    done = cli("score", "new.csv", "--bank", bank, "-o", "scores.csv", "--ability", method)
    assert (done.code, done.err) == (0, "")
    rows = read_csv("scores.csv")
    people = Bank.load(bank).population
    assert people is not None
    prior = (people.mean, people.sd) if method == "eap" else None
    study = Analysis(Bank.load(bank).calibration, read_responses("new.csv"), population=prior)
    expected = study.person_columns(method)
    assert list(rows[0]) == list(expected)
    np.testing.assert_array_equal(numbers(rows, "ability"), expected["ability"])
    np.testing.assert_array_equal(numbers(rows, "se"), expected["se"])
    assert "bank: 10 items, calibrated with 400 people" in " ".join(done.out.split())
    assert "All people are in scores.csv." in done.out
    assert [done.out.count(word) for word in ("ablest", "least able", "most erratic")] == [1, 1, 1]


def test_a_directory_gets_a_record_too(cli: Cli, bank: Path) -> None:
    write("new.csv", 3, users=50)
    assert cli("score", "new.csv", "--bank", bank, "-o", "out").code == 0
    assert sorted(os.listdir("out")) == ["persons.csv", "score.json"]
    record = json.loads(Path("out/score.json").read_text())
    assert record["bank"] == {"folder": "bank", "items": 10, "users": 400}
    assert record["counts"]["users"] == 50
    assert record["reliability"]["method"] == "wle"
    assert cli("score", "new.csv", "--bank", bank, "-o", "out", "--ability", "ml").code == 0  # replaced
    assert cli("score", "new.csv", "--bank", bank, "-o", "scores.parquet").code == 0
    assert pl.read_parquet("scores.parquet").height == 50
    assert "Nothing was saved" in cli("score", "new.csv", "--bank", bank).out
    cli("fit", "old.csv", "-o", "fitted")
    refused(cli("score", "new.csv", "--bank", bank, "-o", "fitted"), "'persons.csv'", "choose another directory")
    refused(cli("score", "new.csv", "--bank", bank, "-o", "new.csv"), "being read")


def test_one_person_is_enough_and_somebody_without_answers_is_kept(cli: Cli, bank: Path) -> None:
    Path("one.csv").write_text("user,q0,q1,q2\nann,1,1,0\nbob,,,\n")
    done = cli("score", "one.csv", "--bank", bank, "-o", "one-scored.csv")
    assert done.code == 0
    ann, bob = read_csv("one-scored.csv")
    assert (ann["n"], ann["score"], bob["n"], bob["ability"]) == ("3", "2", "0", "")
    assert "1 person has no answer that counts: 'bob'" in " ".join(done.out.split())
    Path("none.csv").write_text("user,q0,q1\nann,,\n")
    refused(cli("score", "none.csv", "--bank", bank), "none.csv: there is no answer in it")


def test_items_that_the_bank_does_not_have(cli: Cli, bank: Path) -> None:
    write("new.csv", 3, items=13)
    before = contents(bank)
    refused(
        cli("score", "new.csv", "--bank", bank, "-o", "out"),
        "3 items are not in the calibration: 'q10', 'q11', 'q12'",
        "--ignore-unknown",
    )
    assert not Path("out").exists()
    done = cli("score", "new.csv", "--bank", bank, "-o", "out", "--ignore-unknown")
    assert done.code == 0
    assert "3 items are not in the bank, and the answers to them do not count" in " ".join(done.out.split())
    assert {row["n"] for row in read_csv("out/persons.csv")} == {"10"}
    write("foreign.csv", 3, items=3, first=15)
    refused(cli("score", "foreign.csv", "--bank", bank, "--ignore-unknown"), "none of its 3 items", "Check the labels")
    assert contents(bank) == before


def test_items_without_a_difficulty_do_not_count(cli: Cli) -> None:
    table = pl.read_csv(write("old.csv", 1)).with_columns(q9=pl.lit(None, dtype=pl.Int64))
    table.write_csv("old.csv")
    cli("fit", "old.csv", "--bank", "bank")
    write("new.csv", 3)
    done = cli("score", "new.csv", "--bank", "bank", "-o", "s.csv")
    assert done.code == 0
    assert "1 item has no difficulty in the bank" in " ".join(done.out.split())
    assert {row["n"] for row in read_csv("s.csv")} == {"9"}
    Path("bare.csv").write_text("user,q9\nann,1\n")
    refused(cli("score", "bare.csv", "--bank", "bank"), "none of the items answered has a difficulty")
    refused(cli("score", "new.csv", "--bank", "bank", "--largest-component"), "is for a calibration")


def test_the_scale_of_the_bank_and_numbers_as_labels(cli: Cli) -> None:
    cli("simulate", "-o", "old.csv", "--users", 300, "--items", 8, "--seed", 1)
    cli("fit", "old.csv", "--bank", "bank", "--scale", "500,100")
    Path("new.csv").write_text("user,item,response\nann,0,1\nann,1,0\nann,7,1\n")
    assert cli("score", "new.csv", "--bank", "bank", "-o", "s.csv").code == 0
    (ann,) = read_csv("s.csv")
    scale = Bank.load("bank").scale
    assert float(ann["measure"]) == pytest.approx(scale.mean + scale.unit * float(ann["ability"]))


# ------------------------------------------------------------------------------- what is no good bank


def damaged(bank: Path, how: str) -> None:
    manifest = bank / "bank.json"
    record = json.loads(manifest.read_text())
    table = next(bank.glob("items.*.parquet"))
    if how == "another version":
        manifest.write_text(json.dumps({**record, "format_version": 99}))
    elif how == "edited":
        manifest.write_text(manifest.read_text().replace("SpectralRasch", "SpectralRash"))
    elif how == "a byte of a table":
        table.write_bytes(table.read_bytes()[:-1] + b"x")
    elif how == "a table is gone":
        table.unlink()
    elif how == "no manifest":
        manifest.unlink()
    elif how == "something else":
        manifest.write_text('{"kind": "a savings bank"}')


BAD_BANKS = {
    "another version": "has format version 99",
    "edited": "its checksum is wrong",
    "a byte of a table": "its checksum is wrong",
    "a table is gone": "is not complete",
    "no manifest": "is not a bank",
    "something else": "is not a bank of spectral-irt",
    "nothing": "there is no bank at 'nowhere'",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", BAD_BANKS)
def test_a_bank_that_cannot_be_trusted_is_not_used_and_not_touched(cli: Cli, bank: Path, how: str) -> None:
    write("new.csv", 3)
    cli("fit", "new.csv", "--bank", "good")
    place = Path("nowhere") if how == "nothing" else bank
    damaged(bank, how)
    before = contents(bank)
    files = sorted(os.listdir())
    refused(cli("score", "new.csv", "--bank", place, "-o", "out"), BAD_BANKS[how])
    refused(cli("update", place, "new.csv"), BAD_BANKS[how])
    refused(cli("link", "good", place, "-o", "linked"), BAD_BANKS[how])
    refused(cli("link", place, "good"), BAD_BANKS[how])
    refused(cli("fit", "new.csv", "--anchors", place, "-o", "out"), BAD_BANKS[how])
    assert contents(bank) == before
    assert sorted(os.listdir()) == files


# -------------------------------------------------------------------------------------------- linking


@pytest.mark.parametrize("method", ["robust", "mean", "mean-sigma"])
def test_two_banks_are_linked(cli: Cli, bank: Path, method: str) -> None:
    write("later.csv", 4, items=10, first=4, users=600)
    cli("fit", "later.csv", "--bank", "later")
    done = cli("link", bank, "later", "--method", method, "-o", "linked", "--table", "common.csv")
    assert (done.code, done.err) == (0, "")
    expected = Bank.load(bank).link(Bank.load("later"), method)
    assert f"{expected.shift:+.3f} logits (se {expected.shift_se:.3f}), {method}" in " ".join(done.out.split())
    linked = Bank.load("linked")
    np.testing.assert_allclose(
        linked.difficulty, expected.shift + expected.slope * Bank.load("later").difficulty, rtol=1e-12
    )
    rows = read_csv("common.csv")
    assert [row["item"] for row in rows] == [f"q{k}" for k in range(4, 10)]
    assert numbers(rows, "difference") == expected.difference.tolist()
    assert {row["drift"] for row in rows} == {"false"}


def test_a_drifted_item_is_named_and_nothing_is_written_unasked(cli: Cli, bank: Path) -> None:
    table = pl.read_csv(write("later.csv", 4, users=600))
    table.with_columns(q5=1 - pl.col("q0")).write_csv("later.csv")
    cli("fit", "later.csv", "--bank", "later")
    before = contents(bank), contents(Path("later"))
    done = cli("link", bank, "later")
    assert done.out.splitlines()[1].startswith("q5 ")
    assert " harder in " in done.out.splitlines()[1]
    text = " ".join(done.out.split())
    assert "1 of 10 common items, beyond a robust z of 3; left out of the link" in text
    assert "agreement the others agree within their errors (Q = " in text
    assert "carried into the standard errors of B (from the information matrix of each)" in text
    assert "Nothing was saved" in done.out
    assert (contents(bank), contents(Path("later"))) == before


def test_links_that_cannot_be(cli: Cli, bank: Path) -> None:
    write("apart.csv", 5, items=8, first=12)
    write("barely.csv", 6, items=8, first=9)
    for name in ("apart", "barely"):
        cli("fit", f"{name}.csv", "--bank", name)
    refused(cli("link", bank, "apart"), "share 0 items", "Check the labels")
    refused(cli("link", bank, "barely", "-o", "x"), "share 1 items: 'q9'", "--method robust needs at least 3")
    refused(cli("link", bank, "apart", "--method", "magic"), "--method is 'magic'", "'mean-sigma'")
    refused(cli("link", bank, bank, "-o", bank), "which is being read")
    refused(cli("link", bank, bank, "--table", "t.xls"), "none of .csv, .parquet and .xlsx")
    refused(cli("link", bank, bank, "-o", "."), "not a bank; choose another place")
    assert not Path("x").exists()


# ------------------------------------------------------------------------------------------- updating


@pytest.mark.parametrize("method", ["stream", "refit"])
def test_a_bank_is_updated_in_place(cli: Cli, bank: Path, method: str) -> None:
    old = Bank.load(bank)
    write("new.csv", 3, items=12)
    done = cli("update", bank, "new.csv", "--method", method)
    assert (done.code, done.err) == (0, "")
    found, expected = Bank.load(bank), old.update(read_responses("new.csv"), method)
    np.testing.assert_array_equal(found.difficulty, expected.difficulty)
    np.testing.assert_array_equal(found.se, expected.se)
    text = " ".join(done.out.split())
    assert "before 4,000 answers of 400 people to 10 items" in text
    assert "after 8,800 answers of 800 people to 12 items" in text
    assert "2 items are new in the bank: 'q10', 'q11'" in text
    assert "The bank is in bank." in text
    assert sorted(os.listdir(bank)) == sorted(["bank.json", *(path.name for path in bank.glob("*.parquet"))])
    assert len(os.listdir(bank)) == 3


def test_the_same_data_again_are_refused(cli: Cli, bank: Path) -> None:
    write("new.csv", 3)
    assert cli("update", bank, "new.csv").code == 0
    before = contents(bank)
    for file in ("old.csv", "new.csv"):
        refused(cli("update", bank, file), "these very data are in the bank already", "The bank is unchanged")
    assert contents(bank) == before


@pytest.mark.slow
def test_people_are_recognized_with_a_salt_only(cli: Cli) -> None:
    old = pl.read_csv(write("old.csv", 1))
    pl.concat([old.head(30), pl.read_csv(write("more.csv", 7))]).write_csv("mixed.csv")
    done = cli("fit", "old.csv", "--bank", "plain", "-o", "out")
    sentence = "cannot see whether somebody's answers are added twice"
    assert sentence in " ".join(done.out.split())
    assert any(sentence in finding["sentence"] for finding in json.loads(Path("out/fit.json").read_text())["findings"])
    refused(cli("update", "plain", "mixed.csv", "--repeats", "skip"), "--repeats skip", "--salt-file")
    done = cli("update", "plain", "mixed.csv")
    assert done.code == 0
    assert sentence in " ".join(done.out.split())

    refused(cli("fit", "old.csv", "--salt-file", "salt"), "--bank DIR")
    refused(cli("fit", "old.csv", "--bank", "bank", "--salt-file", "bank/salt"), "lies in the bank")
    assert cli("fit", "old.csv", "--bank", "bank", "--salt-file", "salt").code == 0
    assert Path("salt").stat().st_mode & 0o777 == 0o600
    secret = Path("salt").read_text().strip()
    assert all(secret.encode() not in content for content in contents(Path("bank")).values())
    assert all(bytes.fromhex(secret) not in content for content in contents(Path("bank")).values())
    before = contents(Path("bank"))
    salted = ("--salt-file", "salt")
    refused(cli("update", "bank", "mixed.csv", *salted), "30 of 430 people are in the bank already", "--repeats skip")
    refused(cli("update", "bank", "mixed.csv"), "--salt-file")
    refused(cli("update", "bank", "mixed.csv", "--salt-file", "other"), "not the salt", "'other' does not exist")
    assert not Path("other").exists()
    Path("short").write_text("12345")
    refused(cli("update", "bank", "mixed.csv", "--salt-file", "short"), "fewer than 16 can be guessed")
    assert contents(Path("bank")) == before
    done = cli("update", "bank", "mixed.csv", "--repeats", "skip", *salted)
    assert done.code == 0
    assert "30 of 430 people are in the bank already" in " ".join(done.out.split())
    assert sentence not in " ".join(done.out.split())
    assert Bank.load("bank").n_users == 800
    names = [f"more{k}" for k in range(400)]
    everything = b"".join(contents(Path("bank")).values())
    assert not any(name.encode() in everything for name in names if len(name) > 5)


def test_another_place_keeps_the_old_bank(cli: Cli, bank: Path) -> None:
    before = contents(bank)
    write("new.csv", 3)
    assert cli("update", bank, "new.csv", "-o", "newer").code == 0
    assert contents(bank) == before
    assert Bank.load("newer").n_users == 800
    refused(cli("update", bank, "new.csv", "-o", "."), "not a bank; choose another place")


def test_an_update_that_fails_or_is_stopped_leaves_the_bank(
    cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bank)
    write("new.csv", 3)
    write("foreign.csv", 3, items=4, first=14)
    Path("empty.csv").write_text("user,q0,q1\nann,,\nbob,,\n")
    Path("perfect.csv").write_text("user,q0,q1\nann,1,1\nbob,1,1\n")
    refused(cli("update", bank, "foreign.csv"), "none of its items", "Check the labels")
    refused(cli("update", bank, "empty.csv"), "empty.csv")
    refused(cli("update", bank, "perfect.csv"), "all answers right or all wrong")
    refused(cli("update", bank, "new.csv", "--method", "magic"), "--method is 'magic'; it can be 'stream', 'refit'")
    refused(cli("update", bank, "new.csv", "--repeats", "magic"), "--repeats is 'magic'")

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bank, "update", stopped)
        done = cli("update", bank, "new.csv")
        assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_put", full)
        refused(cli("update", bank, "new.csv"), "No space left on device", "The bank that was there is unchanged")
    assert contents(bank) == before


def test_an_interrupt_at_the_very_end_comes_too_late(cli: Cli, bank: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While bank and results take their places Ctrl-C is not heard: never one without the other, never a false word."""
    save = store.save

    def interrupted(*args: Any) -> Path:
        signal.raise_signal(signal.SIGINT)
        return save(*args)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(store, "save", interrupted)
        assert cli("fit", write("new.csv", 2), "--bank", "newer", "-o", "out").code == 0
        assert cli("update", bank, "new.csv").code == 0
    finally:
        signal.signal(signal.SIGINT, handler)
    assert Path("out/fit.json").exists()
    assert Bank.load("newer").n_users == 400
    assert Bank.load(bank).n_users == 800


# ------------------------------------------------------------------------------- items added to a bank


def test_a_bank_that_is_anchor_and_target_keeps_its_other_items(cli: Cli, bank: Path) -> None:
    before = Bank.load(bank)
    write("s2.csv", 5, items=8, first=6)  # q6 to q13: four of the bank, four new
    done = cli("fit", "s2.csv", "--anchors", bank, "--bank", bank)
    assert (done.code, done.err) == (0, "")
    after = Bank.load(bank)
    assert after.items.tolist() == [f"q{k}" for k in range(14)]
    np.testing.assert_array_equal(after.difficulty[:10], before.difficulty)
    np.testing.assert_array_equal(after.se[:10], before.se)
    assert after.n.tolist() == [400] * 6 + [800] * 4 + [400] * 4
    assert after.status.tolist() == ["ok"] * 14
    assert not after.anchored.any()
    truth = np.linspace(-1.5, 1.5, 20)
    shift = before.difficulty.mean() - truth[:10].mean()
    assert np.max(np.abs(after.difficulty[10:] - truth[10:14] - shift) / after.se[10:]) < 4
    assert after.n_users == 800
    assert [data.how for data in after.data] == ["fit", "anchored fit"]
    refused(cli("fit", "s2.csv", "--anchors", bank, "--bank", bank), "these very data are in the bank already")
    write("s3.csv", 6, items=14)
    assert cli("update", bank, "s3.csv").code == 0  # and the enlarged bank goes on
    moved = Bank.load(bank).difficulty - after.difficulty
    assert np.max(np.abs(moved) / after.se) < 3
    assert cli("fit", "s2.csv", "--anchors", bank, "--bank", "other").code == 0  # another bank has what is in s2
    assert Bank.load("other").n_items == 8


def test_one_person_under_the_population_of_the_bank(cli: Cli, bank: Path) -> None:
    Path("one.csv").write_text("user," + ",".join(f"q{k}" for k in range(8)) + "\nann,1,1,1,1,1,1,0,0\n")
    done = cli("score", "one.csv", "--bank", bank, "--ability", "eap", "-o", "out")
    assert (done.code, done.err) == (0, "")
    (ann,) = read_csv("out/persons.csv")
    assert 0.5 < float(ann["se"]) < 0.9
    record = json.loads(Path("out/score.json").read_text())
    assert record["population"]["users"] == 400
    assert "estimated from 400 people" in " ".join(done.out.split())
    done = cli("score", "one.csv", "--bank", bank, "--ability", "eap", "-o", "s.csv", "--population", "-1,0.5")
    assert float(read_csv("s.csv")[0]["ability"]) < float(ann["ability"])
    for wrong in ("1", "0,0", "a,b", "nan,1", "0,inf"):
        refused(
            cli("score", "one.csv", "--bank", bank, "--ability", "eap", "--population", wrong), "--population 0.5,1.2"
        )
    refused(cli("score", "one.csv", "--bank", bank, "--population", "0,1"), "--ability eap")
    table = pl.read_csv("old.csv").head(20)
    table.write_csv("few.csv")
    assert cli("fit", "few.csv", "--bank", "few").code == 0  # too few for a population
    refused(cli("score", "one.csv", "--bank", "few", "--ability", "eap"), "1 person", "--population", "--ability wle")


def test_people_on_two_scales_are_not_ranked_together(cli: Cli) -> None:
    one, two = pl.read_csv(write("a.csv", 1, items=6)), pl.read_csv(write("b.csv", 2, items=4, first=10))
    both = pl.concat([one, two], how="diagonal")
    both.write_csv("both.csv")
    assert cli("fit", "both.csv", "--bank", "bank").code == 0
    both.filter(pl.col("user").is_in(["a1", "a2", "a3", "b1", "b2"])).write_csv("some.csv")
    done = cli("score", "some.csv", "--bank", "bank", "-o", "s.csv")
    assert done.code == 0
    assert [row["scale"] for row in read_csv("s.csv")] == ["1", "1", "1", "2", "2"]
    text = " ".join(done.out.split())
    assert "on 2 scales that no answers link" in text
    people = [
        line
        for line in done.out.splitlines()
        if line.split() and any(n in line.split() for n in ("a1", "a2", "a3", "b1", "b2"))
    ]
    order = [next(word for word in line.split() if word[0] in "ab" and word[1:].isdigit())[0] for line in people]
    assert order == ["a", "a", "a", "b", "b"]  # one after the other, each under its heading
    assert "scale 1" in done.out
    assert "scale 2" in done.out


@pytest.mark.parametrize("how", ["nested", "resealed"])
def test_a_hostile_bank_is_refused_in_a_sentence(cli: Cli, bank: Path, how: str) -> None:
    write("new.csv", 3)
    manifest = bank / "bank.json"
    if how == "nested":
        manifest.write_text("[" * 100_000 + "]" * 100_000)
    else:
        record = json.loads(manifest.read_text())
        del record["sha256"]
        record["scale"]["unit"] = "wide"
        manifest.write_bytes(store._sealed(record)[0])
    before = contents(bank)
    for command in (("score", "new.csv", "--bank", bank), ("update", bank, "new.csv"), ("link", bank, bank)):
        refused(cli(*command))
    refused(cli("fit", "new.csv", "--anchors", bank))
    assert contents(bank) == before
