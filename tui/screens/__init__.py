"""The screens: the chooser, the player, and the dialogs over it."""
