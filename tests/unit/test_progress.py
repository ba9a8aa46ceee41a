"""What a program that runs a command is told of its progress."""

import json

from spectral_irt.cli.terminal import Progress


def test_a_program_is_told_in_lines(capsys, monkeypatch):
    monkeypatch.setenv("SPECTRAL_IRT_PROGRESS", "json")
    with Progress() as progress:
        for k in range(1000):  # not a line for each
            progress.say("reading a\nb.csv", k / 1000)
        progress.say("solving")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[0] == {"doing": "reading a\\nb.csv", "share": 0.0}
    assert lines[-1] == {"doing": "solving", "share": None}
    assert len(lines) < 100


def test_nobody_is_told_who_did_not_ask(capsys):
    with Progress() as progress:
        progress.say("reading", 0.5)
    assert capsys.readouterr().err == ""
