"""What was answered: packed responses, and what their design allows."""

from spectral_irt.data.block import Block
from spectral_irt.data.builder import as_responses
from spectral_irt.data.responses import Responses
from spectral_irt.errors import Finding

__all__ = ["Block", "Finding", "Responses", "as_responses"]
