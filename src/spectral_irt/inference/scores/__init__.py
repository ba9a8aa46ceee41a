"""What scores are good for: reliability, cut scores, equating."""
