"""Items one by one: classical statistics, options, slopes."""
