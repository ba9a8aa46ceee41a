"""Labels of two sources meet by one rule: equal ones first, then 1 and "1"; what could be either is an error."""

import numpy as np
import polars as pl
import pytest

from spectral_irt import AnchoredRasch, SpectralRasch, datasets, link
from spectral_irt.data import Responses
from spectral_irt.data.labels import positions
from spectral_irt.errors import OptionError
from spectral_irt.inference.groups.grouping import by_label
from spectral_irt.persons.align import align
from spectral_irt.reading import read

ANSWERS = datasets.load_lsat().to_dense()
NUMBERS, TEXTS = [1, 2, 3, 4, 5], ["1", "2", "3", "4", "5"]


def mixed(*labels):
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def lsat(items):
    return Responses.from_wide(ANSWERS, items=items)


@pytest.mark.parametrize(
    ("labels", "known", "expected"),
    [
        ([1, 2], [2, 1], [1, 0]),
        (["1", 2], [1, "2"], [0, 1]),
        ([1, "1"], ["1", 1], [1, 0]),  # equal ones first
        ([1.0, 2.5], ["1", "2.5"], [0, 1]),
        (["01"], [1], [-1]),
        (["1", "1"], [1], [0, 0]),
        ([], [1], []),
        ([2**63 + 5], [str(2**63 + 5)], [0]),
    ],
)
def test_the_rule(labels, known, expected):
    assert positions(labels, known).tolist() == expected
    assert positions(mixed(*labels), mixed(*known)).tolist() == expected


def test_what_could_be_either():
    with pytest.raises(OptionError, match=r"1 and '1' are the same label as text, and '1' could be either"):
        positions([1, "1"], ["1", "2"])
    with pytest.raises(OptionError, match="Rename one of them"):
        positions(["1"], mixed(1, np.str_("x"), 1.0))


@pytest.mark.parametrize(("here", "there"), [(NUMBERS, TEXTS), (TEXTS, NUMBERS)], ids=["numbers", "texts"])
class TestEverywhere:
    """Each place where labels of two sources meet gives the same with numbers as with text."""

    def test_align_and_persons(self, here, there):
        assert align(np.array(there, dtype=object), lsat(here)).items.tolist() == there
        fit = SpectralRasch().fit(lsat(there))
        assert fit.analyse(lsat(here)).persons().equals(fit.analyse(lsat(there)).persons())

    def test_named_items(self, here, there):
        fit = SpectralRasch().fit(lsat(there))
        np.testing.assert_array_equal(fit.predict_proba([0], here[:2]), fit.predict_proba([0], there[:2]))
        assert fit.calibration_.score_table(items=here[:3]).equals(fit.calibration_.score_table(items=there[:3]))

    def test_anchors(self, here, there):
        fit = AnchoredRasch({there[0]: 0.5, there[1]: 0.0}).fit(lsat(here))
        assert fit.anchored_.tolist() == [True, True, False, False, False]

    def test_linking(self, here, there):
        a, b = SpectralRasch().fit(lsat(here)), SpectralRasch().fit(lsat(there))
        assert len(link(a, b).item) == 5

    def test_groups(self, here, there):
        answers = Responses(lsat(here).take_persons(np.arange(5)).blocks, lsat(here).items, mixed(*here))
        found = by_label(answers, dict(zip(there, "xxyyy", strict=True)))
        assert found.group.tolist() == [0, 0, 1, 1, 1]

    def test_key(self, here, there, tmp_path):
        frame = pl.DataFrame({"person": ["a", "a", "b"], "item": here[:2] + here[:1], "response": ["A", "B", "C"]})
        frame.write_parquet(tmp_path / "a.parquet")
        found = read(tmp_path / "a.parquet", key={there[0]: "A", there[1]: "C"})
        assert found.to_dense()[0].tolist() == [1, 0]
