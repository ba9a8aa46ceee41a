"""What a fit looks like on a terminal: a short table, a paragraph, the findings.

Labels are data, never markup: every text goes in as `rich.text.Text`, control characters spelled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, chop_cells
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from spectral_irt.errors import for_shell, printable
from spectral_irt.responses import Finding, Responses

SHOW_ALL = 15  # a test of so many items is shown whole
SHOW_EACH = 5  # of a longer one: so many hardest, easiest, least sure
LEAST_LABEL = 8
COMFORTABLE = 24  # columns that a label may take before the number of answers makes way for it
NARROWEST = 40  # columns; help is folded to no less either
CUT = "..."
DIRECTION = "larger = harder"
BAR_WIDTH = 24
BAR_HEAD = "easier" + " " * (BAR_WIDTH - 12) + "harder"
ROOM_FOR_BAR = 100  # columns of a terminal that has room for a picture of the intervals

STYLES = {"": "cyan", BAR_HEAD: "blue", "status": "yellow"}
COLORS = {"note": "cyan", "warning": "yellow", "error": "bold red"}

Columns = Mapping[str, NDArray[Any]]


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would end the process with code 1; what a reader who goes away means is for the command to say."""
        raise BrokenPipeError


def console() -> Console:
    out = _Console(highlight=False, markup=False, emoji=False)
    if out.width < NARROWEST:  # the terminal may fold the lines; tables without their numbers help nobody
        out.width = NARROWEST
    return out


def say(out: Console, *what: RenderableType) -> None:
    """Print, without the blanks that fill up the lines of tables when nobody sees them."""
    if out.is_terminal:
        out.print(*what)
        return
    with out.capture() as captured:
        out.print(*what)
    out.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))


def show_source(out: Console, responses: Responses) -> None:
    """What was read, on a line."""
    right = 100 * responses.item_scores.sum() / max(responses.n_responses, 1)
    head = Text(printable(responses.source), style="bold")
    head.append(
        f"  {responses.n_users:,} {responses.words[0]}, {responses.n_items:,} {responses.words[1]}, "
        f"{responses.n_responses:,} responses, "
        f"{right:.1f}% right",
        style="not bold",
    )
    say(out, head)
    say(out)


def shortened(labels: Iterable[Any], width: int) -> list[str]:
    """Labels on one line each, cut in the middle where one is too wide, and never so that two of them look alike.

    >>> shortened(["form-A-item-01", "form-A-item-02", "form-B"], 11)
    ['form...m-01', 'form...m-02', 'form-B']
    >>> shortened(["item-17-of-form-A", "item-18-of-form-A"], 10)
    ['item-17...', 'item-18...']
    """
    labels = list(labels)
    plain = {str(label): printable(label) for label in labels}
    cut = _told_apart(plain, width)
    if cut is None:  # they differ nowhere near their ends
        numbered = {label: f"{k}:{text}" for k, (label, text) in enumerate(plain.items(), 1)}
        cut = {label: _cut(text, width - len(CUT), 0, width) for label, text in numbered.items()}
    return [cut[str(label)] for label in labels]


def room_for(labels: Iterable[Any]) -> int:
    """The columns in which labels can just be told apart."""
    plain = {str(label): printable(label) for label in labels}
    widest = max(map(cell_len, plain.values()), default=0)
    widths = range(min(LEAST_LABEL, widest), min(widest, ROOM_FOR_BAR))
    return next((width for width in widths if _told_apart(plain, width) is not None), min(widest, ROOM_FOR_BAR))


def _told_apart(plain: Mapping[str, str], width: int) -> dict[str, str] | None:
    """The texts cut to the width, all of them at the same place, as near to the middle as leaves no two alike."""
    room = max(width - len(CUT), 1)
    for head in sorted(range(room + 1), key=lambda head: abs(2 * head - room)):
        cut = {label: _cut(text, head, room - head, width) for label, text in plain.items()}
        if len(set(cut.values())) == len(cut):
            return cut
    return None


def _cut(text: str, head: int, tail: int, width: int) -> str:
    if cell_len(text) <= width:
        return text
    first = chop_cells(text, head)[0] if head else ""
    last = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return first + CUT + last


# ------------------------------------------------------------------------------------------ items


def choose(columns: Columns) -> list[tuple[str, list[int]]]:
    """Which items to show, under which heading: all of a short test, the extremes of a long one."""
    difficulty, se = columns["difficulty"], columns["se"]
    known = np.flatnonzero(np.isfinite(difficulty))
    hardest_first = known[np.argsort(-difficulty[known], kind="stable")]
    if len(difficulty) <= SHOW_ALL:
        return [("", [*hardest_first.tolist(), *np.flatnonzero(~np.isfinite(difficulty)).tolist()])]
    sure = known[np.isfinite(se[known])]
    least_sure = sure[np.argsort(-se[sure], kind="stable")]
    groups = [
        ("hardest", hardest_first[:SHOW_EACH].tolist()),
        ("easiest", hardest_first[::-1][:SHOW_EACH].tolist()),
        ("least sure", least_sure[:SHOW_EACH].tolist()),
    ]
    return [(name, rows) for name, rows in groups if rows]


def item_table(columns: Columns, width: int, *, unicode: bool = True) -> Table:
    """The items that say most, larger = harder. Labels get the room that the numbers leave."""
    groups = choose(columns)
    rows = [k for _, chosen in groups for k in chosen]
    shown = {name: values[rows] for name, values in columns.items()}
    texts = _texts(shown)
    if width >= ROOM_FOR_BAR:
        intervals = zip(shown["ci_low"], shown["difficulty"], shown["ci_high"], strict=True)
        span = _span(shown)
        texts[BAR_HEAD] = [bar(*interval, span, unicode=unicode) for interval in intervals]
        for name in ("n", "right"):
            texts[name] = texts.pop(name)
    if np.any(shown["status"] != "ok"):
        texts["status"] = ["" if status == "ok" else str(status) for status in shown["status"]]
    if len(groups) > 1:
        texts = {"": [name if k == 0 else "" for name, chosen in groups for k in range(len(chosen))], **texts}
    least = max(room_for(shown["item"]), LEAST_LABEL)
    whole = min(max(map(cell_len, map(printable, shown["item"])), default=0), COMFORTABLE)
    for spare, wanted in (("n", max(least, whole)), ("right", least), ("95% interval", least)):
        if _room(texts, width) >= wanted:
            break
        del texts[spare]
    texts["item"] = shortened(shown["item"], max(_room(texts, width), LEAST_LABEL))

    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    for head in texts:
        above = f"{DIRECTION}\n" if head == "difficulty" else "\n"
        left = head in ("", "item", "status", BAR_HEAD)
        table.add_column(above + head, justify="left" if left else "right", no_wrap=True, style=STYLES.get(head))
    ends = set(np.cumsum([len(chosen) for _, chosen in groups])[:-1].tolist())
    for k, cells in enumerate(zip(*texts.values(), strict=True)):
        if k in ends:
            table.add_row()
        table.add_row(*map(Text, cells))
    return table


def _room(texts: dict[str, list[str]], width: int) -> int:
    """Columns of the terminal that are left for the labels of items."""
    widest = {head: max(map(len, [head, *cells])) for head, cells in texts.items() if head != "item"}
    widest["difficulty"] = max(widest["difficulty"], len(DIRECTION))
    return width - sum(size + 2 for size in widest.values())


def _texts(shown: Columns) -> dict[str, list[str]]:
    """The cells of the table by the heads of its columns."""
    low, high = shown["ci_low"].tolist(), shown["ci_high"].tolist()
    return {
        "item": [],
        "difficulty": [_number(x, 3) for x in shown["difficulty"].tolist()],
        "se": [_number(x, 3) for x in shown["se"].tolist()],
        "95% interval": [f"{a:.2f} to {b:.2f}" if np.isfinite(a) else "" for a, b in zip(low, high, strict=True)],
        "n": [f"{n:,}" for n in shown["n"].tolist()],
        "right": [f"{100 * p:.1f}%" if np.isfinite(p) else "" for p in shown["p_correct"].tolist()],
    }


def _number(x: float, digits: int) -> str:
    return f"{x:.{digits}f}" if np.isfinite(x) else ""


def _span(shown: Columns) -> tuple[float, float]:
    """What the picture covers: every difficulty, and every interval as far as it is not absurdly wide."""
    mid = shown["difficulty"][np.isfinite(shown["difficulty"])]
    if not len(mid):
        return -1.0, 1.0
    reach = max(1.0, float(np.ptp(mid))) / 2
    ends = np.concatenate([shown["ci_low"], shown["ci_high"], mid])
    ends = ends[np.isfinite(ends)]
    low, high = max(float(ends.min()), float(mid.min()) - reach), min(float(ends.max()), float(mid.max()) + reach)
    return low, max(high, low + 1e-6)


def bar(low: float, mid: float, high: float, span: tuple[float, float], *, unicode: bool = True) -> str:
    """An interval as a line with its estimate on it.

    >>> bar(-1, 0, 1, (-2, 2))
    '     ───────●──────     '
    """
    if not np.isfinite(mid):
        return ""
    start, end = span
    line, dot = "─●" if unicode else "-o"
    low, mid, high = (
        float(np.clip((x - start) / (end - start), 0, 1)) * (BAR_WIDTH - 1) if np.isfinite(x) else np.nan
        for x in (low, mid, high)
    )
    cells = [" "] * BAR_WIDTH
    if np.isfinite(low) and np.isfinite(high):
        first, last = int(np.floor(low)), int(np.ceil(high))
        cells[first : last + 1] = line * (last - first + 1)
    cells[round(mid)] = dot
    return "".join(cells)


# ------------------------------------------------------------------------------- other tables, and lines


def plain_table(heads: Sequence[str], columns: Sequence[Sequence[Any]], width: int) -> Table:
    """A table of texts: labels to the left in the room that the others leave, the others to the right."""
    taken = sum(2 + max(map(len, [head, *cells])) for head, cells in zip(heads[1:], columns[1:], strict=True))
    room = max(width - taken, LEAST_LABEL)
    table = Table(box=None, padding=(0, 1), header_style="bold", pad_edge=False, show_edge=False)
    for k, head in enumerate(heads):
        table.add_column(
            head, justify="right" if k and head else "left", no_wrap=True, style=None if head else "yellow"
        )
    labels = shortened(columns[0], room)
    for row in zip(labels, *columns[1:], strict=True):
        table.add_row(*map(Text, row))
    return table


def show_lines(out: Console, lines: Iterable[tuple[str, str]]) -> None:
    """A word in bold, and what there is to say about it."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for label, text in lines:
        grid.add_row(Text(label), Text(printable(text)))
    say(out, grid)


# --------------------------------------------------------------------------------------- findings


def show_findings(out: Console, findings: Iterable[Finding]) -> int:
    """Severity, sentence and remedy of each; returns how many."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    count = 0
    for finding in findings:
        text = Text(printable(for_shell(finding.sentence)))
        if for_shell(finding.remedy):
            text.append(" " + printable(for_shell(finding.remedy)), style="dim")
        grid.add_row(Text(finding.severity, style=COLORS[finding.severity]), text)
        count += 1
    if count:
        say(out, grid)
    return count
