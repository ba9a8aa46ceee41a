"""What an index shows: the README with links that work there, and the links of the project."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("package_metadata", ROOT / "scripts" / "package_metadata.py")
package_metadata = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package_metadata)

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.compile(r"\]\(([^)]+)\)")


def hook(project_url, version=None):
    metadata = {"version": version} if version else {}
    package_metadata.CustomMetadataHook(str(ROOT), {"project-url": project_url}).update(metadata)
    return metadata


def test_without_an_address_there_are_no_links_into_the_repository():
    metadata = hook("")
    text = metadata["readme"]["text"]
    assert metadata["urls"] == {}
    assert all(link.startswith(("https://", "#")) for link in LINKS.findall(text))
    assert "are in a checkout of the repository" in text.splitlines()[2]
    assert "![" not in text
    # Nothing else is lost.
    assert len(text.split()) > 0.95 * len(LINKS.sub("]", README).split()) - 40


def test_with_an_address_every_link_is_absolute_and_the_paths_exist():
    metadata = hook("https://example.org/lab/irt", "0.2.0")
    links = LINKS.findall(metadata["readme"]["text"])
    inside = [link for link in links if link.startswith("https://example.org/lab/irt/")]
    assert inside
    assert all(link.startswith(("https://", "#")) for link in links)
    for link in inside:
        path = re.sub(r"^https://example.org/lab/irt/(blob|raw)/v0\.2\.0/", "", link).partition("#")[0]
        assert (ROOT / path).exists(), link
    assert "![" in metadata["readme"]["text"]
    assert "/raw/v0.2.0/docs/figures/" in metadata["readme"]["text"]
    assert metadata["urls"]["Issues"] == "https://example.org/lab/irt/issues"
