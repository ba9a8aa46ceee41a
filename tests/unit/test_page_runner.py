"""What keeps pages true, and leaves them alone where nothing has changed."""

import pytest

import page_runner

PAGE = """# A page

```sh
echo "{commands}"
```

```text
{printed}
```

![a picture](made/page/dot.svg)

<!-- run sh
echo '<svg id="m{name}" r="{size}"/>' > dot.svg
-->
"""


def updated(folder, **said):
    """The page and its picture after an update, with these commands in it."""
    page = folder / "page.md"
    page.write_text(PAGE.format(**said), encoding="utf-8")
    place = folder / "run"
    place.mkdir(exist_ok=True)
    page_runner.update(page, place)
    return page.read_text(encoding="utf-8"), (folder / "made" / "page" / "dot.svg").read_text(encoding="utf-8")


def test_times_and_last_bits_leave_a_page_and_its_pictures_as_they_are(tmp_path):
    shown = {"printed": "0.3 logits, fitted in 0.05\ns"}
    first = updated(tmp_path, commands="0.3 logits, fitted in 0.05 s", name="1a", size="1.5", **shown)
    again = updated(
        tmp_path, commands="0.30000000000000004 logits, fitted in 2.75 s", name="2b", size="1.50001", **shown
    )
    assert "fitted in 0.05\ns" in again[0]
    assert first[1] == again[1] == '<svg id="m1a" r="1.5"/>\n'


def test_what_has_changed_is_written(tmp_path):
    shown = {"printed": "0.3 logits, fitted in 0.05 s"}
    updated(tmp_path, commands="0.3 logits, fitted in 0.05 s", name="1a", size="1.5", **shown)
    text, picture = updated(tmp_path, commands="0.301 logits, fitted in 2.75 s", name="2b", size="1.6", **shown)
    assert "```text\n0.301 logits, fitted in 2.75 s\n```" in text
    assert picture == '<svg id="m2b" r="1.6"/>\n'


@pytest.mark.parametrize("page", page_runner.pages(), ids=lambda page: page.stem)
def test_tables_are_those_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert page_runner.with_results(text) == text


def test_a_tutorial_hides_nothing_that_a_reader_needs():
    """Commands in comments are run, and nobody sees them: a reader could not follow the page."""
    tutorials = [page for page in page_runner.pages() if page.parent.name == "tutorials"]
    assert len(tutorials) >= 6
    for page in tutorials:
        assert "<!-- run" not in page.read_text(encoding="utf-8"), page.name


def test_every_result_is_on_a_page():
    shown = {
        found[2] for page in page_runner.pages() for found in page_runner.RESULTS.finditer(page.read_text("utf-8"))
    }
    assert shown == {path.stem for path in (page_runner.DOCS / "results").glob("*.json")}
