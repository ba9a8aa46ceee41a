"""Help, completion by the shell, and options for programs: quiet, JSON, strict; what the library logs."""

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import spectral_irt as si
from end_to_end.tables import contents, form, record
from spectral_irt.cli.help import TOPICS
from spectral_irt.cli.main import COMMANDS, fit_options, program
from spectral_irt.cli.terminal import Progress

pytestmark = pytest.mark.slow  # many short runs of whole commands, or of long updates

PROGRAM = Path(sys.executable).with_name("spectral-irt")
ODD = "student,q1,q2,q3,q4\n" + "".join(f"s{k},{k % 2},{k // 2 % 2},{k // 3 % 2},1\n" for k in range(60))
ARTIFACTS = re.compile(r"(?<!\w)<\w|\{|\}|\[/?bold\]|\[x[<>]|\bNone\b|Sentinel|list\[|\x08|\x1b|TEXT\b|INTEGER|FLOAT")


def test_the_record_advises_what_the_terminal_advises(cli):
    Path("apart.csv").write_text("person,q1,q2,q3,q4\na,1,0,,\nb,0,1,,\nc,,,1,0\nd,,,0,1\n")
    said = cli.ok("fit apart.csv -o out")
    remedies = {finding["code"]: finding["remedy"] for finding in record()["findings"]}
    assert "or take --largest-component;" in remedies["disconnected"]
    assert remedies["disconnected"] in said


# Help and completion.


def flags_of(name):
    return [one for one in program.get_command(None, name).params if one.param_type_name == "option"]


def test_help_of_every_command_shows_what_a_newcomer_needs(cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ["", *COMMANDS]:
        done = cli(f"{name} --help")
        assert (done.code, done.err) == (0, "")
    said = cli("fit --help").out
    first = "-o --key --group --items --ignore --missing --model --report --plots --scale --anchors --bank --sheet"
    assert all(re.search(rf"^  {flag}[ ,]", said, re.MULTILINE) for flag in first.split())


def test_help_shows_each_flag_once(cli):
    for name in COMMANDS:
        done = cli(f"{name} --help-all")
        for line in done.out.splitlines():
            shown = re.match(r"  (-[\w-]+(?:, -[\w-]+)*)", line)
            flags = [] if shown is None else shown[1].split(", ")
            assert len(flags) == len(set(flags)), line
    for flag in ("--every-table", "--as-json"):  # fields of ours, and no options
        cli.refused(f"fit a.csv {flag}", f"no option {flag}")


def test_help_loads_nothing_that_only_the_work_needs():
    heavy = {"numpy", "scipy", "polars", "rich", "matplotlib", "narwhals", "pyarrow", "jinja2", "spectral_irt.analysis"}
    lines = [[*name.split(), "--help"] for name in ("", *COMMANDS)] + [["help", topic] for topic in TOPICS]
    program = f"""
import contextlib, io, json, sys
from spectral_irt.cli.main import main
for line in {lines!r}:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(line) == 0
    assert said.getvalue()
    print(json.dumps([line, sorted({heavy!r} & set(sys.modules))]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(loaded) == len(lines)
    assert [(line, modules) for line, modules in loaded if modules] == []


def test_every_option_of_fit_has_a_topic(cli):
    for topic in TOPICS:
        said = cli.ok(f"help {topic}")
        for one in fit_options():
            assert one.rich_help_panel in TOPICS
            assert one.rich_help_panel != topic or " ".join(one.help.split()) in said, one.name
    assert all(topic in cli("help").out for topic in TOPICS)
    assert cli("help fit").out == cli("fit --help").out
    cli.refused("help coloumns", "Did you mean 'columns'?")


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_for_people(cli, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for flag in ["--help", "--help-all"] if name else ["--help"]:
        done = cli(f"{name} {flag}")
        assert (done.code, done.err) == (0, "")
        lines = done.out.split("\n")
        assert not ARTIFACTS.search(done.out), ARTIFACTS.search(done.out)
        assert not [line for line in lines if line != line.rstrip()]
        assert max(map(len, lines)) <= max(width, 80)  # examples are to be copied, and stay on their lines
    whole = " ".join(done.out.split())
    for one in flags_of(name) if name else ():
        assert all(flag in whole for flag in (*one.opts, *one.secondary_opts))
        assert " ".join(one.help.split()) in whole


def test_the_version_and_nothing_else(cli):
    assert cli("--version").out == f"spectral-irt {si.__version__}\n"
    assert cli.ok("--version fit none.csv") == f"spectral-irt {si.__version__}"
    assert cli().out == cli("--help").out


def shell(script, **environment):
    """Run a line of bash in which `spectral-irt` is the command under test."""
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", **environment}
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_options_and_their_values(tmp_path):
    script = shell("spectral-irt --show-completion; true")  # the shell must be there to be recognized
    assert "complete -o default -F" in script.stdout, script.stderr
    cases = {
        "spectral-irt le": {"leaderboard"},
        "spectral-irt fit --chain": {"--chain-weights"},
        "spectral-irt fit --chain-weights ": {"ability", "persons", "pairs"},
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
def test_completion_is_installed_for_the_shell_in_use(tmp_path):
    done = shell("spectral-irt --install-completion; true", HOME=str(tmp_path))
    assert "bash completion installed" in done.stdout, done.stderr
    assert "completion" in (tmp_path / ".bashrc").read_text()


# Options for programs.


def test_quiet_prints_nothing_but_errors_and_writes_everything(cli, lsat):
    assert cli.ok("fit lsat.csv -o loud")
    assert cli.ok("fit lsat.csv -o quiet -q --strict") == ""  # nothing is odd
    assert Path("quiet/items.csv").read_bytes() == Path("loud/items.csv").read_bytes()
    assert not Progress.shown
    cli("check lsat.csv")  # quiet is its own command's
    assert Progress.shown
    cli.refused("fit nowhere.csv -q", "nowhere.csv")


@pytest.mark.parametrize("kind", ["right and wrong", "ordered"])
@pytest.mark.parametrize("output", ["", "-o results", "-o results.xlsx"])
def test_the_record_on_standard_output_is_fit_json(cli, kind, output):
    model = "pcm" if kind == "ordered" else "rasch"
    cli.ok(f"simulate -o a.csv --model {model} --persons 200 --items 5 --seed 1")
    found = json.loads(cli.ok(f"fit a.csv --json -q {output}"))
    assert (found["schema_version"], found["model"]) == (1, model)
    assert found["counts"]["responses"] == 1000
    assert found["input"]["digests"] == {"a.csv": "sha256:" + hashlib.sha256(Path("a.csv").read_bytes()).hexdigest()}
    if output == "-o results":
        assert sorted(found["outputs"]) == sorted(os.listdir("results"))
        assert found == record("results")
    else:
        assert found["outputs"] == output.split()[1:]


@pytest.mark.parametrize("command", ["fit", "check"])
def test_strict_ends_with_3_where_something_is_odd(cli, command):
    Path("odd.csv").write_text(ODD)  # everybody has q4 right
    plain = cli(f"{command} odd.csv")
    assert (plain.code, "warning" in plain.out) == (0, True)
    strict = cli(f"{command} odd.csv --strict")
    assert (strict.code, strict.out.split("Read in")[0]) == (3, plain.out.split("Read in")[0])
    assert strict.err.startswith("strict: 1 finding is of level warning")
    silent = cli(f"{command} odd.csv --strict -q")
    assert (silent.code, silent.out) == (3, "")
    assert "'q4'" in silent.err.splitlines()[0]
    told = cli(f"{command} odd.csv --strict --json")
    assert told.code == 3
    assert [one["code"] for one in json.loads(told.out)["findings"] if one["severity"] == "warning"]


def test_an_update_with_nothing_new_is_no_failure(cli, bank):
    before = contents()
    cli.refused("update bank old.csv")
    assert "Nothing is new" in cli.ok("update bank old.csv --repeats skip")
    assert json.loads(cli.ok("update bank old.csv --repeats skip --json"))["bank"]["changed"] is False
    assert contents() == before


def test_score_and_update_have_records(cli, bank):
    form("new.csv", 3, items=12)
    scored = json.loads(cli.ok("score new.csv --bank bank --ignore-unknown --json -o scores.csv"))
    assert (scored["schema_version"], scored["outputs"]) == (1, ["scores.csv"])
    updated = json.loads(cli.ok("update bank new.csv --json"))
    assert updated["bank"]["changed"] is True
    assert updated["bank"]["after"] == {"items": 12, "persons": 800, "responses": 8800}
    assert list(updated["input"]["digests"]) == ["new.csv"]


def test_every_command_that_computes_is_quiet_or_gives_a_record(cli, bank):
    """Short lists included: `score` with one ignored these options."""
    cli.ok("simulate --persons 40 --items 60 --seed 3 -o models.csv")
    lines = [
        *("simulate -o s.csv --persons 60 --items 5 --seed 1", "pack s.csv -o s.packed", "check s.csv"),
        *("compare s.csv --estimators spectral", "link bank bank", "export bank --to catsim -o c.csv"),
        *("leaderboard models.csv", "shortlist models.csv --size 20 -o short", "score models.csv --bank short", "demo"),
    ]
    for line in lines:
        assert cli.ok(f"{line} -q") == "", line
        assert json.loads(cli(f"{line} --json").out)["schema_version"] == 1, line
        assert cli(f"{line} --strict -q").code in (0, 3), line
    assert len(json.loads(cli.ok("score models.csv --bank short --json"))["models"]) == 40
    cli.refused("score models.csv --bank short --ability nonsense", "--ability is 'nonsense'")
    cli.refused("score models.csv --bank short --seed 1", "--seed")
    cli.refused("score models.csv --bank short --ability eap", "--ability is for a bank")
    cli.refused("shortlist models.csv --size 60", "a short list has from 2 to 59 prompts")


def test_warnings_of_python_are_as_before_after_a_command(cli, lsat):
    before = warnings.showwarning
    cli.ok("check lsat.csv")
    assert warnings.showwarning is before


def test_the_library_logs(caplog, tmp_path):
    (tmp_path / "odd.csv").write_text(ODD)
    with caplog.at_level(logging.DEBUG, logger="spectral_irt"):
        si.SpectralRasch().fit(si.read(tmp_path / "odd.csv"))
    levels = {level: [one.getMessage() for one in caplog.records if one.levelno == level] for level in (10, 20, 30)}
    assert any("chain" in text for text in levels[logging.DEBUG])
    assert any("60 people, 4 items, 240 responses" in text for text in levels[logging.INFO])
    assert any(text.startswith("SpectralRasch: 4 items") for text in levels[logging.INFO])
    assert any(text.startswith("extreme_items") and "'q4'" in text for text in levels[logging.WARNING])
    assert {one.name for one in caplog.records} == {"spectral_irt"}


def test_an_option_is_not_the_value_of_an_option_of_0_1(cli):
    Path("a.csv").write_text(ODD)
    cli.refused("fit a.csv --in-database -q", "no option --in-database")


def test_shortlist_names_no_option_that_it_lacks(cli):
    flags = {flag for one in flags_of("shortlist") for flag in (*one.opts, *one.secondary_opts)}
    texts = " ".join(one.help for one in flags_of("shortlist"))
    assert set(re.findall(r"--[a-z][\w-]*", texts)) <= flags
