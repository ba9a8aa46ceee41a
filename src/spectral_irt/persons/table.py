"""The persons as columns of a table."""

from __future__ import annotations

from spectral_irt.persons.abilities import Abilities
from spectral_irt.persons.residuals import MeanSquares
from spectral_irt.responses import Responses
from spectral_irt.responses.block import Ints
from spectral_irt.tables import Columns


def person_columns(responses: Responses, found: Abilities, fits: MeanSquares, most: Ints | None = None) -> Columns:
    """`person, n, score, ability, se, extreme, infit, outfit, infit_z, outfit_z`.

    After the score the highest that each could have, where that is not n.
    """
    return {
        "person": responses.users,
        "n": found.n,
        "score": found.score,
        **({} if most is None else {"most": most}),
        "ability": found.ability,
        "se": found.se,
        "extreme": found.extreme,
        "infit": fits.infit,
        "outfit": fits.outfit,
        "infit_z": fits.infit_z,
        "outfit_z": fits.outfit_z,
    }
