"""Everything given the score: the conditional likelihood, Newton's steps on it, its errors, and draws from it."""
