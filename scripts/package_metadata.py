"""Metadata that the build computes: the README as an index can show it, and the links of the project.

hatchling calls `CustomMetadataHook` (pyproject.toml, `[tool.hatch.metadata.hooks.custom]`). The README links to pages
of the repository by their paths. A package index does not have these pages, so the links become absolute where
`project-url` is set; where it is not, their text stays, and a sentence says where the pages are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")
IN_A_CHECKOUT = "Pages, pictures and scripts that are named here are in a checkout of the repository.\n"


class CustomMetadataHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        project_url = str(self.config.get("project-url", ""))
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        version = metadata.get("version") or self.config.get("version", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(readme, project_url, version)}
        metadata["urls"] = project_urls(project_url)


def long_description(readme: str, project_url: str, version: str) -> str:
    """The README for the page of an index.

    >>> long_description("# It\\n\\nSee [the pages](docs/index.md).\\n", "https://example.org/it", "1.0")
    '# It\\n\\nSee [the pages](https://example.org/it/blob/v1.0/docs/index.md).\\n'
    >>> long_description("# It\\n\\nSee [the pages](docs/index.md).\\n", "", "1.0").splitlines()[-1]
    'See the pages.'
    """
    if not project_url:
        title, _, text = readme.partition("\n")
        return f"{title}\n\n{IN_A_CHECKOUT}{LINK.sub(_text_alone, text)}"
    return LINK.sub(lambda link: _absolute(link, project_url, version), readme)


def project_urls(project_url: str) -> dict[str, str]:
    if not project_url:
        return {}
    return {
        "Homepage": project_url,
        "Documentation": f"{project_url}/blob/HEAD/docs/index.md",
        "Changelog": f"{project_url}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{project_url}/issues",
    }


def _text_alone(link: re.Match[str]) -> str:
    picture, text, _ = link.groups()
    return "" if picture else text


def _absolute(link: re.Match[str], project_url: str, version: str) -> str:
    picture, text, path = link.groups()
    kind = "raw" if picture else "blob"
    branch = f"v{version}" if version else "HEAD"
    return f"{picture}[{text}]({project_url}/{kind}/{branch}/{path})"
