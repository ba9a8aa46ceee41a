"""Raw answers -> ordered categories: numbers as they are, labels by a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectral_irt.errors import OptionError, listed, option
from spectral_irt.responses.missing import NOT_ANSWERED
from spectral_irt.responses.scorer import Answers, Bools, Scoring, as_series, one_spelling, spellings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectral_irt.responses.block import Floats, Ints
    from spectral_irt.responses.labels import Labels
    from spectral_irt.responses.scorer import Values

# An answer on its way through the readers is one code, WIDTH times its item plus its category.
WIDTH = 128


@dataclass(frozen=True)
class OrderedScoring(Scoring):
    """Values are categories; with `recode`, labels that stand for them."""

    recode: Mapping[str, float] | None = None

    @property
    def expects_01(self) -> bool:
        return False

    def _numbers(self, values: Values) -> tuple[Floats, Bools | None]:
        if self.recode is None:
            return super()._numbers(values)
        import polars as pl

        text = one_spelling(as_series(values))
        numbers = text.replace_strict(dict(self.recode), default=None, return_dtype=pl.Float64)
        odd = numbers.is_null() & ~text.is_in([*NOT_ANSWERED, *self.missing]).fill_null(True)
        return numbers.to_numpy(), odd.to_numpy() if odd.any() else None

    def clean(self, values: Values) -> Answers:
        """The answers; what is not a category is odd, and named with its place when all were seen."""
        found = super().clean(values)
        numbers = np.asarray(found.values, dtype=np.float64)
        bad = (numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= WIDTH)
        if not bad.any():
            return found
        odd = np.zeros(len(values), dtype=bool) if found.odd is None else found.odd.copy()
        odd[bad if found.answered is None else found.answered[bad]] = True
        return found._replace(odd=odd)

    @property
    def expected(self) -> str:
        if self.recode is not None:
            return f"not among the labels of the categories, {listed(self.recode)}"
        return f"not a category: these are whole numbers from 0 to {WIDTH - 1}"

    @property
    def how_to(self) -> str:
        if self.recode is not None:
            said = " Add it to " + option("recode") + ", or say " + option("missing", ...)
            return said + " if it means 'not answered'."
        return (
            " Number the categories 0, 1, 2, ..., or name them with "
            + option("recode", ...)
            + "; for right and wrong, say "
            + option("threshold", ...)
            + "."
        )

    def codes(self, values: Any, items: NDArray[Any], labels: Labels, source: str) -> Ints:
        """WIDTH times the item plus the category."""
        from spectral_irt.responses.ordered_arrays import whole_numbers

        return items.astype(np.int64) * WIDTH + whole_numbers(values, items, labels, source)


def recoding(labels: Any) -> dict[str, float] | None:
    """Labels from the lowest category to the highest; those joined by = share one ("never=not at all,sometimes").

    >>> recoding("never,sometimes,often")
    {'never': 0.0, 'sometimes': 1.0, 'often': 2.0}
    """
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        return {spellings([label])[0]: float(number) for label, number in labels.items()}
    parts = labels.split(",") if isinstance(labels, str) else [str(one) for one in labels]
    found: dict[str, float] = {}
    for k, part in enumerate(parts):
        for label in spellings(_parts(part)):
            if not label or label in found:
                raise OptionError(option("recode"), f" names {label!r} twice or not at all; each label once.")
            found[label] = float(k)
    if len(parts) < 2:
        raise OptionError(option("recode"), " needs two labels or more, from the lowest to the highest.")
    return found


def _parts(text: str) -> Iterable[str]:
    return (one.strip() for one in text.split("="))
