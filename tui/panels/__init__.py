"""The panels: each draws one aspect of a player, and holds nothing of the run itself."""
