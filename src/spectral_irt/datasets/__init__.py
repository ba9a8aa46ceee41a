"""Small bundled tables."""

from spectral_irt.datasets.bundled import load_lsat, load_quiz, log_texts, lsat_text, quiz_files

__all__ = ["load_lsat", "load_quiz", "log_texts", "lsat_text", "quiz_files"]
