"""Environments in which other programs fail: no locale, names that are no text, a backend that nobody knows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # processes of their own
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(folder, *words, **environment):
    command = [sys.executable, "-m", "spectral_irt", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def answers(cli, lsat):
    return lsat


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
@pytest.mark.parametrize(("name", "shown"), [("ü.csv".encode(), "ü.csv"), (b"\xff.csv", "\ufffd.csv")])
@pytest.mark.parametrize("environment", [ASCII, {}])
def test_names_that_the_system_cannot_decode(answers, tmp_path, name, shown, environment):
    folder = os.fsencode(tmp_path)
    shutil.copy(answers, os.path.join(folder, name))
    done = run(folder, "fit", name, "-o", "out", "--report", "r.html", "--bank", "bank", "-q", **environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    record = json.loads(Path(tmp_path, "out", "fit.json").read_text(encoding="utf-8"))
    assert record["input"]["files"] == [shown]
    for words in (["-o", "book.xlsx"], ["--plots", "plots"]):
        done = run(folder, "fit", name, *words, "-q", **environment)
        assert (done.returncode, done.stderr) == (0, "")
    done = run(folder, "score", name, "--bank", "bank", "-o", "scores", "-q", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(folder, "fit", b"no such " + name, **environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--plots", "plots"], ["--report", "r.html"]])
def test_pictures_need_no_backend(answers, tmp_path, words):
    done = run(tmp_path, "fit", answers.name, *words, "-q", MPLBACKEND="nosuch")
    assert (done.returncode, done.stderr) == (0, "")
