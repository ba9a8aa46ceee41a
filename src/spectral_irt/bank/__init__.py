"""A calibration kept: saved, anchored to, linked, rescaled, updated, exported."""

from spectral_irt.bank.bank import Bank, DataSet
from spectral_irt.bank.build import to_bank
from spectral_irt.bank.equating import Equating, equate
from spectral_irt.bank.linking import Link, link
from spectral_irt.bank.update import update
from spectral_irt.estimators.anchored import AnchoredRasch, anchored_fit

load = Bank.load

__all__ = [
    "AnchoredRasch",
    "Bank",
    "DataSet",
    "Equating",
    "Link",
    "anchored_fit",
    "equate",
    "link",
    "load",
    "to_bank",
    "update",
]
