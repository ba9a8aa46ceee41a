"""What travels between a coordinator and sites: rounds, and answers to them, as small JSON files.

A round asks for one kind of sum over people and carries numbers per item; an answer has sums per item and a few totals.
Items are named by their labels, so that sites may have different ones. Nothing about a single person is in either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spectral_irt.errors import FederationError, listed
from spectral_irt.responses.block import Floats
from spectral_irt.responses.labels import Labels, label_array
from spectral_irt.tables import json_text
from spectral_irt.writing import all_or_nothing, naming

PROGRAM = "spectral-irt"
PROTOCOL = 1  # of the files; sites and coordinator must speak the same

# For every kind of sum: the numbers per item that the round carries; the sums per item, and the totals, of an answer.
ASKED: Mapping[str, tuple[str, ...]] = {
    "survey": (),
    "links": ("marks",),
    "groups": ("group",),
    "flows": ("beta", "v"),
    "inflow": ("beta", "v"),
    "spread": ("beta", "pi", "shift"),
}
SUMS: Mapping[str, tuple[str, ...]] = {
    "survey": ("n", "right", "evidence_right", "evidence_wrong"),
    "links": ("reached", "reaching"),
    "groups": (),
    "flows": ("rates", "inflow"),
    "inflow": ("inflow",),
    "spread": ("squares", "crossed"),
}
TOTALS: Mapping[str, tuple[str, ...]] = {
    "survey": ("people", "no_answer", "one_answer", "all_right", "all_wrong", "mixed"),
    "links": (),
    "groups": ("linking", "linking_mixed"),
    "flows": (),
    "inflow": (),
    "spread": ("shared",),
}


@dataclass(frozen=True, eq=False)
class Round:
    """A question to every site: a kind of sum, the items that take part, and numbers for each of them."""

    study: str
    number: int
    kind: str
    items: Labels
    values: Mapping[str, Floats] = field(default_factory=dict)
    weighting: str = ""

    def same(self, other: Round) -> bool:
        """Whether both ask the same, up to rounding."""
        return (
            (self.number, self.kind, self.weighting) == (other.number, other.kind, other.weighting)
            and self.items.tolist() == other.items.tolist()
            and all(np.allclose(self.values[name], other.values[name], rtol=1e-8) for name in ASKED[self.kind])
        )

    def write(self, path: Path) -> None:
        record = {
            "program": PROGRAM,
            "protocol": PROTOCOL,
            "study": self.study,
            "round": self.number,
            "kind": self.kind,
            "weighting": self.weighting,
            "items": self.items,
            "values": dict(self.values),
        }
        _write(path, record)

    @classmethod
    def read(cls, path: Path) -> Round:
        found = _read(path, "a round")
        kind, items = str(found.get("kind")), _labels(path, found)
        if kind not in ASKED:
            raise FederationError(f"{str(path)!r} asks for {kind!r}, which is not a sum that sites give.")
        values = {name: _numbers(path, found.get("values"), name, len(items)) for name in ASKED[kind]}
        return cls(found["study"], found["round"], kind, items, values, str(found.get("weighting", "")))


@dataclass(frozen=True, eq=False)
class Answer:
    """What a site says to a round: sums per item, totals, and the items that too few of its people answered."""

    study: str
    number: int
    kind: str
    site: str
    items: Labels
    sums: Mapping[str, Floats]
    totals: Mapping[str, float] = field(default_factory=dict)
    left_out: Labels = field(default_factory=lambda: label_array([]))

    def check_items(self, own: Sequence[Any], asked: Labels) -> None:
        """Refuse an answer that is not about those of the site's own items (as in its first answer) that were asked."""
        mine = set(own)
        expected = [item for item in asked.tolist() if item in mine]
        got = self.items.tolist()
        if sorted(map(str, got)) != sorted(map(str, expected)):
            other = [item for item in got if item not in expected] + [item for item in expected if item not in got]
            raise FederationError(
                f"site {self.site!r} answered round {self.number} about other items than those it named in round 1: "
                f"{listed(other)}. Every round is answered from the same data, with the same options."
            )

    def write(self, path: Path, inputs: list[str] | None = None) -> None:
        record = {
            "program": PROGRAM,
            "protocol": PROTOCOL,
            "study": self.study,
            "round": self.number,
            "kind": self.kind,
            "site": self.site,
            "items": self.items,
            "sums": dict(self.sums),
            "totals": dict(self.totals),
            "left_out": self.left_out,
        }
        _write(path, record, inputs or [])

    @classmethod
    def read(cls, path: Path) -> Answer:
        found = _read(path, "an answer")
        kind, items = str(found.get("kind")), _labels(path, found)
        if kind not in SUMS or not isinstance(found.get("site"), str):
            raise FederationError(f"{str(path)!r} is not the answer of a site; ask the site to answer again.")
        sums = {name: _numbers(path, found.get("sums"), name, len(items)) for name in SUMS[kind]}
        given = found.get("totals")
        totals = {
            name: float(_numbers(path, {name: [given.get(name)] if isinstance(given, dict) else None}, name, 1)[0])
            for name in TOTALS[kind]
        }
        left_out = label_array(found.get("left_out") or [])
        return cls(found["study"], found["round"], kind, found["site"], items, sums, totals, left_out)


def _write(path: Path, record: dict[str, Any], inputs: list[str] | None = None) -> None:
    with all_or_nothing([path], inputs=inputs or []) as (draft,), naming(path):
        draft.write_text(json_text(record) + "\n", encoding="utf-8", newline="\n")


def _read(path: Path, what: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FederationError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except ValueError:
        raise FederationError(
            f"{str(path)!r} is not {what}: it is damaged, or was still being copied. Have it sent again."
        ) from None
    if not isinstance(found, dict) or found.get("program") != PROGRAM or "round" not in found:
        raise FederationError(f"{str(path)!r} is not {what} of {PROGRAM}.")
    if found.get("protocol") != PROTOCOL:
        raise FederationError(
            f"{str(path)!r} is {what} in version {found.get('protocol')!r} of the protocol, and this program speaks "
            f"version {PROTOCOL}. All must use versions of {PROGRAM} that speak the same."
        )
    if not isinstance(found.get("study"), str) or not isinstance(found["round"], int):
        raise FederationError(f"{str(path)!r} is not {what}: it does not say which study and round it belongs to.")
    return found


def _labels(path: Path, found: dict[str, Any]) -> Labels:
    items = found.get("items")
    if not isinstance(items, list) or not all(isinstance(item, str | int) for item in items):
        raise FederationError(f"{str(path)!r} does not list its items.")
    if len(set(items)) < len(items):
        twice = sorted({str(item) for item in items if items.count(item) > 1})
        raise FederationError(f"{str(path)!r} lists items more than once: {listed(twice)}.")
    return label_array(items)


def _numbers(path: Path, given: Any, name: str, length: int) -> Floats:
    values = given.get(name) if isinstance(given, dict) else None
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (length,) or not np.isfinite(numbers).all():
        raise FederationError(
            f"{str(path)!r}: {name!r} should be {length:,} finite numbers, one for each item, and is not."
        )
    return numbers
