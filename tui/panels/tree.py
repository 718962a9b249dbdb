"""The radix tree: every node with the tokens on the way to it."""

from ..model.rows import TreeModel
from .branches import Branches


class Tree(Branches):
    """Rows are nodes."""

    HELP = """\
# Radix tree

Every **node**: its number, the blocks it holds, how many requests hold a lock on it, and its text. A node hangs below
the node whose text comes before. When a prompt parts with a node half-way, the node is **split**; when room is
needed, the
**leaf** that was used least recently goes, and its parent may be a leaf then. What is locked cannot go.

`up` and `down` move, `enter` explains the node.
"""

    def model(self) -> TreeModel:
        model = self.player.tree()
        self.entitle("Radix tree", f"{len(model.rows):,} nodes" if len(model.rows) != 1 else "1 node")
        return model
