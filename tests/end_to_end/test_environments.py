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


# To start a process takes longer than most commands: several, with `;` between them, are done by one.
SEVERAL = """
import sys
from spectral_irt.cli.main import main
lines = [[]]
for word in sys.argv[1:]:
    if word == ";":
        lines.append([])
    else:
        lines[-1].append(word)
print(*[main(line) for line in lines])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
@pytest.mark.parametrize(("name", "shown"), [("ü.csv".encode(), "ü.csv"), (b"\xff.csv", "\ufffd.csv")])
@pytest.mark.parametrize("environment", [ASCII, {}])
def test_names_that_the_system_cannot_decode(answers, tmp_path, name, shown, environment):
    folder = os.fsencode(tmp_path)
    shutil.copy(answers, os.path.join(folder, name))
    lines = [
        ["fit", name, "-o", "out", "--report", "r.html", "--bank", "bank", "--plots", "plots", "-q"],
        ["fit", name, "-o", "book.xlsx", "-q"],
        ["score", name, "--bank", "bank", "-o", "scores", "-q"],
        ["fit", b"no such " + name],
    ]
    words = [word for line in lines for word in [";", *line]][1:]
    command = [sys.executable, "-c", SEVERAL, *words]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0 0 0 2\n"), done.stderr
    assert done.stderr.startswith("error: there is no file")
    assert done.stderr.count("\n") == 1
    record = json.loads(Path(tmp_path, "out", "fit.json").read_text(encoding="utf-8"))
    assert record["input"]["files"] == [shown]


def test_pictures_need_no_backend(answers, tmp_path):
    done = run(tmp_path, "fit", answers.name, "--plots", "plots", "--report", "r.html", "-q", MPLBACKEND="nosuch")
    assert (done.returncode, done.stderr) == (0, "")
