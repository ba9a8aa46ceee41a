"""The Markov chain on items, or on their thresholds, whose stationary distribution is the spectral estimate."""
