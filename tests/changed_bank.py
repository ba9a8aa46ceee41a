"""Banks for tests: of answers, and with some of their fields changed, wherever they keep them."""

from dataclasses import fields, replace
from typing import Any

from spectral_irt import SpectralRasch
from spectral_irt.bank import Bank
from spectral_irt.bank.evidence import Evidence
from spectral_irt.calibration import Calibration

OF_EVIDENCE = {each.name for each in fields(Evidence)}
OF_CALIBRATION = {each.name for each in fields(Calibration)}


def bank_of(responses: Any, **options: Any) -> Bank:
    return Bank.from_fit(SpectralRasch(**options).fit(responses), responses)


def changed(bank: Bank, **changes: Any) -> Bank:
    evidence = {name: value for name, value in changes.items() if name in OF_EVIDENCE}
    calibration = {name: value for name, value in changes.items() if name in OF_CALIBRATION}
    rest = {name: value for name, value in changes.items() if name not in OF_EVIDENCE | OF_CALIBRATION}
    made, kept = bank.calibration.replace(**calibration), replace(bank.evidence, **evidence)
    return replace(bank, calibration=made, evidence=kept, **rest)
