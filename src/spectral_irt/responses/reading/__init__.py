"""The inside of `read_responses`: files -> tables in pieces -> codes -> packed blocks.

These modules import polars at the top; `spectral_irt.responses.read` imports them only when something is read.
"""
