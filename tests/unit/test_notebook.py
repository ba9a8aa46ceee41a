"""The line of progress in notebooks, beside a kernel that is only pretended."""

import sys
import threading
import types

import numpy as np
import pytest

import spectral_irt as si
from spectral_irt import notebook


class Handle:
    """A display of the pretended notebook: what it showed, one after the other."""

    def __init__(self, shown):
        self.contents = [shown]

    def update(self, content, *, raw):
        assert raw
        self.contents.append(content)


class Kernel:
    """What Jupyter has that the line needs."""

    def __init__(self, monkeypatch):
        self.displays = []
        self.appeared = threading.Event()
        shell = types.SimpleNamespace(kernel=object())
        package = types.ModuleType("IPython")
        package.get_ipython = lambda: shell
        module = types.ModuleType("IPython.display")
        module.display = self.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", module)
        self.shell = shell

    def display(self, content, *, raw, display_id):
        assert raw
        assert display_id
        self.displays.append(Handle(content))
        self.appeared.set()
        return self.displays[-1]


@pytest.fixture
def kernel(monkeypatch):
    return Kernel(monkeypatch)


@pytest.fixture
def at_once(monkeypatch):
    """Long work without the wait: the line appears immediately, and follows every word."""
    monkeypatch.setattr(notebook, "DELAY", 0.0)
    monkeypatch.setattr(notebook, "PAUSE", -1.0)


def test_long_work_has_a_line_that_goes_away(kernel, at_once):
    with notebook.progress_line():
        assert kernel.appeared.wait(10)
        notebook.say("solving <the chain>")
        with notebook.progress_line():  # a step of it
            notebook.say("reading", 0.25)
        notebook.say("last step")
    (line,) = kernel.displays
    assert [content["text/plain"] for content in line.contents] == [
        "working",
        "solving <the chain>",
        "reading 25%",
        "last step",
        "",
    ]
    assert line.contents[1]["text/html"] == "<progress></progress> solving &lt;the chain&gt;"
    assert line.contents[2]["text/html"] == '<progress value="0.250"></progress> reading'
    notebook.say("nobody listens any more")
    assert line.contents[-1]["text/html"] == ""


def test_an_error_takes_the_line_with_it(kernel, at_once):
    with pytest.raises(ZeroDivisionError), notebook.progress_line():
        assert kernel.appeared.wait(10)
        1 / 0  # noqa: B018
    assert kernel.displays[0].contents[-1]["text/plain"] == ""
    assert notebook._line is None


def test_texts_by_the_thousand_are_not_all_shown(kernel, monkeypatch):
    monkeypatch.setattr(notebook, "DELAY", 0.0)
    monkeypatch.setattr(notebook, "PAUSE", 1e9)
    with notebook.progress_line():
        assert kernel.appeared.wait(10)
        for k in range(1000):
            notebook.say("reading", k / 1000)
    assert len(kernel.displays[0].contents) == 2  # the first, and none at the end


def test_short_work_shows_nothing(kernel, monkeypatch):
    monkeypatch.setattr(notebook, "DELAY", 3600.0)
    lsat = si.datasets.load_lsat()
    si.SpectralRasch().fit(lsat).analyse(lsat).item_fit()
    si.read(np.eye(4))
    assert not kernel.displays


@pytest.fixture
def waited_for(kernel, at_once, monkeypatch):
    """Work that goes on when its line is there; what was said."""
    texts = []
    say = notebook.Line.say

    def after_the_line(line, text, share=None):
        assert kernel.appeared.wait(10)
        texts.append(text)
        say(line, text, share)

    monkeypatch.setattr(notebook.Line, "say", after_the_line)
    return texts


def test_fits_and_analyses_say_what_they_do(kernel, waited_for, tmp_path):
    lsat = si.datasets.load_lsat()
    fit = si.SpectralRasch().fit(lsat)
    assert "solving the chain" in waited_for
    study = fit.analyse(lsat)
    study.persons()
    assert "abilities" in waited_for
    (tmp_path / "answers.csv").write_text("person,a,b,c\n1,0,1,1\n2,1,0,1\n3,1,1,0\n", encoding="utf-8")
    si.read(tmp_path / "answers.csv")
    assert any(text.startswith("reading") for text in waited_for)
    assert all(display.contents[-1]["text/plain"] == "" for display in kernel.displays)


def test_whoever_listens_alone_is_told(kernel, at_once):
    lsat = si.datasets.load_lsat()
    kernel.displays.clear()  # of reading them
    told = []
    fit = si.SpectralRasch().fit(lsat, progress=told.append)
    fit.analyse(lsat, progress=told.append).persons()
    assert {"solving the chain", "abilities"} <= set(told)
    assert not kernel.displays


def test_a_terminal_is_no_notebook(kernel, at_once):
    kernel.shell.kernel = None
    with notebook.progress_line():
        notebook.say("solving")
        assert not kernel.appeared.wait(0.05)
    sys.modules["IPython"].get_ipython = lambda: None
    assert not notebook.in_notebook()
