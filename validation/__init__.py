"""The validation battery: numbers of other programs, of books, of closed forms and of simulation beside ours.

`python -m validation` computes every row again and writes `docs/validation/`. A case says what is compared, on which
data, with whom, how close it has to be and why (`rows.py`); each `cases_*.py` is a table of cases; `lab.py` has the
data and fits each of them once.
"""
