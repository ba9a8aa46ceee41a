"""Numbers, counts, lists, shares and sizes in words: one of each."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from spectral_irt.errors import OptionError

NONE = "–"  # where there is no number
NAMED = 5  # how many offenders an error names before it only counts the rest
LONGEST = 90  # letters of a label in a table; whoever opens the row sees all of it

UNITS = {"": 1, "B": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def printable(text: object) -> str:
    r"""The text with control characters spelled out, so that it stays on its line and moves no cursor.

    >>> print(printable("two\nlines, a bell \a and a color \x1b[31m"))
    two\nlines, a bell \x07 and a color \x1b[31m
    """
    text = str(text)
    harmless = "\u00a0\u3000\u200d"  # though not printable by Python's count
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in harmless else c.encode("unicode_escape").decode() for c in text)


def storable(text: str) -> str:
    r"""The text as UTF-8 can hold it. Bytes in the name of a file that the system could not decode come to Python as
    halves of characters: here they are what UTF-8 says they are, or the sign for what cannot be shown.

    >>> storable("\udcc3\udcbc.csv"), storable("\udcff.csv"), storable("\ud800"), storable("ü")
    ('ü.csv', '\ufffd.csv', '?', 'ü')
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    else:
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")


# An address, perhaps as the value of an option. What is before the last "@" may be a name and a password.
_ADDRESS = re.compile(r"(?P<option>--[\w-]+=)?(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)", re.DOTALL)
_DATABASES = ("postgresql", "postgres")
_SECRET = re.compile(r"(?i)([?&;][\w.-]*(?:pass|pwd|token|secret|key|sig|credential)[\w.-]*=)[^&;#]*")


def without_secrets(text: str) -> str:
    """An address, or a word of a command line that holds one, as it may be shown and kept in a record.

    Passwords and queries, which may hold keys and signatures, are left out; the user of a database and its table stay.

    >>> without_secrets("postgresql://ann:secret@host:5432/tests?password=secret#answers")
    'postgresql://ann@host:5432/tests#answers'
    >>> without_secrets("--key=https://ann:p/w#1@host/key.csv?sig=secret"), without_secrets("https://host/a@1.0/b.csv")
    ('--key=https://host/key.csv', 'https://host/a@1.0/b.csv')
    >>> without_secrets("duckdb:md:tests?motherduck_token=secret"), without_secrets("what?.csv")
    ('duckdb:md:tests?motherduck_token=...', 'what?.csv')
    """
    address = _ADDRESS.fullmatch(text)
    if address is None:
        is_text = re.search(r"\s", text) is not None  # a query, a title
        return text if is_text else _SECRET.sub(r"\1...", text)
    after_scheme = address["rest"]
    authority = re.split(r"[/?#]", after_scheme, maxsplit=1)[0]
    # A password may hold any sign, unquoted. Without one, "@" may stand in the path, and ":" is before a port.
    has_port = re.fullmatch(r"[^:@]*(:\d*)?|\[[^\]]*\](:\d*)?", authority) is not None
    is_database = address["scheme"].lower() in _DATABASES
    login, at = "", ""
    if "@" in after_scheme and (is_database or not has_port):
        login, at, after_scheme = after_scheme.rpartition("@")
    elif not has_port:  # a password without a host
        after_scheme = authority.partition(":")[0]
    user = re.split(r"[:/?#]", login)[0] + at if is_database else ""
    place = re.split(r"[?#]", after_scheme, maxsplit=1)[0]
    table = "#" + after_scheme.partition("#")[2] if is_database and "#" in after_scheme else ""
    return f"{address['option'] or ''}{address['scheme']}://{user}{place}{table}"


def listed(labels: Iterable[object]) -> str:
    """The first five labels, quoted, and how many more there are.

    >>> listed(["q1", "q2"]), listed(range(9))
    ("'q1', 'q2'", '0, 1, 2, 3, 4 and 4 more')
    """
    labels = list(labels)
    texts = [repr(str(label)) if isinstance(label, str) else str(label) for label in labels[:NAMED]]
    return first_of(texts, len(labels))


def first_of(texts: Iterable[str], total: int | None = None) -> str:
    """The first five texts as they are, and how many more there are, of so many if not all are given."""
    texts = list(texts)
    if total is None:
        total = len(texts)
    text = ", ".join(texts[:NAMED])
    n_others = total - len(texts[:NAMED])
    if n_others > 0:
        text += f" and {n_others:,} more"
    return text


def and_list(names: list[str]) -> str:
    """'a, b and c'."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])


def did_you_mean(name: object, known: Iterable[object], n: int = 1) -> str:
    """The end of an error about a name that is not there: what is nearly called that, capitals aside."""
    texts = {str(other).lower(): str(other) for other in known if str(other) != str(name)}
    near = difflib.get_close_matches(str(name).lower(), list(texts), n=n, cutoff=0.5)
    if not near:
        return ""
    return f" Did you mean {' or '.join(repr(texts[other]) for other in near)}?"


def stopped_early(what: str, steps: int, unit: str, measure: str, reached: float, asked: float) -> str:
    """The one sentence about an iteration that ended before it reached its tolerance."""
    return f"{what} stopped after {steps:,} {unit} at {measure} {reached:.1e} (asked: {asked:.1e})."


def in_short(error: BaseException) -> str:
    """What a library says is wrong: its first line, without the full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def number(value: Any, digits: int = 2, *, none: str = NONE, p: bool = False) -> str:
    """A number with so many digits, never "-0.00"; text as it is; of a p-value at least the least that they can say."""
    if value is None or isinstance(value, str):
        return value or none
    value = float(value)
    if math.isnan(value):
        return none
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"<{10**-digits:g}" if p and value < 10**-digits else f"{value:z,.{digits}f}"


def short(label: object, longest: int = LONGEST) -> str:
    r"""A label as it stands in a table: on one line, control characters spelled out, not too long.

    >>> short("two\nlines"), short("x" * 50, 9)
    ('two\\nlines', 'xxxx…xxxx')
    """
    text = printable(label)
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]}…{text[half + 1 - longest :]}"


def rounded(value: float, digits: int) -> float | int | str | None:
    """A number as JSON has it; what is not finite is null or a word."""
    if value is None or not math.isfinite(value):
        return number(value, none="") or None
    return int(value) if digits == 0 and float(value).is_integer() else round(float(value), digits)


def within(record: Mapping[str, Any] | None, *path: str) -> Any:
    """What a record has at this place; None where it has nothing.

    >>> within({"a": {"b": 1}}, "a", "b"), within({"a": None}, "a", "b")
    (1, None)
    """
    value: Any = record
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def sentence_case(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def percent(share: float) -> str:
    return f"{100 * share:z.1f}%" if math.isfinite(share) else NONE


def p_value(p: float | None) -> str:
    """A p-value with the digits that matter.

    >>> p_value(0.5), p_value(0.0123), p_value(1e-9), p_value(None)
    ('p = 0.50', 'p = 0.012', 'p < 0.001', 'p –')
    """
    if p is None or math.isnan(p):
        return f"p {NONE}"
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.2f}" if p >= 0.095 else f"p = {p:.3f}"


def whole_percent(part: int, whole: int) -> str:
    """A part of a whole in percent, without decimals.

    >>> whole_percent(31, 150), whole_percent(1, 900), whole_percent(0, 0)
    ('21%', 'under 1%', '0%')
    """
    share = part / whole if whole else 0.0
    return "under 1%" if 0 < share < 0.01 else f"{100 * share:.0f}%"


def plural(name: str) -> str:
    """The plural of a noun, which may be the name of a column.

    >>> plural("rater"), plural("jury"), plural("scores"), plural("person"), plural("essay")
    ('raters', 'juries', 'scores', 'people', 'essays')
    """
    if name == "person":
        return "people"
    if re.search(r"[^aeiou\W_]y$", name):
        return f"{name[:-1]}ies"
    return name if name.endswith("s") else f"{name}s"


def one_or_many(n: Any, one: str, many: str) -> str:
    """The form that a verb, a pronoun or a noun has for so many things.

    >>> one_or_many(1, "is", "are"), one_or_many(0, "is", "are")
    ('is', 'are')
    """
    return one if n == 1 else many


def count(n: Any, one: str, many: str = "") -> str:
    """How many there are of something: "1 item", "1,200 people"."""
    return f"{int(n):,} {one_or_many(n, one, many or plural(one))}"


def count_are(n: int, one: str) -> str:
    """`count` with its verb: "1 item is", "3 people are"."""
    return f"{count(n, one)} {one_or_many(n, 'is', 'are')}"


def share(part: int, whole: int, noun: str) -> str:
    """Such as "5 of 30 items"."""
    return f"{part:,} of {count(whole, noun)}"


def span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}-{high}"


def size_text(n_bytes: float) -> str:
    """A number of bytes, rounded up.

    >>> size_text(4e9), size_text(310_400_000), size_text(55_531)
    ('4 GB', '311 MB', '56 KB')
    """
    if n_bytes >= 10**9:
        return f"{math.ceil(n_bytes / 10**8) / 10:g} GB"
    if n_bytes >= 10**6:
        return f"{math.ceil(n_bytes / 10**6)} MB"
    return f"{math.ceil(n_bytes / 10**3)} KB"


def in_bytes(text: str | int, name: str) -> int:
    """Bytes from "4GB", "500 MB" or a plain number, as the option `name` says; GB are powers of ten, GiB of two.

    >>> in_bytes("4GB", "memory"), in_bytes("1.5 GiB", "memory"), in_bytes(500, "memory")
    (4000000000, 1610612736, 500)
    """
    size = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*", str(text))
    n_bytes = 0
    if size is not None:
        n_bytes = int(float(size[1]) * UNITS.get(size[2].upper(), 0))
    if n_bytes < 1:
        raise OptionError(f"`{name}` is {str(text)!r}; it is a size such as 500MB, 4GB or 1.5GiB.")
    return n_bytes


@dataclass(frozen=True)
class Words:
    """How tables, figures and texts call what is measured, one and several: labels, while sentences stay as they are.

    >>> Words("anxiety", "measures").fill("From score to {trait}"), Words().fill("{Traits} of groups")
    ('From score to anxiety', 'Abilities of groups')
    """

    trait: str = "ability"
    traits: str = "abilities"

    def fill(self, label: str) -> str:
        """A label with these words in its fields {trait} and {traits}, {Trait} and {Traits} with a capital."""
        for name, word in (("trait", self.trait), ("traits", self.traits)):
            label = label.replace(f"{{{name}}}", word)
            label = label.replace(f"{{{name.capitalize()}}}", sentence_case(word))
        return label


TEST = Words()
QUESTIONNAIRE = Words("person measure", "person measures")
