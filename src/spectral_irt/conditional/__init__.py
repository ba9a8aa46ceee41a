"""Everything given the score: the conditional likelihood, Newton's steps on it, its errors, and draws from it.

`Likelihood` (likelihood.py) is the front door. It puts each block of people into rows, which are evaluated at
thresholds and summed into a `Point`. Which rows, `Likelihood` decides from the data:

| rows | people | how |
|---|---|---|
| `SharedRows` (information.py) | right and wrong answers, many people with one set of items | exact sums, set by set |
| `SeriesRows` (series_binary.py) | right and wrong answers, other sets | a series in 1 / N; short rows exact |
| `TableRows` (series_tables.py) | ordered answers, few items for the people | the series by tables over abilities |
| `PatternRows` (information.py) | ordered answers, many items for the people | pattern by pattern, exact or by series |

`exact.py` has the exact sums that the others fall back on. `ThresholdRows` is none of these, but the matrix people x
thresholds that each of them can be asked for. `newton.py` takes the steps, `penalized.py` adds prior and design.
"""
