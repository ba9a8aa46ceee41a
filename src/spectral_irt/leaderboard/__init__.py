"""An honest leaderboard of models from who answered which prompt right."""

from spectral_irt.leaderboard.board import Leaderboard

__all__ = ["Leaderboard"]
