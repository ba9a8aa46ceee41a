"""Do the items measure one thing: residual correlations of pairs, contrasts, and the variance explained."""
