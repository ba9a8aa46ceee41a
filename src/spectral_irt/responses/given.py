"""Responses out of what is given: a packed file, a dataframe, an array, or responses already."""

from __future__ import annotations

import os
from typing import Any

from spectral_irt.errors import ReadError
from spectral_irt.responses.responses import Responses


def open_responses(path: str | os.PathLike[str]) -> Responses:
    """The responses of a packed file, made by `Responses.save` or `spectral-irt pack`.

    Answers are mapped from the file, not read into memory; checksums are compared. Ordered responses come back as such.

    Raises
    ------
    ReadError
        Where the file is damaged, cut off, or from a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "answers.packed")
    >>> Responses.from_wide([[1, 0], [0, 1]]).save(file)
    >>> open_responses(file).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    from spectral_irt.responses.packed import open_packed

    return open_packed(path)


def as_responses(data: Any, *, threshold: float | None = None) -> Responses:
    """What an estimator's `fit` makes of its argument: Responses as they are, a dataframe as `responses_from_frame`
    reads it, long or wide, and anything else as a wide table."""
    if isinstance(data, Responses):
        return data
    if isinstance(data, str | bytes):
        raise ReadError(
            f"fit takes responses, an array or a dataframe, not the text {data!r}; "
            "read a file with spectral_irt.read_responses(path) first."
        )
    from spectral_irt.responses.arrays import is_frame
    from spectral_irt.responses.read import options_going_to, responses_from_frame

    if not is_frame(data):
        with options_going_to("spectral_irt.Responses.from_wide, and what it returns to fit"):
            return Responses.from_wide(data, threshold=threshold)
    with options_going_to("spectral_irt.responses_from_frame, and what it returns to fit"):
        return responses_from_frame(data, threshold=threshold)
