"""How often the checks of fit may alarm when the model holds: all of them together, hence each."""

from __future__ import annotations

TOGETHER = 0.05  # chance of any alarm at all when the model holds
# Misfitting items; items harder for the less able than for the more able; dependent items; a second dimension; people.
CHECKS = 5
EACH = TOGETHER / CHECKS  # Bonferroni: the checks are not independent, and this holds whatever ties them
