"""The report as its reader has it: in a browser, without a network, by mouse and keyboard, on any screen, on paper."""

import csv
import io
import json
import re
from contextlib import chdir
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from browser import Browser, axe, chromium
from drawn import drawn
from end_to_end.tables import read_csv
from hostile import HOSTILE, hostile_table
from spectral_irt import simulate
from spectral_irt.cli.main import main
from spectral_irt.datasets import writing_file
from spectral_irt.tables import guard_cell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="NO CHROMIUM: the report was NOT tested in a browser"),
]
LARGEST = 2_000_000  # bytes of that page
PHONE = {"width": 390, "height": 800}
TABLE = "document.querySelector('#table-items')"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A folder with reports: of items with hostile names, of an ordinary test, and of 5,000 items."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(1)
    slope = np.ones(20)
    slope[4] = 0.0  # one that misfits
    right = drawn(rng, slope * (rng.normal(size=(400, 1)) - np.linspace(-2, 2, 20)))
    names = [f"q{k}" for k in range(1, 21)]
    sampled = simulate.rasch(1500, 5000, design="sampled", p=0.012, seed=1).responses
    person, item, x = sampled.answers()
    large = {"person": person, "item": [f"item number {k}" for k in item], "response": x.astype(int)}
    with chdir(folder):
        hostile_table(Path("hostile.csv"))
        chosen = np.where(right, "A", rng.choice(["B", "C<i>"], size=right.shape))
        pl.DataFrame(chosen, schema=names, orient="row").write_csv("small.csv")
        pl.DataFrame({"item": names, "key": "A"}).write_csv("key.csv")
        pl.DataFrame(large).write_csv("large.csv")
        for line in (
            "simulate -o points.csv --model pcm --persons 300 --items 8 --categories 4 --seed 1",
            "fit hostile.csv --group <u>sex</u> --list-persons --report hostile.html",
            "fit small.csv --key key.csv -o small --report small.html",
            "fit points.csv --report points.html",
            f"fit {writing_file()} --facet rater --ignore language --report ratings.html",
            "fit large.csv --report large.html",
        ):
            assert main(line.split()) == 0
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture
def page(browser, pages):
    """The browser with the report of the small test; nothing may be complained of, and nothing fetched."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.look()
    browser.open(pages / "small.html")
    yield browser
    assert browser.complaints == []
    assert [url[:200] for url in browser.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def labels(page):
    return page.run(f"[...{TABLE}.querySelectorAll('tbody tr:not(.opened) th')].map((e) => e.textContent)")


def column(page, place):
    return page.run(f"[...{TABLE}.querySelectorAll('tbody tr:not(.opened)')].map((e) => e.cells[{place}].textContent)")


def click_head(page, name):
    page.run(f"[...{TABLE}.querySelectorAll('thead button')].find((e) => e.textContent === {json.dumps(name)}).click()")


def type_in(page, text):
    page.run(
        f"{{ const field = {TABLE}.querySelector('[type=search]'); field.value = {json.dumps(text)};"
        " field.dispatchEvent(new Event('input')); }"
    )


def choose(page, selector, text):
    page.run(
        f"{{ const one = {TABLE}.querySelector('{selector}'); one.selectedIndex = [...one.options].findIndex("
        f"(o) => o.text === {json.dumps(text)}); one.dispatchEvent(new Event('change')); }}"
    )


def items_of(pages):
    """The hardest first, as the page has them."""
    return sorted(read_csv(pages / "small" / "items.csv"), key=lambda row: -float(row["difficulty"]))


def test_items_are_sorted_by_numbers_and_by_names(page, pages):
    items = items_of(pages)
    assert labels(page) == [row["item"] for row in items]
    for sign, direction in ((1, "ascending"), (-1, "descending")):
        click_head(page, "Difficulty")
        ordered = sorted(items, key=lambda row: sign * round(float(row["difficulty"]), 3))  # ties as on the page
        assert labels(page) == [row["item"] for row in ordered]
        assert page.run(f"{TABLE}.querySelector('th[aria-sort]').textContent") == "Difficulty"
        assert page.run(f"{TABLE}.querySelector('th[aria-sort]').getAttribute('aria-sort')") == direction
    click_head(page, "Item")
    assert labels(page) == [f"q{k}" for k in range(1, 21)]  # q2 before q10
    by_name = sorted(items, key=lambda row: int(row["item"][1:]))
    assert column(page, 1) == [f"{float(row['difficulty']):z.3f}" for row in by_name]


def test_items_are_searched_and_filtered(page):
    type_in(page, "Q1")
    assert set(labels(page)) == {"q1", *(f"q{k}" for k in range(10, 20))}
    assert page.run(f"{TABLE}.querySelector('[role=status]').textContent") == "11 of 20 items"
    type_in(page, "no such item")
    assert labels(page) == []
    type_in(page, "")
    choose(page, ".filter", "Misfit: underfit")
    assert labels(page) == ["q5"]
    choose(page, ".filter", "all items")
    assert len(labels(page)) == 20


def test_a_row_opens_by_keyboard_and_shows_the_curve(page):
    page.run(f"[...{TABLE}.querySelectorAll('tbody th button')].find((e) => e.textContent === 'q5').focus()")
    page.press("Enter", 13)
    page.wait(f"{TABLE}.querySelector('.opened svg') !== null", 5)
    assert page.run("document.activeElement.getAttribute('aria-expanded')") == "true"
    said = page.run(f"{TABLE}.querySelector('.opened svg').getAttribute('aria-label')")
    marks = page.run(f"{TABLE}.querySelectorAll('.opened circle').length")
    assert marks >= 3
    assert said.startswith("Curve of q5: an even chance at ability ")
    assert said.count("% of ") == marks
    text = page.run(f"{TABLE}.querySelector('.opened').textContent")
    assert "Infit z" in text
    options = f"[...{TABLE}.querySelectorAll('.opened table tbody tr')].map((e) => e.cells[0].textContent)"
    assert page.run(options) == ["A (key)", "B", "C<i>"]
    click_head(page, "Difficulty")  # it stays open where its row goes
    assert page.run(f"{TABLE}.querySelector('.opened').previousElementSibling.cells[0].textContent") == "q5"
    page.run(f"{TABLE}.querySelector('[aria-expanded=true]').click()")
    assert page.run(f"{TABLE}.querySelector('.opened')") is None


def test_everything_can_be_reached_by_tab(page):
    seen = []
    page.run("document.body.focus()")
    for _ in range(120):
        page.press("Tab", 9)
        seen.append(page.run("document.activeElement.className + document.activeElement.textContent.slice(0, 20)"))
        if seen[-1] == "q3":
            break
    assert "q3" in seen
    assert "downloadDownload CSV" in seen
    assert "Findings" in seen


def downloaded(page, name):
    path = page.folder / name
    path.unlink(missing_ok=True)
    page.run(f"document.querySelector('#table-{name.removesuffix('.csv')} .download').click()")
    page.until(lambda: path.exists() and path.stat().st_size, "the download", 20)
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_what_is_shown_can_be_downloaded(page, pages):
    head, *rows = downloaded(page, "items.csv")
    items = items_of(pages)
    assert head[:3] == ["item", "difficulty", "se"]
    assert [row[0] for row in rows] == [row["item"] for row in items]
    assert [float(row[1]) for row in rows] == [round(float(row["difficulty"]), 3) for row in items]
    assert all(len(row) == len(head) for row in rows)
    type_in(page, "q20")
    assert [row[0] for row in downloaded(page, "items.csv")] == ["item", "q20"]


def test_hostile_names_stay_text(page, pages):
    page.open(pages / "hostile.html")
    page.run(f"{TABLE}.querySelectorAll('tbody th button').forEach((button) => button.click())")
    shown = labels(page)
    assert set(shown) > set(HOSTILE[:4])
    assert all(text.isprintable() for text in shown)
    assert page.run("document.scripts.length") == 2
    assert page.run("[...document.images].every((image) => image.src.startsWith('data:') && image.naturalWidth > 0)")
    for tag in ("b", "i", "u"):
        assert page.run(f"document.getElementsByTagName('{tag}').length") == 0
    wholes = page.run(f"[...{TABLE}.querySelectorAll('.full')].map((e) => e.textContent)")
    assert "x" * 10_000 in wholes
    _, *rows = downloaded(page, "items.csv")
    assert sorted(row[0] for row in rows) == sorted(guard_cell(label) for label in HOSTILE)
    for width in (1200, 390):
        page.look(width=width)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_five_thousand_items_are_there_at_once(page, pages):
    assert (pages / "large.html").stat().st_size < LARGEST
    page.open(pages / "large.html")
    click_head(page, "Difficulty")
    page.run(f"{TABLE}.querySelector('tbody th button').click()")
    assert page.run(f"{TABLE}.querySelector('.opened circle') !== null")
    values = [float(value) for value in column(page, 1)]
    assert len(values) == 100
    assert values == sorted(values)
    page.run(f"{TABLE}.querySelector('.next').click()")
    assert "rows 101 to 200 are shown" in page.run(f"{TABLE}.querySelector('[role=status]').textContent")
    assert float(column(page, 1)[0]) >= values[-1]
    choose(page, ".size", "all 5,000")
    assert len(labels(page)) == 5000
    assert len(downloaded(page, "items.csv")) == 5001


@pytest.mark.skipif(axe() is None, reason="NO AXE-CORE: the accessibility of the report was NOT checked")
@pytest.mark.parametrize(
    ("name", "look"),
    [
        *(("small", {}), ("small", {"dark": True}), ("small", PHONE), ("points", {}), ("points", PHONE)),
        *(("ratings", {}), ("hostile", {}), ("large", {"dark": True})),
    ],
)
def test_no_serious_obstacle_for_anybody(page, pages, name, look):
    page.look(**look)
    page.open(pages / f"{name}.html")
    page.run(f"{TABLE}.querySelectorAll('tbody th button')[1].click()")
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.problems() == []


def test_an_item_of_ordered_answers_opens_to_its_categories(page, pages):
    page.look(**PHONE)
    page.open(pages / "points.html")
    page.run(f"{TABLE}.querySelector('tbody button').click()")
    shown = page.run(f"[...{TABLE}.querySelectorAll('.opened table tbody th')].map((e) => e.textContent)")
    assert shown == ["0", "1", "2", "3"]
    said = page.run(f"{TABLE}.querySelector('.opened svg').getAttribute('aria-label')")
    assert re.search(r"thresholds at (-?[0-9.]+, ){2}-?[0-9.]+\. Mean answers in .*: [0-3]\.\d\d of \d+, ", said)
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("document.querySelectorAll('#curves img').length") == 2


@pytest.mark.parametrize("name", ["small", "points", "ratings"])
def test_no_table_is_cut_at_the_width_of_a_laptop(page, pages, name):
    """1,280 points: a column beyond the edge, such as the status, is not looked for."""
    page.look(width=1280)
    page.open(pages / f"{name}.html")
    wider = page.run(
        "[...document.querySelectorAll('table')].filter((t) => t.parentElement.scrollWidth > "
        "t.parentElement.clientWidth + 1).map((t) => t.textContent.slice(0, 80))"
    )
    assert wider == []


def test_paper_is_white_and_has_no_controls(page, pages):
    page.look(dark=True)
    dark = page.run("getComputedStyle(document.body).backgroundColor")
    scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.ask("Emulation.setEmulatedMedia", media="print", features=scheme)
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)" != dark
    assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert page.run("getComputedStyle(document.querySelector('figure img')).filter") == "none"
    closed = "document.querySelector('.findings details:not([open]) p')"
    assert page.run(f"{closed} === null || {closed}.checkVisibility({{ contentVisibilityAuto: true }})")  # no clicks
    page.ask("Emulation.setEmulatedMedia", media="", features=[])
    page.print(pages / "small.pdf")
    assert (pages / "small.pdf").read_bytes().startswith(b"%PDF")
    click_head(page, "Difficulty")  # the buttons, which are text on paper, are there again


def test_without_javascript_the_first_rows_are_there(page, pages):
    page.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.ask("Page.navigate", url=(pages / "large.html").resolve().as_uri())
        page.wait("document.readyState === 'complete' && document.querySelector('#methods') !== null")
        assert page.run(f"{TABLE}.querySelectorAll('tbody tr').length") == 50
        assert "the first 50 are shown" in page.run(f"{TABLE}.querySelector('.status').textContent")
        assert page.run("getComputedStyle(document.querySelector('.controls')).display") == "none"
    finally:
        page.ask("Emulation.setScriptExecutionDisabled", value=False)
