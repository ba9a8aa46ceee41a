"""Addresses of databases in messages, and what asking them needs."""

from __future__ import annotations

from urllib.parse import urlsplit

from spectral_irt.errors import DatabaseError


def without_password(uri: str) -> str:
    """The address as it may be shown.

    >>> without_password("postgresql://ann:secret@host:5432/tests?password=secret&sslmode=require")
    'postgresql://ann@host:5432/tests'
    """
    parts = urlsplit(uri)
    user, at, host = parts.netloc.rpartition("@")
    return (
        f"{parts.scheme}://{user.partition(':')[0]}{at}{host}{parts.path}" if parts.netloc or at else uri.split("?")[0]
    )


def needed(import_error: ImportError) -> DatabaseError:
    """What to install."""
    return DatabaseError(
        f"this needs a package that is not there ({import_error.name}); install it with "
        'pip install "spectral-irt[database]".'
    )
