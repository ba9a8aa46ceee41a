"""Logs of programs that evaluate language models, read without those programs: one module for each.

A log says which model answered which sample of which benchmark, how often, and how the answer was scored by one metric
or several. `log.py` has what every reader returns, and knows which reader a file is for.
"""
