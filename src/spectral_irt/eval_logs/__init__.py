"""Logs of programs that evaluate language models, read without those programs: one module for each.

A log has the scores of a model's answers to the samples of a benchmark by one metric or several. `log.py` has what
every reader returns, and knows which reader a file is for."""
