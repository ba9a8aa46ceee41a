"""Bad input, idle options, full disks: one sentence with place and remedy, exit code 2, no traceback, no files."""

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from end_to_end.tables import contents
from spectral_irt import SpectralRasch, tables
from spectral_irt.analysis import folder as result_files
from spectral_irt.analysis.folder import RESULTS

pytestmark = pytest.mark.slow  # many short ones: seconds together

GOOD = "person,q1,q2,q3\na,1,0,1\nb,0,1,1\nc,1,1,0\nd,0,0,1\n"
TWICE = "person,item,response\na,q1,1\na,q1,0\na,q2,0\nb,q1,1\nb,q2,1\n"
TURNED = "item,student1,student2,student3\nq1,1,0,1\nq2,0,1,1\nq3,1,1,0\n"
FILES = [  # name and content of a file, and what is said: the place, then the remedy
    ("answers.csv", None, "'answers.csv'", "check the name"),
    ("a.csv", "", "a.csv is empty", "check"),
    ("sub/a.data", GOOD, "is a directory", "name files"),
    ("a.csv", "person,q1,q2\na,1,0\nb,1\n", "a.csv: line 3 has 2 values", "same number of values"),
    ("a.csv", "q1,q2\n1,0\n5,1\n0,5\n7,1\n", "column 'q1', row 2 holds 5", "3 such values: 5, 7", "--threshold"),
    ("a.csv", "q1,q2\n1,0\n9,1\n0,-1\n", "a.csv: column 'q1', row 2 holds 9", "--missing 9 --missing -1"),
    ("a.csv", "person,q1,q2\na,1,1\nb,1,1\n", "a.csv: all 4 responses are right", "Check"),
    ("a.csv", "person,q1\na,1\nb,0\n", "single item, 'q1'", "--layout long"),
    ("a.csv", "person,q1,q2\na,1,0\n", "single person, 'a'", "--layout items-in-rows"),
    ("a.csv", "person,q1,q2\na,1,\nb,,0\n", "none of the 2 people answered two", "Check"),
    ("a.csv", "person,q1,q2\na,NA,\nb,,NA\n", "a.csv", "missing", "Check"),
    ("a.csv", b"person,q\x81,q2\na,1,0\nb,0,1\n", "a.csv: line 1 is neither", "--encoding"),
    ("a.csv", TWICE, "('a', 'q1')", "--duplicates first or last"),
    ("a.csv", "person,q1,q2\na,1,0\na,0,1\nb,1,0\n", "more than one row: 'a'", "--duplicates first or last"),
    ("a.csv", TURNED, "a row for each item ('q1', 'q2', 'q3', ...)", "--layout items-in-rows"),
]


@pytest.mark.parametrize(("name", "content", "says"), [(name, content, says) for name, content, *says in FILES])
def test_a_bad_file_is_one_sentence_and_leaves_no_file(cli, name, content, says):
    if content is not None:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    for line in ("fit {} -o out/deep", "check {}"):
        cli.refused(line.format(name.split("/")[0]), *says)


def test_file_names_are_shown_safely(cli):
    Path("a\n\x1b[31mb.csv").write_text("")
    cli.refused(["fit", "a\n\x1b[31mb.csv"], r"a\n\x1b[31mb.csv is empty")


LONG = "x" * 300
NO_SCALE = ["500", "500,0", "500,-1", "a,b", "nan,1", "1,inf", "1,2,3"]
REFUSED = [  # a command that good.csv is there for, and what it says
    ("fit", "missing argument 'FILE'", "spectral-irt fit --help"),
    ("calibrate", "there is no command calibrate", "spectral-irt --help"),
    ("fit *.txt", "no file matches '*.txt'"),
    ("fit good.csv -o good.csv", "-o names a folder, a workbook"),
    ("fit good.csv -o p.sav --skip persons", "-o p.sav has the persons; leave out --skip persons."),
    ("fit good.csv -o p.dta --all", "-o p.dta has the persons only; for --all name a folder with -o DIR."),
    ("fit good.csv -o good.csv/sub", "is a file, not a directory", "choose another place"),
    ("fit/check good.csv --person perso", "no column 'perso'", "Did you mean 'person'?"),
    ("fit/check good.csv --threshold inf", "--threshold is inf", "finite"),
    ("fit/check good.csv --threshold 3", "run from 0 to 1", "choose"),
    ("fit/check good.csv --threshold high", "--threshold is 'high'", "a number"),
    ("fit/check good.csv --threshold own-mean", "--threshold is 'own-mean'; it is a number"),
    ("fit/check good.csv --threshold 0.5 --correct 1", "say one of them"),
    ("fit/check good.csv --correct B", "correct is 'B'", "spelling"),
    ("fit/check good.csv --key key.csv", "'key.csv'", "check the name"),
    ("fit/check good.csv --fast", "--fast", " --help"),
    ("fit good.csv --estimator magic", "--estimator is 'magic'", "'spectral'"),
    ("fit good.csv --estimator paper --chain-weights persons", "'paper' has no --chain-weights", "--set nu"),
    ("fit good.csv --set regularization=-1", "--set regularization is -1", "a number from 1e-06 to 1e+09"),
    ("fit good.csv --set nu=1", "nu adds to pair counts", "--chain-weights pairs"),
    ("fit good.csv --set max_iter=0", "--set max_iter is 0", "at least 1"),
    ("fit good.csv --threads 0", "'--threads'", "greater than or equal to 1"),
    ("fit apart.csv --set regularization=0", "2 groups that share no people", "--largest-component"),
    # Misspelled options.
    ("fit good.csv --keys k.csv", "no option --keys; did you mean --key? See spectral-irt fit --help.\n"),
    ("fit good.csv --ifile i.txt", "no option --ifile; spectral-irt export writes it", "spectral-irt fit --help"),
    ("report out", "no command report; spectral-irt fit FILE --report report.html writes it; see spectral-irt"),
    ("fit good.csv --rank-by lower", "no option --rank-by; did you mean --rank?"),
    ("fit good.csv --treshold 1", "no option --treshold; did you mean --threshold? See spectral-irt fit --help.\n"),
    ("score x --bnak b", "no option --bnak; did you mean --bank? See spectral-irt score --help.\n"),
    ("fit --xyzzy", "error: there is no option --xyzzy; see spectral-irt fit --help.\n"),
    # Options of other commands, and what other programs call it.
    ("score x --group g", "no option --group here; spectral-irt fit and spectral-irt pack have it;"),
    ("score x --cut 3", "no option --cut here; spectral-irt fit and spectral-irt compare-fits have it;"),
    ("shortlist x --clustered-by g", "spectral-irt pairs have it"),
    ("fit good.csv --dif", "no option --dif; --group"),
    ("fit good.csv --html", "no option --html; --report"),
    ("fit good.csv --2pl", "no option --2pl; slopes"),
    ("fit good.csv --wle", "no option --wle; --ability wle"),
    ("equate a b", "no command equate; ", "--equate"),
    ("plot good.csv", "no command plot; ", "--plots"),
    # An option with one value, given twice.
    ("fit/check good.csv --threshold 0.5 --threshold 0.7", "--threshold is given twice"),
    ("fit good.csv -o one --output two", "--output is given twice"),
    ("fit good.csv --memory 1GB --memory 2GB", "--memory is given twice"),
    # An option in the place of a value.
    ("fit good.csv -o --json", "--output has no value: --json is an option", "write --output=--json"),
    ("fit good.csv --plots -q", "--plots has no value: -q is an option"),
    ("fit good.csv --person --debug", "--person has no value: --debug is an option"),
    ("fit good.csv --memory --threads 2", "--memory has no value: --threads is an option"),
    ("fit good.csv --output --help", "--output has no value: --help is an option"),
    # What follows an option is its value, and what follows -- a file.
    ("fit good.csv --person=--debug", "no column '--debug'"),
    ("fit good.csv --person=--memory", "no column '--memory'"),
    ("fit -- --debug", "there is no file '--debug'"),
    ("fit good.csv --users 5", "error: there is no option --users;"),  # that was one of simulate
    # Options that would do nothing.
    ("fit good.csv --parquet", "--parquet", "-o DIR"),
    ("fit good.csv --set nu_rule=together", "--set nu_rule", "--set nu=1"),
    ("fit good.csv --estimator paper --set nu=0 --set nu_rule=together", "--set nu_rule", "--set nu=1"),
    ("fit good.csv --rank 3", "--rank", "-o DIR"),
    ("fit good.csv --rank 3:lower --set se=none -o out", "--rank", "leave out --set se=none"),
    ("fit good.csv --scale 500,100", "--scale", "-o DIR, --report or --bank"),
    ("fit good.csv --skip persons --ability eap", "--ability", "--skip persons"),
    ("fit good.csv --seed 3", "--seed", "--ability pv"),
    ("simulate -o new.csv --items 5 --p 0.5", "--p", "takes no parameters"),
    ("fit good.csv --title x", "--title and --author are for a report; say where with --report FILE."),
    ("fit good.csv --list-persons", "--list-persons lists people in a report; say where with --report FILE."),
    ("fit good.csv --report r.html --list-persons --skip persons", "leave out --skip persons"),
    ("fit good.csv --pupil-pages p.html --skip persons", "--pupil-pages", "leave out --skip persons"),
    ("fit good.csv --pupil-pages p.txt", "does not end in .html"),
    ("fit good.csv --pupil-pages p.html --report p.html", "--report and --pupil-pages name one file; choose two."),
    ("fit good.csv --report bank/r.html --bank bank", "a bank has a folder of its own"),
    ("fit good.csv --anchors anchors.csv --estimator cml --set nu=1", "leave out --estimator, --set nu"),
    ("fit good.csv --anchors none", "there is no bank at 'none'"),
    ("fit good.csv --plots pictures --skip persons", "--plots shows people and item fit; leave out --skip persons."),
    ("fit good.csv --plots pictures --skip fit", "leave out --skip fit."),
    ("fit good.csv --plots pictures --bank pictures", "a bank has a folder of its own"),
    ("fit http://[::1/a.csv", "is not an address; check its spelling"),
    # Places that clash, that are empty, and names that are too long.
    ("fit good.csv --report r.html -o r.html", "-o names a folder, a workbook"),
    ("fit good.csv -o out --report out/fit.json", "fit.json"),
    ("fit good.csv -o out --bank out", "a bank has a folder of its own"),
    ("fit good.csv --bank good.csv", "is a file, not a folder"),
    ("fit good.csv --bank .", "not a bank; choose another place"),
    *((f"{line} ''", "it is empty; name a place") for line in ("fit good.csv -o", "score good.csv --bank")),
    *((f"{line} ''", "it is empty; name a place") for line in ("simulate --items 3 -o", "update good.csv -o")),
    *((f"fit good.csv {place}", "") for place in (f"-o {LONG}", f"-o sub/{LONG}/out", f"--report {LONG}.html")),
    *((f"fit good.csv {place}", "") for place in (f"--bank {LONG}", f"--anchors {LONG}")),
    *((line, "") for line in (f"score good.csv --bank {LONG}", f"link {LONG} {LONG}", f"update {LONG} good.csv")),
    (f"simulate --items 3 -o {LONG}.csv", ""),
    # Values that an option cannot have.
    ("fit good.csv --skip fit --critical 1000", "leave out --skip fit"),
    ("fit good.csv --critical 5", "--critical is 5"),
    ("fit good.csv --critical 199:no", "--critical 1000"),
    ("fit good.csv --critical 1000 --design adaptive", "leave out --design adaptive"),
    ("fit good.csv --skip people", "it can be persons, fit"),
    ("fit good.csv --ability map", "--ability is 'map'; it can be wle, ml, eap"),
    *(
        (f"fit good.csv --ability pv:{n}", "the number of draws is whole and above zero, as in --ability pv:10.")
        for n in ("0", "-1", "2.5", "3:4", "")
    ),
    ("fit good.csv --rank 0 -o none", "--rank"),
    ("fit good.csv --rank 1:upper -o none", "--rank is '1:upper'"),
    ("fit good.csv --blanks omitted=zero", "--blanks is 'omitted=zero'; it can be omitted=wrong, not-reached=wrong"),
    *((f"fit good.csv --scale {scale}", "as in --scale 500,100") for scale in NO_SCALE),
    ("fit good.csv --set regularization=1e308 --anchors anchors.csv", "is 1e+308; it can be", "from 1e-06 to 1e+09"),
    ("fit good.csv --set nu=1e308 --chain-weights pairs", "is 1e+308; it can be", "a number from 1e-06 to 1e+09"),
    # Packed files and budgets of memory.
    ("fit good.csv --memory lots", "--memory is 'lots'; it is a size such as 500MB"),
    ("fit good.csv --memory 100MB", "need at least 126 MB"),
    ("check good.csv --spill nowhere", "--spill is 'nowhere', which is not a folder"),
    ("pack good.csv -o good.csv", "a packed file ends in .packed"),
    ("fit cut.packed", "cut.packed is too short to be a packed file"),
    # Other commands.
    ("compare good.csv --estimators spectral,magic", "'magic'"),
    ("compare good.csv --holdout 2", "between 0 and 1"),
]


@pytest.fixture
def good(cli):
    Path("good.csv").write_text(GOOD)


@pytest.mark.parametrize(("line", "says"), [(line, says) for line, *says in REFUSED], ids=[f[0][:60] for f in REFUSED])
def test_what_is_refused_is_said_in_a_line(cli, good, line, says):
    Path("anchors.csv").write_text("item,difficulty\nq1,0\n")
    Path("cut.packed").write_bytes(b"SIRTPACK")
    Path("apart.csv").write_text("person,q1,q2,x1,x2\na,1,0,,\nb,0,1,,\nc,,,1,0\nd,,,0,1\n")
    commands, _, options = line.partition(" ")
    for command in commands.split("/"):
        cli.refused(f"{command} {options}", *says)


def test_a_long_table_without_its_items_says_so(cli):
    Path("log.csv").write_text("student_id,is_correct,ts\n1,1,2026-11-01 00:00:00\n2,0,2026-11-01 00:00:01\n")
    cli.refused("fit log.csv", "log.csv: no column names the items", "'student_id', 'is_correct', 'ts'", "--item")
    Path("marks.csv").write_text("candidate,rater,what,score\n" + "a,R1,x,1\na,R2,x,2\nb,R1,y,0\nb,R2,y,1\n")
    cli.refused("fit marks.csv", "If these are ratings and 'rater' says who rated, say --facet rater.")
    cli.refused("fit marks.csv --facet rater", "'score'. Name the one with the items by --item.")
    cli.refused("fit marks.csv --item what", "If several raters gave them, say --facet", "otherwise --duplicates first")
    Path("wide.csv").write_text("student_id,q1,ts\n1,1,2026-11-01 00:00:00\n2,0,2026-11-01 00:00:01\n")
    cli.refused("fit wide.csv", "column 'ts', row 1 holds '2026-11-01 00:00:00'")


@pytest.mark.parametrize("name", ["my_sd.csv", "max_iter.csv", "nu=1.csv", "threshold is 3.csv"])
def test_a_file_is_never_taken_for_an_option(cli, name):
    Path(name).write_text("person,nu=1,ability_sd\na,1,maybe\nb,0,1\nc,0,0\n")
    cli.refused(["fit", name], f"error: {name}: column 'ability_sd', row 1 holds 'maybe'", "--ignore ability_sd")
    Path(name).write_text("person,nu=1,max_iter\na,1,0\na,1,0\nb,0,1\n")
    cli.refused(["fit", name], f"error: {name}: 1 person has more than one row: 'a'. Say --dup")


def test_a_dry_run_refuses_what_a_fit_would_and_writes_nothing(cli):
    Path("a.csv").write_text("person,sex,q1,q2,q3\na,f,1,0,0\nb,m,0,1,0\nc,f,1,1,0\nd,m,0,0,1\ne,f,1,0,1\n")
    before = contents()
    cli.ok("fit a.csv --group sex --estimator cml --threads 1 --skip fit -o out --parquet --rank 3 --dry-run")
    assert contents() == before
    for bad in ("--group none", "--estimator magic", "--threads 0", "--parquet"):
        cli.refused(f"fit a.csv --dry-run {bad}", "'none'" if "none" in bad else bad.split()[0])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_without_permission(cli, good):
    Path("closed").mkdir(mode=0o500)
    cli.refused("fit good.csv -o closed", "permission denied", "choose a place you may write to")


@pytest.mark.parametrize("name", RESULTS)
def test_files_that_no_fit_wrote_are_never_replaced(cli, good, name):
    Path("mine").mkdir()
    Path("mine", name).write_text('{"mine": 1}')
    cli.refused("fit good.csv -o mine", repr(name), "choose another directory")


def raising(error):
    def fails(*_, **__):
        raise error

    return fails


@pytest.mark.parametrize("place", [(SpectralRasch, "_estimate"), (result_files, "write_json")])
def test_an_interrupt_leaves_no_file(cli, good, monkeypatch, place):
    cli.ok("fit good.csv -o out --parquet")
    before = contents()
    monkeypatch.setattr(*place, raising(KeyboardInterrupt))
    for folder in ("new/deep", "out"):
        done = cli(f"fit good.csv -o {folder}")
        assert (done.code, done.err) == (130, "interrupted: nothing was written.\n")
    assert contents() == before


@pytest.mark.parametrize("writer", ["write_csv", "write_parquet", "write_json"])
def test_a_full_disk_leaves_no_file(cli, good, monkeypatch, writer):
    cli.ok("fit good.csv -o out --parquet")
    for module in (tables, result_files):
        if hasattr(module, writer):
            monkeypatch.setattr(module, writer, raising(OSError(errno.ENOSPC, "No space left on device")))
    for folder in ("new/deep", "out"):
        cli.refused(f"fit good.csv -o {folder} --parquet", "the disk is full", "free some space")


def limit():
    """In a process where no file may grow beyond a size, writing fails half-way, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))


@pytest.mark.parametrize(
    "line",
    [
        "fit good.csv -o new/deep",
        "simulate -o new/a.csv --items 20 --truth new/t.csv",
        "simulate -o new/a.parquet --items 20 --truth new/t.parquet",
    ],
)
def test_writing_that_fails_half_way_leaves_no_file(good, line):
    command = [sys.executable, "-B", "-m", "spectral_irt", *line.split()]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr.startswith("error: 'new/")
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir() == ["good.csv"]


def test_an_internal_error_is_one_line_without_debug(cli, good, monkeypatch):
    monkeypatch.setattr(SpectralRasch, "_estimate", raising(RuntimeError("something\nbroke")))
    done = cli("fit good.csv -o new")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("internal error: RuntimeError: something -- ")
    assert "--debug" in done.err
    assert done.err.count("\n") == 1
    assert not Path("new").exists()
    done = cli("fit good.csv -o new --debug")
    assert (done.code, "Traceback" in done.err, "broke" in done.err) == (1, True, True)


def test_debug_shows_the_traceback_of_bad_input_too(cli):
    done = cli("--debug fit none.csv")
    assert (done.code, "Traceback" in done.err) == (2, True)
    assert done.err.splitlines()[-1].startswith("error: there is no file 'none.csv'")


def test_not_enough_memory_is_said(cli, good, monkeypatch):
    monkeypatch.setattr(SpectralRasch, "_estimate", raising(MemoryError))
    cli.refused("fit good.csv", "not enough memory", "--memory", "--set se=none")


def test_the_look_at_ratings_says_what_their_fit_says(cli):
    """An item by one rater is no item: nothing about categories and links of such combinations."""
    rng = np.random.default_rng(2)
    rows = [
        {"essay": f"e{e}", "rater": "abc"[e % 3], "style": int(rng.integers(1, 4)), "org": int(rng.integers(1, 4))}
        for e in range(45)
    ]
    pl.DataFrame(rows).write_csv("single.csv")
    said = " ".join(cli.ok("fit single.csv --facet rater --dry-run").split())
    assert "The raters fall into 3 subsets that nothing links: 'a' | 'b' | 'c'." in said
    assert " × " not in said
    assert "prior" not in said
    refused = cli("check single.csv --facet rater")
    assert "spectral-irt fit has it, and with --dry-run does what check does" in " ".join(refused.err.split())
