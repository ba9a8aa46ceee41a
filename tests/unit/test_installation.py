"""How this copy was installed decides what a message says about an extra, and about a mistake of ours."""

import json
import re
import tomllib
from email.message import Message

import pytest

from source import ROOT
from spectral_irt import installation

PROJECT = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


class Installed:
    """A distribution as `importlib.metadata` gives it."""

    def __init__(self, source=None, urls=()):
        self.source = source
        self.metadata = Message()
        for url in urls:
            self.metadata["Project-URL"] = url

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.source is None else json.dumps(self.source)


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, 'pip install "spectral-irt[app]"'),
        (
            {"url": "file:///home/ann/irt", "dir_info": {"editable": True}},
            'pip install ".[app]" in the folder with its pyproject.toml',
        ),
        (
            {"url": "file:///home/ann/my%20files/spectral_irt-0.2.0-py3-none-any.whl", "archive_info": {}},
            'pip install "/home/ann/my files/spectral_irt-0.2.0-py3-none-any.whl[app]"',
        ),
        (
            {"url": "https://example.org/spectral_irt-0.2.0.tar.gz", "archive_info": {}},
            'pip install "https://example.org/spectral_irt-0.2.0.tar.gz[app]"',
        ),
    ],
    ids=["from an index", "from a checkout", "from a wheel", "from an address"],
)
def test_an_extra_is_installed_as_the_program_was(source, command, monkeypatch):
    monkeypatch.setattr(installation, "_distribution", lambda: Installed(source))
    assert installation.install_extra("app") == command


def test_without_an_installation_the_extra_is_that_of_the_checkout(monkeypatch):
    monkeypatch.setattr(installation, "PACKAGE", "no-such-package-as-this")
    assert installation.install_extra("app").startswith('pip install ".[app]"')
    assert installation.please_report() == "please report it to those from whom you have the program"


def test_a_mistake_is_reported_where_the_publisher_says(monkeypatch):
    urls = ["Homepage, https://example.org/irt", "Issues, https://example.org/irt/issues"]
    monkeypatch.setattr(installation, "_distribution", lambda: Installed(urls=urls))
    assert installation.please_report() == "please report it at https://example.org/irt/issues"


def test_messages_name_extras_that_there_are():
    asked = set()
    for path in ROOT.rglob("*.py"):
        for piece in path.read_text(encoding="utf-8").split("install_extra(")[1:]:
            if piece.startswith(('"', "'")):
                asked.add(piece[1:].partition(piece[0])[0])
    assert {"app", "cluster", "database", "formats"} <= asked
    assert asked <= set(PROJECT["optional-dependencies"])


def test_the_extra_all_is_all_of_them():
    extras = PROJECT["optional-dependencies"]
    [everything] = extras["all"]
    assert everything == f"spectral-irt[{','.join(sorted(set(extras) - {'all'}))}]"


def test_a_release_is_checked_with_every_extra():
    path = ROOT.parents[1] / "scripts" / "release_check.py"
    smoke = re.search(r"^SMOKE = \{.*?^\}", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]
    assert set(re.findall(r'^    "(\w+)": ', smoke, re.MULTILINE)) == set(PROJECT["optional-dependencies"]) - {"all"}
