"""Pictures of an analysis: displays, each with `frame()`, its table, and `plot()`, its picture."""
