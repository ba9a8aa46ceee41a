"""Run what a page shows: every `python` and `sh` block in order, in an empty folder, as a reader would.

A block of kind `text` after one of them is what it prints. Files that a page presupposes are made by an HTML comment
that begins with `run sh` or `run python`; blocks of other kinds (`console`, `yaml`) are not run. A picture whose link
begins with `made/PAGE/` is the file of that name which the page's commands wrote.

    python docs/page_runner.py PAGE...            run pages, and say where they differ from what they show
    python docs/page_runner.py --update PAGE...   write what is printed, and the pictures, into the pages

A comment `<!-- results NAME: COLUMN, COLUMN = HEAD, ... -->` stands above a table whose numbers come from
docs/results/NAME.json, which `python benchmarks/SCRIPT.py --save NAME` wrote; of several tables, NAME#2 is the second.

What differs in nothing but times and the last bits of numbers stays as it is, so that a second run changes no file.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

DOCS = Path(__file__).parent
ROOT = DOCS.parent
CLOSE = 0.005  # numbers on display may move by rounding, no further
LAST_BITS = 1e-9  # by which numbers differ from machine to machine
UNSEEN = 0.01  # of a point: coordinates in a picture
SHOWN = re.compile(
    r"^<!-- run (?P<how>python|sh)\n(?P<hidden>.*?)^-->$|^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
RESULTS = re.compile(r"^(<!-- results ([\w-]+)(?:#(\d))?: (.+?) -->\n\n)((?:\|.*\n)*)", re.MULTILINE)
MADE = re.compile(r"\]\((made/(\w+)/([^)]+))\)")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
FOR_A_SHELL = re.compile(r"[|&;<>$`*?~(){}\[\]!\\]|\s#")  # in a command: what only a shell understands
PIPED = re.compile(r"([^|>]+) ([|>] .+)")  # a command, and where its output goes
WIDTH = {"COLUMNS": "80"}
VOLATILE = re.compile(r"\d+\.\d+\s+s\b|\de[-+]\d+")  # times and residuals
NAMED = re.compile(r'(id="|"#|url\(#)\w+')  # parts of a picture, which are named after all their digits
NUMBER = re.compile(r"(-?\d+\.?\d*(?:e[-+]?\d+)?)")


@dataclass(frozen=True)
class Block:
    """Something to run, and what the page says that it prints: None when it does not say."""

    kind: str
    text: str
    line: int
    printed: str | None = None
    place: tuple[int, int] = (0, 0)  # of the output, in the text of the page


def pages() -> list[Path]:
    """The pages with something to run."""
    texts = {page: page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]}
    return [page for page, text in texts.items() if blocks(text) or RESULTS.search(text)]


def blocks(text: str) -> list[Block]:
    """What a page shows, in order.

    >>> [(one.kind, one.text, one.printed) for one in blocks("```sh\\nls\\n```\\n\\n```text\\na\\n```\\n")]
    [('sh', 'ls\\n', 'a\\n')]
    """
    found: list[Block] = []
    for match in SHOWN.finditer(text):
        line = 1 + text.count("\n", 0, match.start())
        if match["hidden"] is not None:
            found.append(Block(match["how"], match["hidden"], line))
        elif match["kind"] in ("python", "sh"):
            found.append(Block(match["kind"], match["text"], line))
        elif match["kind"] == "text" and found and found[-1].printed is None:
            last = found[-1]
            found[-1] = Block(last.kind, last.text, last.line, match["text"], match.span("text"))
    return [one for one in found if not one.text.startswith("make ")]


def run(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """Every block with what it printed; an error when one of them fails."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done = []
    for block in blocks(page.read_text(encoding="utf-8")):
        run_one = _python if block.kind == "python" else _shell
        done.append((block, run_one(block, page, folder, names)))
    return done


def _python(block: Block, page: Path, folder: Path, names: dict[str, Any]) -> str:
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, str(page), "exec")
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def _shell(block: Block, page: Path, folder: Path, names: dict[str, Any]) -> str:
    """What the last command of the block prints; the others are of interest only when they fail."""
    printed = ""
    for command in re.sub(r"\\\n\s*", "", block.text).strip().split("\n"):
        piped = PIPED.fullmatch(command)
        if _is_ours(command):
            code, printed, said = _in_this_process(command, folder)
        elif piped and _is_ours(piped[1]):
            code, printed, said = _in_this_process(piped[1], folder)
            code_of_rest, printed, said_by_rest = _in_bash(f"cat {piped[2]}", folder, printed)
            code = code or code_of_rest
            said += said_by_rest
        else:
            code, printed, said = _in_bash(command, folder)
        if code or said.startswith("error"):  # the second at the head of a pipe
            raise AssertionError(f"{page.name}, line {block.line}: {command}\n{printed}{said}")
    return printed


def _is_ours(command: str) -> bool:
    """Whether it needs no shell."""
    return command.startswith("spectral-irt ") and not FOR_A_SHELL.search(command)


def _in_this_process(command: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `spectral-irt`, which is not imported anew."""
    from spectral_irt.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    streams = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with contextlib.chdir(folder), mock.patch.dict(os.environ, WIDTH), streams[0], streams[1]:
        code = main(shlex.split(command)[1:])
    return code, out.getvalue(), err.getvalue()


def _in_bash(command: str, folder: Path, given: str = "") -> tuple[int, str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    settings = {**os.environ, **WIDTH, "PYTHONPATH": _with_root(), "PATH": path}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=settings, capture_output=True, text=True, input=given
    )
    return done.returncode, done.stdout, done.stderr


def _with_root() -> str:
    """Pages may use what lies in the folder of the repository, such as `reproduction`."""
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))


def differences(found: str, expected: str, close: float = CLOSE) -> str | None:
    """Where two texts differ in a word, or in a number by more than rounding; times are left out."""
    ours, theirs = (_words(text) for text in (found, expected))
    for mine, wanted in zip(ours, theirs, strict=False):
        if mine != wanted and not _close(mine, wanted, close):
            return f"{mine!r} where the page has {wanted!r}"
    return None if len(ours) == len(theirs) else f"{len(ours)} words where the page has {len(theirs)}"


def _words(text: str) -> list[str]:
    """Words and numbers: commas of thousands are left out, and those of CSV divide.

    >>> _words("1,200 people\\na,0.25,7")
    ['1200', 'people', 'a', '0.25', '7']
    """
    return THOUSANDS.sub("", VOLATILE.sub("...", text)).replace(",", " ").split()


def _close(mine: str, wanted: str, close: float) -> bool:
    try:
        return abs(float(mine) - float(wanted)) <= close
    except ValueError:
        return False


def reads_alike(found: str, there: str) -> bool:
    """Whether two outputs differ in times and last bits alone; where times stand, lines may break elsewhere.

    >>> reads_alike("a b\\n\\nin 10.25\\ns", "a b\\n\\nin 0.25 s"), reads_alike("a\\nb", "a b")
    (True, False)
    """
    ours, theirs = (
        [len(_words(line)) for part in text.strip().split("\n\n") for line in _lines(part)] for text in (found, there)
    )
    return ours == theirs and differences(found, there, LAST_BITS) is None


def _lines(paragraph: str) -> list[str]:
    return [paragraph] if VOLATILE.search(paragraph) else paragraph.split("\n")


def looks_alike(found: bytes, there: bytes) -> bool:
    """Whether two pictures are the same to the eye.

    >>> looks_alike(b'<path id="m1a" d="M 1.0001 2"/>', b'<path id="m2f" d="M 1 2"/>')
    True
    >>> looks_alike(b'<path d="M 1.5 2" fill="red"/>', b'<path d="M 1 2" fill="red"/>')
    False
    """
    if found == there or not found.startswith(b"<"):
        return found == there
    ours, theirs = (NUMBER.split(NAMED.sub(r"\1", text.decode())) for text in (found, there))
    return len(ours) == len(theirs) and all(
        mine == other or _close(mine, other, UNSEEN) for mine, other in zip(ours, theirs, strict=True)
    )


def with_results(text: str) -> str:
    """The page with the tables that are kept in docs/results."""
    return RESULTS.sub(_kept, text)


def _kept(found: re.Match[str]) -> str:
    marker, name, which, columns, _ = found.groups()
    kept = json.loads((DOCS / "results" / f"{name}.json").read_text(encoding="utf-8"))["tables"]
    rows = list(kept.values())[int(which or 1) - 1]
    heads = dict(part.split(" = ") if " = " in part else (part, part) for part in columns.split(", "))
    lines = [[heads[column] for column in heads], ["---"] * len(heads)]
    lines += [[_shown(row.get(column)) for column in heads] for row in rows]
    return marker + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        if 0 < abs(value) < 0.0005:
            return f"{value:.0e}"
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def check(page: Path, folder: Path) -> list[str]:
    """What on the page is not so."""
    wrong = []
    for block, printed in run(page, folder):
        said = None if block.printed is None else differences(printed, block.printed)
        if said is not None:
            wrong.append(f"{page.name}, line {block.line}: {said}")
    text = page.read_text(encoding="utf-8")
    if with_results(text) != text:
        wrong.append(f"{page.name}: a table is not that of docs/results; page_runner.py --update writes it")
    for link, name, file in MADE.findall(text):
        if name != page.stem or not (folder / file).is_file():
            wrong.append(f"{page.name}: no command of the page writes {link}")
        elif not (page.parent / link).is_file():
            wrong.append(f"{page.name}: {link} is missing; page_runner.py --update makes it")
    return wrong


def update(page: Path, folder: Path) -> None:
    """Write what blocks print, and the pictures that they make, to the page."""
    done = run(page, folder)
    text = page.read_text(encoding="utf-8")
    for block, printed in reversed(done):
        if block.printed is not None and not reads_alike(printed, block.printed):
            start, end = block.place
            text = (
                text[:start] + "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n" + text[end:]
            )
    text = with_results(text)
    if text != page.read_text(encoding="utf-8"):
        page.write_text(text, encoding="utf-8")
    for link, _, file in MADE.findall(text):
        target = page.parent / link
        if target.is_file() and looks_alike((folder / file).read_bytes(), target.read_bytes()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / file, target)


def main(arguments: list[str]) -> int:
    updating = "--update" in arguments
    chosen = [Path(name) for name in arguments if name != "--update"] or pages()
    wrong: list[str] = []
    for page in chosen:
        print(page, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            if updating:
                update(page, Path(folder))
            else:
                wrong += check(page, Path(folder))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
