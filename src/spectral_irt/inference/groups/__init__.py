"""Groups of persons: tests of the model, DIF, means, clusters and weights."""
