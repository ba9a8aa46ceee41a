"""`spectral-irt app`: the commands on a local page."""

from __future__ import annotations

from typing import Annotated

from spectral_irt.cli.help import with_options
from spectral_irt.cli.options import own
from spectral_irt.errors import OptionError


@with_options()
def app(
    port: Annotated[int, own(metavar="NUMBER", min=0, max=65535, help="Port; a free one by default.")] = 0,
    browser: Annotated[bool, own("--browser/--no-browser", help="Open the page in a browser (default).")] = True,
) -> None:
    """A page on this machine that does the work of check, fit and score, without a terminal.

    Drop a CSV file or a workbook, see what was recognized in it and correct
    that, read what is odd, run, read the report, download tables, workbook and
    bank, and score further people with the bank. Several files can be open, each
    in its tab.

    The page is for this machine alone and asks for the address that is shown
    here, with its token. Nothing is sent anywhere, and when the command ends
    nothing is kept.

    \b
    Examples
      spectral-irt app
      spectral-irt app --port 8050 --no-browser
    """
    try:
        import python_multipart  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise OptionError(
            f'the page needs {error.name}, which is not installed: pip install "spectral-irt[app]"'
        ) from None
    from spectral_irt.app.server import serve

    serve(port=port, browser=browser, say=lambda text: print(text, flush=True))
