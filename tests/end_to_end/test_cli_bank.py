"""Banks through the command line: kept, linked, equated, updated; people scored; those that cannot be trusted."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from drawn import drawn
from end_to_end.tables import column, contents, form, numbers, read_csv, record, wide
from spectral_irt import Analysis, SpectralRasch, equate, files, load
from spectral_irt.analysis import folder
from spectral_irt.analysis.cache import columns_of
from spectral_irt.bank import Bank, storage
from spectral_irt.errors import OutputError
from spectral_irt.reading import read
from terminal import interrupt, on_terminal

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates


def test_a_fit_is_kept(cli, bank):
    fit = SpectralRasch().fit(read("old.csv"))
    kept = Bank.load(bank)
    assert kept.items.tolist() == fit.item_labels_.tolist()
    np.testing.assert_array_equal(kept.difficulty, fit.difficulty_)
    assert kept.data[0].source == "old.csv"
    form("other.csv", 2)
    cli.ok("fit other.csv --bank bank")  # a bank is replaced by a bank
    assert Bank.load(bank).data[0].source == "other.csv"


def test_the_population_of_a_bank_counts_people_by_their_weights(cli):
    rng = np.random.default_rng(4)
    table = drawn(rng, 1.2 * rng.normal(size=(200, 1)) - np.linspace(-1, 1, 5)).astype(int)
    weight = np.where(table.sum(axis=1) > 2, 3.0, 0.5)
    items = {f"q{k}": table[:, k] for k in range(5)}
    pl.DataFrame({"person": np.arange(200), **items, "weight": weight}).write_csv("weighted.csv")
    cli.ok("fit weighted.csv --survey-weight weight --bank weighted")
    answers = read("weighted.csv", people=["weight"])
    expected = SpectralRasch().fit(answers, weights=weight).analyse(answers).to_bank().population
    kept = Bank.load("weighted").population
    assert kept.mean == pytest.approx(expected.mean, abs=1e-6)
    assert kept.sd == pytest.approx(expected.sd, abs=1e-6)


@pytest.mark.parametrize(
    ("module", "name", "error", "says"),
    [
        (storage, "save", OutputError("the bank 'bank' cannot be written: No space left on device."), "No space left"),
        (folder, "write_json", OSError(28, "No space left on device"), "the disk is full"),
    ],
)
def test_bank_and_results_are_written_both_or_not_at_all(cli, bank, monkeypatch, module, name, error, says):
    def full(*_):
        raise error

    monkeypatch.setattr(module, name, full)
    form("other.csv", 2)
    cli.refused("fit other.csv --bank bank -o out", says)


@pytest.mark.parametrize("failing", ["fit.json", "items.csv"])
def test_a_move_that_fails_late_says_what_had_been_written(cli, bank, monkeypatch, failing):
    replace = os.replace

    def fails(source, target):
        if Path(target).name == failing:
            raise OSError(5, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(files.os, "replace", fails)
    done = cli("fit", form("new.csv", 2), "-o", "out", "--bank", "bank")
    before = "'bank', 'out/items.csv', 'out/persons.csv', 'out/scores.csv'" if failing == "fit.json" else "'bank'"
    assert done.code == 2
    assert f"'out/{failing}' cannot be written: Input/output error" in done.err
    assert f"{before} had been written before." in done.err
    assert "othing was written" not in done.err
    assert Bank.load("bank").data[0].source == "new.csv"
    assert list(Path().rglob("*.partial")) == []


@pytest.mark.parametrize("line", ["update bank new.csv", "fit new.csv -o out --bank bank"])
def test_waiting_for_another_writer_says_so_and_can_be_interrupted(bank, tmp_path, line):
    form("new.csv", 2)
    before = contents()
    with storage.lock_folder(bank):
        shown = on_terminal(*line.split(), cwd=tmp_path, when=("waiting for another program", interrupt))
    assert shown.code == 130, shown.text
    assert any("waiting for another program that is writing the bank 'bank'" in line for line, _ in shown.progress)
    assert [line for line in shown.screen if line][-1] == "interrupted: nothing was written.", shown.text
    assert contents() == before


# What is no good bank.


def changed(manifest, **fields):
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **fields}))


BAD_BANKS = {  # what is done to bank.json or to a table, and what is said
    "another version": (lambda manifest, _: changed(manifest, format_version=99), "has format version 99"),
    "edited": (lambda manifest, _: changed(manifest, estimator="SpectralRash"), "its checksum is wrong"),
    "a byte of a table": (lambda _, table: table.write_bytes(table.read_bytes()[:-1] + b"x"), "its checksum is wrong"),
    "a table is gone": (lambda _, table: table.unlink(), "is not complete"),
    "no manifest": (lambda manifest, _: manifest.unlink(), "is not a bank"),
    "something else": (lambda manifest, _: manifest.write_text('{"kind": "a savings bank"}'), "not a bank of spectral"),
    "nested": (lambda manifest, _: manifest.write_text("[" * 100_000 + "]" * 100_000), ""),
    "nothing": (lambda manifest, _: manifest.parent.rename("moved"), "there is no bank at 'bank'"),
}


@pytest.mark.parametrize("how", BAD_BANKS)
def test_a_bank_that_cannot_be_trusted_is_not_used_and_not_touched(cli, bank, how):
    damage, says = BAD_BANKS[how]
    form("new.csv", 3)
    cli.ok("fit new.csv --bank good")
    damage(bank / "bank.json", next(bank.glob("items.*.parquet")))
    for line in (
        *("score new.csv --bank bank -o out", "update bank new.csv", "fit new.csv --anchors bank -o out"),
        *("link good bank -o linked", "link bank good"),
    ):
        cli.refused(line, says)


# Linking and equating.


@pytest.mark.parametrize("method", ["robust", "mean"])
def test_two_banks_are_linked(cli, bank, method):
    form("later.csv", 4, items=10, first=4, persons=600)
    cli.ok("fit later.csv --bank later")
    said = cli.ok(f"link bank later --method {method} -o linked --common-items common.csv")
    expected = Bank.load(bank).link(Bank.load("later"), method)
    assert f"{expected.shift:+.3f} logits (se {expected.shift_se:.3f}), {method}" in said
    linked = Bank.load("linked")
    np.testing.assert_allclose(linked.difficulty, expected.shift + Bank.load("later").difficulty, rtol=1e-12)
    rows = read_csv("common.csv")
    assert [row["item"] for row in rows] == [f"q{k}" for k in range(4, 10)]
    assert numbers(rows, "difference") == expected.difference.tolist()
    assert {row["drift"] for row in rows} == {"false"}


def test_a_drifted_item_is_named_and_nothing_is_written_unasked(cli, bank):
    table = pl.read_csv(form("later.csv", 4, persons=600))
    table.with_columns(q5=1 - pl.col("q0")).write_csv("later.csv")
    cli.ok("fit later.csv --bank later")
    before = contents()
    done = cli("link bank later")
    assert done.out.splitlines()[1].startswith("q5 ")
    assert " harder in " in done.out.splitlines()[1]
    text = " ".join(done.out.split())
    assert ", of 10 common items, beyond a robust z of 3; left out of the link" in text
    assert "agreement the others agree within their errors (Q = " in text
    assert "carried into the standard errors of B (from the information matrix of each)" in text
    assert "Nothing was saved" in done.out
    assert contents() == before


def test_links_that_cannot_be(cli, bank):
    for name, first in (("apart", 12), ("barely", 9)):
        cli.ok("fit", form(f"{name}.csv", 5, items=8, first=first), "--bank", name)
    cli.refused("link bank apart", "share 0 items", "Check the labels")
    cli.refused("link bank barely -o x", "share 1 items: 'q9'", "--method robust needs at least 3")
    cli.refused("link bank apart --method magic", "--method is 'magic'", "'mean'")
    cli.refused("link bank bank -o bank", "which is being read")
    cli.refused("link bank bank --common-items t.xls", "none of .csv, .parquet and .xlsx")
    cli.refused("link bank bank --equate t.txt", "none of .csv, .parquet and .xlsx")
    cli.refused("link bank bank -o .", "not a bank; choose another place")


def test_two_banks_are_equated(cli):
    rng = np.random.default_rng(4)
    for name, items, mean in (("a", range(12), 0.0), ("b", range(6, 20), 0.5)):
        right = drawn(rng, rng.normal(mean, 1, (500, 1)) - np.linspace(-2, 2, 20)[list(items)])
        wide(f"{name}.csv", right, [f"q{k + 1}" for k in items])
        cli.ok(f"fit {name}.csv --bank {name}")
    said = cli.ok("link a b --equate equating.csv --common-items common.parquet -o b_on_a")
    rows, expected = read_csv("equating.csv"), equate(load("a"), load("b"))
    assert numbers(rows[:13], "equated") == pytest.approx(expected.equated[0].tolist())
    assert column("equating.csv", "from") == ["A"] * 13 + ["B"] * 15
    assert rows[0]["se"] == ""
    assert f"6 of 12 on A is {expected.equated[0][6]:.1f} of 14 on B (se {expected.se[0][6]:.2f})" in said
    assert "Written: b_on_a, common.parquet and equating.csv." in said


# Banks that grow: by `update`, and by `fit --anchors A --bank A`.


def test_a_bank_is_updated_in_place(cli, bank):
    old = Bank.load(bank)
    form("new.csv", 3, items=12)
    said = cli.ok("update bank new.csv")
    found, expected = Bank.load(bank), old.update(read("new.csv"))
    np.testing.assert_array_equal(found.difficulty, expected.difficulty)
    np.testing.assert_array_equal(found.se, expected.se)
    assert "before 4,000 answers of 400 people to 10 items" in said
    assert "after 8,800 answers of 800 people to 12 items" in said
    assert "2 items are new in the bank: 'q10', 'q11'" in said
    assert "The bank is in bank." in said
    assert [Path(name).suffix for name in os.listdir(bank)].count(".parquet") == 6  # the bank, and the one before
    assert len(os.listdir(bank)) == 8


def inverted(name, seed, items):
    """Right is wrong in these items, as with another key."""
    form(name, seed)
    table = pl.read_csv(name).with_columns((1 - pl.col(item)).alias(item) for item in items)
    table.write_csv(name)
    return name


def test_drifted_items_are_named_and_with_strict_the_bank_stays(cli, bank):
    old = Bank.load(bank)
    easiest = {"q0", "q1"}  # those that another key moves far
    inverted("wrong.csv", 3, easiest)
    before = contents(bank)
    done = cli("update bank wrong.csv --strict --json")
    assert done.code == 3
    assert "The bank is unchanged" in done.err
    assert contents(bank) == before
    found = json.loads(done.out)
    assert found["bank"]["changed"] is False
    assert {one["item"] for one in found["drifted"]} == easiest
    expected = old.drift(read("wrong.csv"))
    for one in found["drifted"]:
        k = expected.item.tolist().index(one["item"])
        assert (one["displacement"], one["se"]) == pytest.approx((expected.displacement[k], expected.se[k]))
        assert one["p_adjusted"] < 0.05
    moved = found["moved"][0]
    k = old.items.tolist().index(moved["item"])
    after = old.update(read("wrong.csv"))
    assert (moved["before"], moved["after"]) == pytest.approx((old.difficulty[k], after.difficulty[k]))
    assert cli("update bank wrong.csv --strict -o other").code == 3
    assert not Path("other").exists()
    said = cli("update bank wrong.csv --strict")
    assert (said.code, contents(bank)) == (3, before)
    assert "as it was" in said.out
    assert "2 items have drifted" in cli.ok("update bank wrong.csv")  # a warning, and the bank has them
    assert Bank.load(bank).n_persons == 800
    cli.ok("update bank --undo")
    form("new.csv", 4)
    assert cli("update bank new.csv --strict -q").code == 0


def test_a_load_is_undone_once_and_the_history_lists_what_is_there(cli, bank):
    before = contents(bank)
    cli.refused("update bank --undo", "nothing to undo")
    cli.ok("update bank", form("new.csv", 3), "-q")
    loads = json.loads(cli.ok("update bank --history --json"))["loads"]
    assert [(load["source"], load["responses"], load["how"]) for load in loads] == [
        ("old.csv", 4000, "fit"),
        ("new.csv", 4000, "update"),
    ]
    assert all(len(load["digest"]) == 32 for load in loads)
    said = cli.ok("update bank --history")
    assert loads[1]["digest"][:12] in said
    found = json.loads(cli.ok("update bank --undo --json"))
    assert [load["source"] for load in found["undone"]] == ["new.csv"]
    assert (found["bank"]["before"]["persons"], found["bank"]["after"]["persons"]) == (800, 400)
    assert contents(bank) == before
    cli.refused("update bank --undo", "nothing to undo")
    cli.ok("update bank new.csv -q")
    said = cli.ok("update bank --undo")
    assert "Undone: new.csv, 4,000 answers of 400 people" in said
    cli.refused("update bank", "needs the files")
    cli.refused("update bank new.csv --undo", "--undo is about the bank alone; leave out FILE")
    cli.refused("update bank --history -o other", "--history is about the bank alone; leave out -o")
    cli.refused("update bank --undo --missing 9", "leave out --missing")


def test_a_link_of_a_bank_with_itself_has_no_negative_zero(cli, bank):
    assert "-0.000" not in cli.ok("link bank bank")


def test_a_night_without_the_column_of_the_items_says_so(cli, bank):
    Path("night.csv").write_text("student_id,is_correct,ts\n1,1,2026-11-01 00:00:00\n2,0,2026-11-01 00:00:01\n")
    cli.refused("update bank night.csv", "no column names the items", "'student_id', 'is_correct', 'ts'", "--item")
    Path("night.csv").write_text("student_id,q1,q2\n1,1,x\n2,0,1\n")  # a wide table with items of the bank
    cli.refused("update bank night.csv", "'x'")


def test_an_item_of_the_bank_is_never_left_out_for_what_it_holds(cli, bank):
    form("new.csv", 3)
    table = pl.read_csv("new.csv")
    table.with_columns(pl.col("q3") + 5).write_csv("odd.csv")
    for command in ("score odd.csv --bank bank", "update bank odd.csv"):
        cli.refused(command, "odd.csv: 'q3' is an item of the bank.", "'q3' holds", "--ignore q3")
    cli.ok("score odd.csv --bank bank --ignore q3")
    cli.refused("score odd.csv --bank bank --items q*", "column 'q3', row 1 holds 5")


def test_digests_of_a_partitioned_folder(cli, bank):
    form("new.csv", 3)
    table = read("new.csv")
    rows = [(f"p{person}", str(item), int(right)) for person, item, right in zip(*table.entries.answers(), strict=True)]
    frame = pl.DataFrame(rows, schema=["person", "item", "response"], orient="row")
    frame = frame.with_columns(item="q" + pl.col("item"))
    for day, part in enumerate((frame[:2000], frame[2000:])):
        Path(f"log/dt=2026-11-0{day + 1}").mkdir(parents=True)
        part.write_parquet(f"log/dt=2026-11-0{day + 1}/part-0.parquet")
    names = {f"log/dt=2026-11-0{day}/part-0.parquet" for day in (1, 2)}
    for line in ("update bank log -o other --json", "fit log --json"):
        digests = json.loads(cli.ok(line))["input"]["digests"]
        assert set(digests) == names
        assert all(digest.startswith("sha256:") for digest in digests.values())


def test_another_place_keeps_the_old_bank(cli, bank):
    before = contents(bank)
    form("new.csv", 3)
    cli.ok("update bank new.csv -o newer")
    assert contents(bank) == before
    assert Bank.load("newer").n_persons == 800
    cli.refused("update bank new.csv -o .", "not a bank; choose another place")


def test_an_update_that_fails_or_is_stopped_leaves_the_bank(cli, bank, monkeypatch):
    form("new.csv", 3)
    form("foreign.csv", 3, items=4, first=14)
    Path("empty.csv").write_text("user,q0,q1\nann,,\nbob,,\n")
    Path("perfect.csv").write_text("user,q0,q1\nann,1,1\nbob,1,1\n")
    cli.refused("update bank foreign.csv", "none of its items", "Check the labels")
    cli.refused("update bank empty.csv", "empty.csv")
    cli.refused("update bank perfect.csv", "all answers right or all wrong")
    cli.refused("update bank new.csv --repeats magic", "--repeats is 'magic'")
    before = contents()

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spectral_irt.cli.bank_work.update_with_drift", stopped)
        done = cli("update bank new.csv")
        assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")
    assert contents() == before

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "_put", full)
    cli.refused("update bank new.csv", "No space left on device", "The bank that was there is unchanged")


def test_an_interrupt_at_the_very_end_comes_too_late(cli, bank, monkeypatch):
    """While bank and results take their places Ctrl-C is not heard: never one without the other, never a false word."""
    put = storage._put

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        put(*args)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(storage, "_put", interrupted)
        cli.ok("fit", form("new.csv", 2), "--bank", "newer", "-o", "out")
        cli.ok("update bank new.csv")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert Path("out/fit.json").exists()
    assert Bank.load("newer").n_persons == 400
    assert Bank.load(bank).n_persons == 800


@pytest.mark.parametrize("name", ["bank", "./bank", "absolute"])
def test_a_bank_that_is_anchor_and_target_keeps_its_other_items(cli, bank, name):
    name = str(bank.absolute()) if name == "absolute" else name
    before = Bank.load(bank)
    form("s2.csv", 5, items=8, first=6)  # q6 to q13: four of the bank, four new
    cli.ok(f"fit s2.csv --anchors bank --bank {name}")
    after = Bank.load(bank)
    assert after.items.tolist() == [f"q{k}" for k in range(14)]
    np.testing.assert_array_equal(after.difficulty[:10], before.difficulty)
    np.testing.assert_array_equal(after.se[:10], before.se)
    assert after.n.tolist() == [400] * 6 + [800] * 4 + [400] * 4
    assert after.status.tolist() == ["ok"] * 14
    assert not after.calibration.anchored.any()
    truth = np.linspace(-1.5, 1.5, 20)
    shift = before.difficulty.mean() - truth[:10].mean()
    assert np.max(np.abs(after.difficulty[10:] - truth[10:14] - shift) / after.se[10:]) < 4
    assert after.n_persons == 800
    assert [data.how for data in after.data] == ["fit", "anchored fit"]
    if name != "bank":
        return
    cli.refused("fit s2.csv --anchors bank --bank bank", "these very data are in the bank already")
    form("s3.csv", 6, items=14)
    cli.ok("update bank s3.csv")  # and the enlarged bank goes on
    assert np.max(np.abs(Bank.load(bank).difficulty - after.difficulty) / after.se) < 3
    cli.ok("fit s2.csv --anchors bank --bank other")  # another bank has what is in s2
    assert Bank.load("other").n_items == 8


# People scored by a bank.


@pytest.mark.parametrize("method", ["wle", "ml", "eap"])
def test_new_people_are_scored(cli, bank, method):
    form("new.csv", 3, persons=50)
    said = cli.ok(f"score new.csv --bank bank -o scores.csv --ability {method}")
    rows = read_csv("scores.csv")
    people = Bank.load(bank).population
    prior = (people.mean, people.sd) if method == "eap" else None
    study = Analysis(Bank.load(bank).calibration, read("new.csv"), population=prior)
    expected = columns_of(study.persons, method)
    assert list(rows[0]) == list(expected)
    for name in ("ability", "se"):
        np.testing.assert_array_equal(numbers(rows, name), expected[name])
    assert "bank: 10 items, calibrated with 400 people" in said
    assert "Written: scores.csv." in said
    assert [said.count(word) for word in ("highest", "lowest", "largest outfit")] == [1, 1, 1]


def test_a_directory_gets_a_record_too(cli, bank):
    form("new.csv", 3, persons=50)
    cli.ok("score new.csv --bank bank -o out")
    assert sorted(os.listdir("out")) == ["persons.csv", "score.json"]
    found = record("out", "score.json")
    assert found["bank"] == {"folder": "bank", "items": 10, "persons": 400}
    assert found["counts"]["persons"] == 50
    assert found["reliability"]["method"] == "wle"
    cli.ok("score new.csv --bank bank -o out --ability ml")  # replaced
    cli.ok("score new.csv --bank bank -o scores.parquet")
    assert pl.read_parquet("scores.parquet").height == 50
    assert "Nothing was saved" in cli.ok("score new.csv --bank bank")
    cli.ok("fit old.csv -o fitted")
    cli.refused("score new.csv --bank bank -o fitted", "'persons.csv'", "choose another directory")
    cli.refused("score new.csv --bank bank -o new.csv", "being read")


def test_one_person_is_enough_and_somebody_without_answers_is_kept(cli, bank):
    Path("one.csv").write_text("person,q0,q1,q2\nann,1,1,0\nbob,,,\n")
    said = cli.ok("score one.csv --bank bank -o s.csv")
    ann, bob = read_csv("s.csv")
    assert (ann["n"], ann["score"], bob["n"], bob["ability"]) == ("3", "2", "0", "")
    assert "1 person has no answer that counts: 'bob'" in said
    Path("none.csv").write_text("person,q0,q1\nann,,\n")
    cli.refused("score none.csv --bank bank", "none.csv: there is no answer in it")


def test_items_that_the_bank_does_not_have(cli, bank):
    form("new.csv", 3, items=13)
    before = contents(bank)
    unknown = "3 items are not in the calibration: 'q10', 'q11', 'q12'"
    cli.refused("score new.csv --bank bank -o out", unknown, "--ignore-unknown")
    said = cli.ok("score new.csv --bank bank -o out --ignore-unknown")
    assert "3 items are not in the bank, and the answers to them do not count" in said
    assert set(column("out/persons.csv", "n")) == {"10"}
    form("foreign.csv", 3, items=3, first=15)
    cli.refused("score foreign.csv --bank bank --ignore-unknown", "none of its 3 items", "Check the labels")
    assert contents(bank) == before


def test_items_without_a_difficulty_do_not_count(cli):
    pl.read_csv(form("old.csv", 1)).with_columns(q9=pl.lit(None, dtype=pl.Int64)).write_csv("old.csv")
    cli.ok("fit old.csv --bank bank")
    form("new.csv", 3)
    assert "1 item has no difficulty in the bank" in cli.ok("score new.csv --bank bank -o s.csv")
    assert set(column("s.csv", "n")) == {"9"}
    Path("bare.csv").write_text("person,q9\nann,1\n")
    cli.refused("score bare.csv --bank bank", "none of the items answered has a difficulty")
    cli.refused("score new.csv --bank bank --largest-component", "is for a calibration", "a common scale already")


def test_one_person_under_the_population_of_the_bank(cli, bank):
    Path("one.csv").write_text("person," + ",".join(f"q{k}" for k in range(8)) + "\nann,1,1,1,1,1,1,0,0\n")
    assert "estimated from 400 people" in cli.ok("score one.csv --bank bank --ability eap -o out")
    (ann,) = read_csv("out/persons.csv")
    assert 0.5 < float(ann["se"]) < 0.9
    assert record("out", "score.json")["population"]["persons"] == 400
    cli.ok("score one.csv --bank bank --ability eap -o s.csv --population -1,0.5")
    assert numbers("s.csv", "ability")[0] < float(ann["ability"])
    for wrong in ("1", "0,0", "a,b", "nan,1", "0,inf"):
        cli.refused(f"score one.csv --bank bank --ability eap --population {wrong}", "--population 0.5,1.2")
    cli.refused("score one.csv --bank bank --population 0,1", "--ability eap")
    pl.read_csv("old.csv").head(20).write_csv("few.csv")
    cli.ok("fit few.csv --bank few")  # too few for a population
    cli.refused("score one.csv --bank few --ability eap", "1 person", "--population", "--ability wle")


def test_people_on_two_scales_are_not_ranked_together(cli):
    tables = [pl.read_csv(form("a.csv", 1, items=6)), pl.read_csv(form("b.csv", 2, items=4, first=10))]
    both = pl.concat(tables, how="diagonal")
    both.write_csv("both.csv")
    cli.ok("fit both.csv --bank bank")
    some = ["a1", "a2", "a3", "b1", "b2"]
    both.filter(pl.col("person").is_in(some)).write_csv("some.csv")
    said = cli.ok("score some.csv --bank bank -o s.csv")
    assert column("s.csv", "scale") == ["1", "1", "1", "2", "2"]
    assert "on 2 scales that no answers link" in said
    order = [word[0] for word in said.split() if word in some]
    assert order == ["a", "a", "a", "b", "b"]  # one after the other, each under its heading
    assert "scale 1" in said
    assert "scale 2" in said
