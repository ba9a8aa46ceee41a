"""What was answered: packed responses, and what their design allows."""

from spectral_irt.data.block import Block
from spectral_irt.data.finding import Finding
from spectral_irt.data.responses import Responses, as_responses

__all__ = ["Block", "Finding", "Responses", "as_responses"]
