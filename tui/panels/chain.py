"""The hash chain: every findable block below the block whose hash its own hash contains."""

from ..model.rows import ChainModel
from .branches import Branches


class Chain(Branches):
    """Rows are hashes."""

    HELP = """\
# Hash chain

Every block that **can be found**, in use or cached: the first digits of its hash, its number, its sign and how many
share it, and the text it holds. A block hangs below its parent: its hash is computed from the parent's hash and its own
tokens, so two requests share a row only if **everything** before is the same too. Where two prompts part, the chain
branches. A long run without a branch is folded.

`up` and `down` move, `enter` explains the block.
"""

    def model(self) -> ChainModel:
        self.entitle("Hash chain", f"{len(self.player.view.hashes):,} can be found")
        return self.player.chain()
