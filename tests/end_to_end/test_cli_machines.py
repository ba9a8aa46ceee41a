"""Commands for programs: quiet, as JSON, strict; and what a program hears from the library."""

from __future__ import annotations

import hashlib
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spectral_irt as si
from end_to_end.banks import contents, write
from spectral_irt.cli.terminal import Progress

pytestmark = pytest.mark.slow  # whole runs of commands

Cli = Callable[..., Any]
ODD = "student,q1,q2,q3,q4\n" + "".join(f"s{k},{k % 2},{k // 2 % 2},{k // 3 % 2},1\n" for k in range(60))


def test_quiet_prints_nothing_and_writes_everything(cli: Cli, lsat: Path) -> None:
    loud = cli("fit", lsat, "-o", "loud")
    quiet = cli("fit", lsat, "-o", "quiet", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert loud.out
    assert Path("quiet/items.csv").read_bytes() == Path("loud/items.csv").read_bytes()


def test_quiet_shows_no_progress_and_only_for_its_own_command(cli: Cli, lsat: Path) -> None:
    cli("fit", lsat, "-q")
    assert not Progress.shown
    cli("check", lsat)
    assert Progress.shown


def test_quiet_still_tells_errors(cli: Cli) -> None:
    done = cli("fit", "nowhere.csv", "-q")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")


@pytest.mark.parametrize("output", [(), ("-o", "results"), ("-o", "results.xlsx")])
def test_the_record_on_standard_output_is_fit_json(cli: Cli, lsat: Path, output: tuple[str, ...]) -> None:
    done = cli("fit", lsat, "--json", *output)
    assert (done.code, done.err) == (0, "")
    record = json.loads(done.out)
    assert record["schema_version"] == 1
    assert record["counts"]["responses"] == 5000
    assert record["input"]["digests"] == {str(lsat): "sha256:" + hashlib.sha256(lsat.read_bytes()).hexdigest()}
    if output == ("-o", "results"):
        written = json.loads(Path("results/fit.json").read_text())
        assert sorted(written["outputs"]) == sorted(path.name for path in Path("results").iterdir())
        for one in (written, record):
            one.pop("seconds")
        assert record == written
    elif output:
        assert record["outputs"] == ["results.xlsx"]
    else:
        assert record["outputs"] == []


def test_the_record_of_ordered_answers(cli: Cli) -> None:
    cli("simulate", "-o", "scale.csv", "--model", "pcm", "--persons", 200, "--items", 5, "--seed", 1)
    record = json.loads(cli("fit", "scale.csv", "--json", "-o", "results", "-q").out)
    written = json.loads(Path("results/fit.json").read_text())
    assert record == written
    assert (record["schema_version"], record["model"]) == (1, "pcm")
    assert sorted(record["outputs"]) == sorted(path.name for path in Path("results").iterdir())


@pytest.mark.parametrize("command", ["fit", "check"])
def test_strict_ends_with_3_where_something_is_odd(cli: Cli, command: str) -> None:
    Path("odd.csv").write_text(ODD)  # everybody has q4 right
    plain = cli(command, "odd.csv")
    assert plain.code == 0
    assert "warning" in plain.out
    strict = cli(command, "odd.csv", "--strict")
    assert (strict.code, strict.out.split("Read in")[0]) == (3, plain.out.split("Read in")[0])
    assert strict.err.startswith("strict: 1 finding is of level warning")
    silent = cli(command, "odd.csv", "--strict", "-q")
    assert (silent.code, silent.out) == (3, "")
    assert "'q4'" in silent.err.splitlines()[0]
    told = cli(command, "odd.csv", "--strict", "--json")
    assert told.code == 3
    assert [one["code"] for one in json.loads(told.out)["findings"] if one["severity"] == "warning"]


def test_strict_is_silent_where_nothing_is_odd(cli: Cli, lsat: Path) -> None:
    done = cli("fit", lsat, "--strict", "-o", "results", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_an_update_with_nothing_new_is_no_failure(cli: Cli) -> None:
    write("old.csv", 1)
    cli("fit", "old.csv", "--bank", "bank", "-q")
    before = contents(Path("bank"))
    refused = cli("update", "bank", "old.csv")
    assert refused.code == 2
    done = cli("update", "bank", "old.csv", "--repeats", "skip")
    assert (done.code, done.err) == (0, "")
    assert "Nothing is new" in done.out
    record = json.loads(cli("update", "bank", "old.csv", "--repeats", "skip", "--json").out)
    assert record["bank"]["changed"] is False
    assert contents(Path("bank")) == before


def test_score_and_update_have_records(cli: Cli) -> None:
    write("old.csv", 1)
    write("new.csv", 3, items=12)
    cli("fit", "old.csv", "--bank", "bank", "-q")
    scored = json.loads(cli("score", "new.csv", "--bank", "bank", "--ignore-unknown", "--json", "-o", "scores.csv").out)
    assert (scored["schema_version"], scored["outputs"]) == (1, ["scores.csv"])
    updated = json.loads(cli("update", "bank", "new.csv", "--json").out)
    assert updated["bank"]["changed"] is True
    assert updated["bank"]["after"] == {"items": 12, "persons": 800, "responses": 8800}
    assert list(updated["input"]["digests"]) == ["new.csv"]


def test_every_command_that_computes_is_quiet_or_gives_a_record(cli: Cli, bank: Path) -> None:
    """Short lists included: `score` with one ignored these options."""
    cli("simulate", "--persons", 40, "--items", 60, "--seed", 3, "-o", "models.csv")
    lines = [
        *("simulate -o s.csv --persons 60 --items 5 --seed 1", "pack s.csv -o s.packed", "check s.csv"),
        *("compare s.csv --estimators spectral", f"link {bank} {bank}"),
        *(f"export {bank} --to catsim -o c.csv", "leaderboard models.csv", "shortlist models.csv --size 20 -o short"),
        *("score models.csv --bank short", "demo"),
    ]
    for line in lines:
        quiet = cli(*line.split(), "-q")
        assert (quiet.code, quiet.out, quiet.err) == (0, "", ""), line
        told = cli(*line.split(), "--json")
        assert json.loads(told.out)["schema_version"] == 1, line
        assert cli(*line.split(), "--strict", "-q").code in (0, 3), line
    assert len(json.loads(cli("score", "models.csv", "--bank", "short", "--json").out)["models"]) == 40
    refused = cli("score", "models.csv", "--bank", "short", "--ability", "nonsense")
    assert (refused.code, "--ability is 'nonsense'" in refused.err) == (2, True)


def test_warnings_of_python_are_as_before_after_a_command(cli: Cli, lsat: Path) -> None:
    before = warnings.showwarning
    assert cli("check", lsat).code == 0
    assert warnings.showwarning is before


def test_the_library_logs(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(ODD)
    with caplog.at_level(logging.DEBUG, logger="spectral_irt"):
        si.SpectralRasch().fit(si.read(path))
    levels = {level: [one.getMessage() for one in caplog.records if one.levelno == level] for level in (10, 20, 30)}
    assert any("chain" in text for text in levels[logging.DEBUG])
    assert any("60 people, 4 items, 240 responses" in text for text in levels[logging.INFO])
    assert any(text.startswith("SpectralRasch: 4 items") for text in levels[logging.INFO])
    assert any(text.startswith("extreme_items") and "'q4'" in text for text in levels[logging.WARNING])
    assert {one.name for one in caplog.records} == {"spectral_irt"}
