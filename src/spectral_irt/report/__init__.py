"""One HTML file that says it all, offline: `study.report("report.html")`, `fit --report`."""
