"""What was answered: packed responses, and what their design allows."""

from spectral_irt.data.arrays import as_responses
from spectral_irt.data.block import Block
from spectral_irt.data.finding import Finding
from spectral_irt.data.responses import Responses

OrderedResponses = Responses  # its name before right and wrong became the case of one threshold

__all__ = ["Block", "Finding", "OrderedResponses", "Responses", "as_responses"]
