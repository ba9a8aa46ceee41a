"""Small bundled tables."""

from spectral_irt.datasets.bundled import (
    load_lsat,
    load_quiz,
    load_writing,
    log_texts,
    lsat_text,
    quiz_files,
    writing_file,
)

__all__ = ["load_lsat", "load_quiz", "load_writing", "log_texts", "lsat_text", "quiz_files", "writing_file"]
