"""One calibration from several sites that may not pool their answers: rounds of sums."""
