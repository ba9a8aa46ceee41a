"""What was answered: packed responses, ways to read them, and what their design allows."""

from spectral_irt.responses.block import Block
from spectral_irt.responses.findings import Finding
from spectral_irt.responses.given import as_responses
from spectral_irt.responses.read import read_responses, responses_from_frame
from spectral_irt.responses.responses import Responses

__all__ = ["Block", "Finding", "Responses", "as_responses", "read_responses", "responses_from_frame"]
