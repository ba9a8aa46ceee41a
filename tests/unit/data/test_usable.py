"""check_usable: a sentence for each way in which data can carry no information about difficulty."""

import pytest

from spectral_irt.data import Responses
from spectral_irt.data.design import check_usable
from spectral_irt.errors import DesignError


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([[None, None], [None, None]], "no response at all"),
        ([[1], [0]], "a single item, 0,"),
        ([[1, 0]], "a single person, 0. .* `orient='items'"),
        ([[1, None], [None, 0], [None, None]], "none of the 3 people answered two items"),
        ([[1, 1], [1, 1]], "all 4 responses are right"),
        ([[0, 0], [None, 0]], "all 3 responses are wrong"),
    ],
)
def test_what_says_nothing(table, sentence):
    with pytest.raises(DesignError, match=f"the data: .*{sentence}"):
        check_usable(Responses.from_wide(table))


def test_what_says_something():
    check_usable(Responses.from_wide([[1, 0], [None, 0]]))
