"""Calibration where the answers are: a database adds up, and only numbers per item travel."""
