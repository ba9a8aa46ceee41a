"""Answers drawn with given log odds, for tests that bend the model."""

import numpy as np


def drawn(rng, logit):
    """Right (1) and wrong (0) answers, people x items."""
    return (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(float)


def drawn_categories(rng, log_weights):
    """Categories whose probabilities are in proportion to the exponentials along the last axis."""
    p = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    p = np.cumsum(p / p.sum(axis=-1, keepdims=True), axis=-1)
    return (rng.random(p.shape[:-1])[..., None] > p[..., :-1]).sum(axis=-1).astype(float)
