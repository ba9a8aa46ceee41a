"""Does the model fit: items, persons, raters, and the checks in a sentence."""
