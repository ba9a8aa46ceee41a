"""Options as people use them: misspelled, idle, edited from one command into another, completed by the shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spectral_irt.cli.help import TOPICS
from spectral_irt.cli.main import COMMANDS, command_named, fit_options

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

Cli = Callable[..., Any]

PROGRAM = Path(sys.executable).with_name("spectral-irt")
GOOD = "person,q1,q2,q3\na,1,0,0\nb,0,1,0\nc,1,1,0\nd,0,0,1\ne,1,0,1\n"


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `spectral-irt` is the command under test."""
    path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **environment}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("name", ["my_sd.csv", "max_iter.csv", "nu=1.csv", "threshold is 3.csv", "above_mean"])
def test_a_file_is_never_taken_for_an_option(cli: Cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / (name if name.endswith(".csv") else f"{name}.csv")
    path.write_text("person,nu=1,ability_sd\na,1,maybe\nb,0,1\nc,0,0\n")
    done = cli("fit", path.name)
    assert done.code == 2
    assert done.err.startswith(f"error: {path.name}: column 'ability_sd', row 1 holds 'maybe'")
    assert "--ignore ability_sd" in done.err
    path.write_text("person,nu=1,max_iter\na,1,0\na,1,0\nb,0,1\n")
    assert cli("fit", path.name).err.startswith(f"error: {path.name}: 1 person has more than one row: 'a'. Say --dup")


def test_the_record_advises_what_the_terminal_advises(cli: Cli, tmp_path: Path) -> None:
    rows = ["person," + ",".join(f"q{k}" for k in range(1, 5)), "a,1,0,,", "b,0,1,,", "c,,,1,0", "d,,,0,1"]
    (tmp_path / "apart.csv").write_text("\n".join(rows) + "\n")
    done = cli("fit", "apart.csv", "-o", "out")
    assert done.code == 0, done.err
    remedies = {f["code"]: f["remedy"] for f in json.loads(Path("out/fit.json").read_text())["findings"]}
    assert "or take --largest-component;" in remedies["disconnected"]
    assert remedies["disconnected"] in " ".join(done.out.split())


IDLE = {
    "--parquet": ("fit a.csv --parquet", "-o DIR"),
    "--set nu_rule": ("fit a.csv --set nu_rule=together", "--set nu=1"),
    "--set nu_rule, nu is 0": ("fit a.csv --estimator paper --set nu=0 --set nu_rule=together", "--set nu=1"),
    "--rank": ("fit a.csv --rank 3", "-o DIR"),
    "--rank without errors": ("fit a.csv --rank 3:lower --set se=none -o out", "leave out --set se=none"),
    "--scale": ("fit a.csv --scale 500,100", "-o DIR, --report or --bank"),
    "--ability": ("fit a.csv --skip persons --ability eap", "--skip persons"),
    "--seed": ("fit a.csv --seed 3", "--ability pv"),
    "--p": ("simulate -o new.csv --items 5 --p 0.5", "takes no parameters"),
    "--largest-component": ("score a.csv --bank b --largest-component", "a bank has a common scale already"),
}


@pytest.mark.parametrize("case", IDLE)
def test_an_option_that_would_do_nothing_is_refused(cli: Cli, tmp_path: Path, case: str) -> None:
    line, says = IDLE[case]
    (tmp_path / "a.csv").write_text(GOOD)
    if "--bank b" in line:
        assert cli("fit", "a.csv", "--bank", "b").code == 0
    before = sorted(tmp_path.rglob("*"))
    done = cli(*line.split())
    assert done.code == 2, done.out
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert case.split()[0] in done.err
    assert says in done.err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_paper_has_pairs_to_which_its_rule_applies(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GOOD)
    assert cli("fit", "a.csv", "--estimator", "paper", "--set", "nu_rule=together").code == 0


def test_a_dry_run_refuses_what_a_fit_would_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,sex,q1,q2,q3\na,f,1,0,0\nb,m,0,1,0\nc,f,1,1,0\nd,m,0,0,1\ne,f,1,0,1\n")
    line = "fit a.csv --group sex --estimator cml --threads 1 --skip fit -o out --parquet --rank 3 --dry-run"
    before = sorted(tmp_path.rglob("*"))
    done = cli(*line.split())
    assert (done.code, done.err) == (0, "")
    assert sorted(tmp_path.rglob("*")) == before
    found = json.loads(cli(*line.split(), "--json").out)
    assert found["counts"].items() >= {"persons": 5, "items": 3, "responses": 15, "thresholds": 3, "right": 7}.items()
    assert found["findings"][0]["code"] == "items_taken"
    for bad in ("--group none", "--estimator magic", "--threads 0", "--parquet"):
        again = cli("fit", "a.csv", "--dry-run", *bad.split())
        assert again.code == 2, bad
        assert bad.split()[0] in again.err


@pytest.mark.parametrize(
    ("line", "meant"),
    [("fit a.csv --keys k.csv", "--key"), ("fit a.csv --treshold 1", "--threshold"), ("score x --bnak b", "--bank")],
)
def test_a_misspelled_option_is_recognized(cli: Cli, line: str, meant: str) -> None:
    done = cli(*line.split())
    wrong = line.split()[2]
    assert done.code == 2
    command = line.split()[0]
    expected = f"error: there is no option {wrong}; did you mean {meant}? See spectral-irt {command} --help.\n"
    assert done.err == expected


def test_an_option_like_no_other_gets_no_suggestion(cli: Cli) -> None:
    assert cli("fit", "--xyzzy").err == "error: there is no option --xyzzy; see spectral-irt fit --help.\n"


ARTIFACTS = re.compile(r"<\w|\{|\}|\[/?bold\]|\[x[<>]|\bNone\b|Sentinel|list\[|\x08|\x1b|TEXT\b|INTEGER|FLOAT")


def flags_of(name: str) -> list[Any]:
    return [one for one in command_named(name).params if one.param_type_name == "option"]


def test_a_screen_of_help(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ["", *COMMANDS]:
        done = cli(*([name] if name else []), "--help")
        assert (done.code, done.err) == (0, "")
        assert done.out.count("\n") <= 45, name
    assert len(flags_of("fit")) <= 52  # 48, and --facet, --item-covariates, --title, --author
    said = cli("fit", "--help").out
    first = "-o --key --group --items --ignore --missing --model --report --plots --scale --anchors --bank --sheet"
    assert all(re.search(rf"^  {flag}[ ,]", said, re.MULTILINE) for flag in first.split())


def test_every_option_of_fit_has_a_topic(cli: Cli) -> None:
    for topic in TOPICS:
        said = " ".join(cli("help", topic).out.split())
        for one in fit_options():
            assert one.rich_help_panel in TOPICS
            assert one.rich_help_panel != topic or " ".join(one.help.split()) in said, one.name
    assert all(topic in cli("help").out for topic in TOPICS)
    assert cli("help", "fit").out == cli("fit", "--help").out
    refused = cli("help", "coloumns")
    assert (refused.code, "Did you mean 'columns'?" in refused.err) == (2, True)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_for_people(cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for flag in ["--help", "--help-all"] if name else ["--help"]:
        done = cli(*([name] if name else []), flag)
        assert (done.code, done.err) == (0, "")
        lines = done.out.split("\n")
        assert not ARTIFACTS.search(done.out), ARTIFACTS.search(done.out)
        assert not [line for line in lines if line != line.rstrip()]
        assert max(map(len, lines)) <= max(width, 80)  # examples are to be copied, and stay on their lines
    whole = " ".join(done.out.split())
    for one in flags_of(name) if name else ():
        assert all(flag in whole for flag in (*one.opts, *one.secondary_opts))
        assert " ".join(one.help.split()) in whole


def test_help_through_a_pipe() -> None:
    done = shell("spectral-irt fit --help | cat")
    assert done.stdout.startswith("Usage: spectral-irt fit [OPTIONS] FILE...\n")
    assert not ARTIFACTS.search(done.stdout)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_options_and_their_values(tmp_path: Path) -> None:
    script = shell("spectral-irt --show-completion; true")  # the shell must be there to be recognized
    assert "complete -o default -F" in script.stdout, script.stderr
    cases = {
        "spectral-irt le": {"leaderboard"},
        "spectral-irt fit --chain": {"--chain-weights"},
        "spectral-irt fit --chain-weights ": {"ability", "persons", "pairs"},
        "spectral-irt fit a.csv --estimator c": {"cml", "choppin"},
        "spectral-irt check --layout w": {"wide"},
        "spectral-irt simulate --design l": {"linked"},
        "spectral-irt update --repeats s": {"skip"},
    }
    function = re.search(r"-F (\w+) spectral-irt", script.stdout)
    assert function is not None
    (tmp_path / "completion.sh").write_text(script.stdout)
    for line, expected in cases.items():
        words = " ".join(f"'{word}'" for word in line.split(" "))
        done = shell(
            f"source {tmp_path / 'completion.sh'}; COMP_WORDS=({words}); COMP_CWORD={line.count(' ')}; "
            f"{function[1]} spectral-irt; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        assert set(done.stdout.split()) == expected, (line, done.stderr)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_is_installed_for_the_shell_in_use(tmp_path: Path) -> None:
    done = shell("spectral-irt --install-completion; true", HOME=str(tmp_path))
    assert "bash completion installed" in done.stdout, done.stderr
    assert "completion" in (tmp_path / ".bashrc").read_text()
