"""`python -m spectral_irt` is the command `spectral-irt`."""

from spectral_irt.cli.main import run

if __name__ == "__main__":
    run()
