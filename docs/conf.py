"""How the site is built: `make docs`. Nothing is fetched; every warning is an error."""

from __future__ import annotations

import io
import re
import shutil
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from spectral_irt import __version__

sys.path.insert(0, str(Path(__file__).parent))
shutil.rmtree(Path(__file__).parent / "reference" / "generated", ignore_errors=True)  # pages of names that are gone

project = "spectral-irt"
author = "The spectral-irt developers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["**/__pycache__"]
nitpicky = False
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["config.cache"]

templates_path = ["templates"]  # a page for a class has all its methods, with their parameters
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "spectral-irt"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


PARTS = {
    "tutorials": "Tutorials",
    "how-to": "How to",
    "explanation": "Explanation",
    "reference": "Reference",
    "": "More",
}
USE = """On the command line: `spectral-irt fit answers.csv -o results` (CSV, Excel, SPSS, Stata, Parquet, Arrow, JSON
lines; wide or long; right and wrong, or ordered categories); `spectral-irt --help` lists the commands. In Python:
`study = si.SpectralRasch().fit(answers).analyse(answers)`, then `study.persons()`, `study.item_fit()`,
`study.report("report.html")`. Larger difficulty is harder, in logits, mean zero. Errors: one line, exit code 2."""


class Help(SphinxDirective):
    """```{help} fit```: what `spectral-irt fit --help` prints, and the command's own options, each with a link."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        import os

        from spectral_irt.cli.main import main, program

        os.environ["COLUMNS"] = "88"
        name = self.arguments[0]
        out = io.StringIO()
        with redirect_stdout(out):
            main([name, "--help"])
        own = [one for one in program.get_command(None, name).params if getattr(one, "rich_help_panel", "") is None]
        own = [one for one in own if one.param_type_name == "option"]
        return [nodes.literal_block(out.getvalue(), out.getvalue(), language="text"), *described(own, name)]


class Options(SphinxDirective):
    """```{options} columns```: what `spectral-irt help columns` prints, each option with a link."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        import inspect

        from spectral_irt.cli.help import KEPT, TOPICS
        from spectral_irt.cli.main import fit_options

        topic = self.arguments[0]
        found: list[nodes.Node] = []
        for paragraph in inspect.cleandoc(TOPICS[topic][1]).split("\n\n"):
            text = paragraph.removeprefix(KEPT).strip("\n")
            kept = nodes.literal_block(text, text, language="text")
            found.append(kept if paragraph.startswith(KEPT) else nodes.paragraph(text, text))
        return [*found, *described([one for one in fit_options() if one.rich_help_panel == topic], "fit")]


def described(options: list[Any], command: str) -> list[nodes.Node]:
    """A list of options: flags with their values, and what they are for; `#fit-key` leads to `--key` of `fit`."""
    from spectral_irt.cli.help import flags

    listed = nodes.definition_list()
    for one in options:
        name = f"{command}-{max(one.opts, key=len).lstrip('-')}"
        term = nodes.term("", "", nodes.literal(text=flags(one)), ids=[name])
        term += nodes.reference("", "#", refid=name, classes=["headerlink"])
        listed += nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph(text=one.help)))
    return [listed] if options else []


def write_llms_txt(app: Any, failed: Exception | None) -> None:
    """An index for language models: every page with its first sentence, under the part of the site that it is in."""
    if failed is not None or app.builder.name != "html":
        return
    lines = ["# spectral-irt", "", f"> {first_sentence(app, 'index')}", "", USE]
    pages = [name for name in sorted(app.env.found_docs) if "generated/" not in name and name != "index"]
    for folder, part in PARTS.items():
        lines += ["", f"## {part}", ""]
        for name in (page for page in pages if page.rpartition("/")[0] == folder and not page.endswith("/index")):
            said = first_sentence(app, name)
            lines.append(f"- [{app.env.titles[name].astext()}]({name}.html){f': {said}' if said else ''}")
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def first_sentence(app: Any, name: str) -> str:
    """What a page says first, without code, comments, lists and links."""
    text = Path(app.env.doc2path(name)).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$|<!--.*?-->|^# .*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    first = next((part for part in re.split(r"\n\n+", prose) if re.match(r"\w", part)), "")
    plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", " ".join(first.split()))
    return re.split(r"(?<=[.:])\s", plain)[0].rstrip(":")


def setup(app: Any) -> None:
    app.add_directive("help", Help)
    app.add_directive("options", Options)
    app.connect("build-finished", write_llms_txt)
