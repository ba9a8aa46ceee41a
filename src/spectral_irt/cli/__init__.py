"""Thin commands: read, fit, write, show. What they compute is in the other rooms."""
