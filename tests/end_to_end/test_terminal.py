"""Every command on a real terminal: exit code, results, and the screen that it leaves."""

import numpy as np
import pytest
from rich.cells import cell_len

from spectral_irt import simulate
from spectral_irt.cli.main import main
from terminal import CLOCK, on_terminal

pytestmark = pytest.mark.slow

ITEMS = 500


def wide(path, people, copies=1, seed=1):
    """A wide table of answers; `copies` of the same rows make a large file in no time."""
    data = simulate.rasch(people, difficulty=np.linspace(-2, 2, ITEMS), seed=seed).responses
    cells = np.full((people, 2 * ITEMS), ord(","), dtype=np.uint8)
    cells[:, ::2] = data.to_dense().astype(np.uint8) + ord("0")
    cells[:, -1] = ord("\n")
    head = ",".join(f"q{k}" for k in range(ITEMS)) + "\n"
    path.write_bytes(head.encode() + cells.tobytes() * copies)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two files of answers and two banks."""
    place = tmp_path_factory.mktemp("terminal")
    wide(place / "large.csv", 2_000, copies=2)
    for name, bank, seed in (("fast.csv", "bank", 1), ("later.csv", "other", 2)):
        wide(place / name, 300, seed=seed)
        assert main(["fit", str(place / name), "--bank", str(place / bank), "--skip", "persons,fit"]) == 0
    return place


def left_clean(shown):
    """The command is done, and of its progress nothing is left on the screen."""
    assert shown.code == 0, shown.text
    assert not CLOCK.search(shown.text), shown.text
    assert not shown.cursor_hidden
    assert "error: " not in shown.text
    assert "lost" not in shown.text


SHOWN = {  # what is done, a line of the end, what is written, and what the progress says
    "fit large.csv -o out --skip fit": ("Results are in out", "out/items.csv", "reading large.csv"),
    "check large.csv": ("No problems found.", "", "reading large.csv"),
    "score large.csv --bank bank -o s.csv": ("Written: s.csv.", "s.csv", "reading large.csv"),
    "update bank large.csv -o new": ("The bank is in new.", "new/bank.json", "reading large.csv"),
    "compare fast.csv -o compared.csv": ("Written: compared.csv.", "compared.csv", ""),
    "simulate -o drawn.csv --persons 8000 --items 300 --seed 1": ("8,000 people, 300 items", "drawn.csv", ""),
    "link bank other -o linked": ("Written: linked.", "linked/bank.json", None),
    "demo -o demo": ("With your own answers: spectral-irt fit answers.csv", "demo/items.csv", None),
}


@pytest.mark.parametrize("line", SHOWN, ids=[line.split()[0] for line in SHOWN])
def test_a_command_leaves_a_clean_screen_and_its_results(place, line):
    last, result, progress = SHOWN[line]
    shown = on_terminal(*line.split(), cwd=place)
    left_clean(shown)
    assert any(text.startswith(last) for text in shown.screen), shown.text
    assert (place / result).stat().st_size > 0
    if progress is not None:  # it takes longer than a moment
        assert any(progress in text for text, _ in shown.progress)


# The bar pulses by the time between frames.
STEPS = """
import time
from spectral_irt.cli.terminal import Progress
with Progress() as progress:
    progress.say("reading", 0.4)
    progress.reading(1.0, "reading")
    progress.say("fitting")
    for _ in range(40):
        progress._display.refresh()
        time.sleep(0.05)
print("done")
"""


def test_the_bar_shows_life(tmp_path):
    shown = on_terminal(cwd=tmp_path, program=STEPS)
    left_clean(shown)
    assert [line for line in shown.screen if line] == ["done"]
    assert len({colors for line, colors in shown.progress if "fitting" in line}) > 5


def test_short_work_is_silent(place):
    shown = on_terminal("check", "fast.csv", cwd=place, delay=3600)
    left_clean(shown)
    assert not shown.progress


def test_a_share_of_the_work_is_a_share_of_the_bar(tmp_path):
    program = STEPS.replace('progress.say("fitting")', 'progress.say("drawing", 0.5)')
    shown = on_terminal(cwd=tmp_path, program=program)
    left_clean(shown)
    line, colors = [state for state in shown.progress if "drawing" in state[0]][-1]
    bar = [color for character, color in zip(line, colors, strict=False) if character in "━╸╺"]
    assert len(bar) == 24
    assert 10 <= sum(color == bar[0] for color in bar) <= 14


LABELS = [
    *("שאלה ראשונה", "سؤال صعب", "漢字の設問その1", "e\u0301te\u0301", "[red]x[/red]", ":smile:"),
    *("\x1b[31mred", "a\tb", "plain"),
]
SPELLED = {"\x1b[31mred": "\\x1b[31mred", "a\tb": "a\\tb", "e\u0301te\u0301": "été"}


@pytest.mark.parametrize("width", [60, 120])
def test_labels_on_a_terminal(tmp_path, width):
    """Any script, markup and control characters: each label as it is, every number in its column."""
    data = simulate.rasch(200, len(LABELS), seed=1).responses.to_dense().astype(int)
    rows = [",".join(f'"{label}"' for label in LABELS), *(",".join(map(str, row)) for row in data.tolist())]
    (tmp_path / "odd.csv").write_text("\n".join(rows), encoding="utf-8")
    shown = on_terminal("fit", "odd.csv", cwd=tmp_path, size=(width, 60))
    left_clean(shown)
    head = next(k for k, line in enumerate(shown.screen) if line.startswith("item "))
    table = shown.screen[head + 1 : head + 1 + len(LABELS)]
    for name in (SPELLED.get(label, label) for label in LABELS):
        assert sum(line.replace("\u200e", "").startswith(f"{name} ") for line in table) == 1, (name, table)
    assert len({cell_len(line) for line in table}) == 1, table  # the last column ends where it ends in every row
    assert ("●" in shown.text) == (width >= 120)


def test_an_error_on_a_terminal(tmp_path):
    shown = on_terminal("fit", "none.csv", cwd=tmp_path)
    assert shown.code == 2
    assert next(line for line in shown.screen if line).startswith("error: there is no file 'none.csv'")
