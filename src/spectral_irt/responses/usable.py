"""Can anything at all be estimated from these responses? The questions to ask before any estimator runs."""

from __future__ import annotations

from spectral_irt.errors import DesignError, listed, option
from spectral_irt.responses.responses import Responses


def check_usable(responses: Responses) -> None:
    """Nothing when the responses can say which item is harder; otherwise a `DesignError` that says why not.

    >>> check_usable(Responses.from_wide([[1, 0], [0, 1]]))
    >>> check_usable(Responses.from_wide([[1], [0]]))
    Traceback (most recent call last):
    ...
    spectral_irt.errors.DesignError: the data: there is a single item, 0, and nothing to compare it with. ...
    """
    reason = _why_unusable(responses)
    if reason:
        raise DesignError(f"{responses.source}: ", reason)


def _why_unusable(responses: Responses) -> str | None:
    if responses.n_responses == 0:
        return "there is no response at all, only missing ones. Check what was read as missing."
    if responses.n_items == 1:
        return (
            f"there is a single item, {listed(responses.items)}, and nothing to compare it with. A calibration needs "
            "two items or more; check the separator of the file, and whether the table is long ("
            + option("format", "long")
            + ")."
        )
    if responses.n_users == 1:
        return (
            f"there is a single person, {listed(responses.users)}. A calibration needs answers from several people; if "
            "a row of the table is an item, say " + option("orient", "items") + "."
        )
    mixed = responses.kinds_of_people[-1]
    if not responses.kinds_of_people[2:].any():
        return (
            f"none of the {responses.n_users:,} people answered two items, so no two items can be compared. Check "
            "that the column of people's labels names people, not answers."
        )
    n_right = int(responses.item_scores.sum())
    if n_right in (0, responses.n_responses):
        what = "right" if n_right else "wrong"
        return (
            f"all {responses.n_responses:,} responses are {what}, so no item is harder than another. Check how the "
            "answers were scored, and that the other kind was not dropped on the way."
        )
    if not mixed:
        return (
            f"every one of the {responses.n_users:,} people has all answers right or all wrong, so nobody found one "
            "item harder than another. Check how the answers were scored."
        )
    return None
