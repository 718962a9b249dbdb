"""The text that `tiny` learns from: documents written for it by hand, and documents composed of their pieces.

    corpus/prose/*.txt      documents, separated by lines of three hyphens
    corpus/chats/topics.txt questions (`?`) and answers (`!`) by topic; systems.txt and rules.txt make system prompts
    corpus/held_out/*.txt   prose and conversations that no training document contains a sentence of

A document is a list of token ids. `Sampler` draws any number of documents: prose as it is; conversations in ChatML with
random questions, answers and system prompts; sentences that count blocks, with the right numbers.
"""

import random
from collections.abc import Sequence
from pathlib import Path

from minicache.text.byte_tokenizer import ByteTokenizer

CORPUS = Path(__file__).parent / "corpus"
END_OF_TEXT = "<|endoftext|>"
LEADS = ("", "", "", "Please tell me: ", "I have a question. ", "One more question. ", "Just briefly: ", "For a talk: ")

Topic = tuple[list[str], list[str]]  # questions, answers
Turn = tuple[str, str]  # role, content


def encode(text: str) -> list[int]:
    """Token ids of a document, with the token that ends it."""
    return ByteTokenizer().encode(text + END_OF_TEXT)


def read_documents(path: Path) -> list[str]:
    """The documents of a file, each paragraph on one line."""
    documents = path.read_text(encoding="utf-8").split("\n---\n")
    return ["\n\n".join(" ".join(part.split()) for part in document.strip().split("\n\n")) for document in documents]


def read_topics(path: Path) -> list[Topic]:
    """Topics, each with its ways to ask and its answers."""
    topics = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.splitlines()
        topics.append(([x[2:] for x in lines if x[0] == "?"], [x[2:] for x in lines if x[0] == "!"]))
    return topics


def chatml(turns: Sequence[Turn]) -> str:
    """A conversation as the chat template writes it."""
    return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)


def held_out() -> dict[str, list[str]]:
    """The documents that are never trained on: `prose`, and `chat` in ChatML."""
    chats = []
    for text in (CORPUS / "held_out" / "chats.txt").read_text(encoding="utf-8").strip().split("\n---\n"):
        chats.append(chatml([(role, content) for role, content in (line.split(": ", 1) for line in text.splitlines())]))
    return {"prose": read_documents(CORPUS / "held_out" / "prose.txt"), "chat": chats}


def training_prose() -> list[str]:
    return [document for path in sorted((CORPUS / "prose").glob("*.txt")) for document in read_documents(path)]


class Sampler:
    """Draws training sequences; the same seed draws the same sequences."""

    def __init__(self, seed: int, prose_share: float = 0.42) -> None:
        self.random = random.Random(seed)
        self.prose_share = prose_share
        self.prose = training_prose()
        self.topics = read_topics(CORPUS / "chats" / "topics.txt")
        self.systems = (CORPUS / "chats" / "systems.txt").read_text(encoding="utf-8").splitlines()
        self.rules = (CORPUS / "chats" / "rules.txt").read_text(encoding="utf-8").splitlines()

    def row(self, length: int) -> list[int]:
        """Exactly `length` tokens: documents one after the other, the first of which may start at a later sentence.

        Half of the long rows are one conversation with a long system prompt, so that distant tokens matter.
        """
        if length > 1024 and self.random.random() < 0.5:
            tokens = encode(self.chat(self.random.randrange(length // 2, length - 512)))
        else:
            tokens = encode(self._from_some_sentence(self.document()))
        while len(tokens) < length:
            tokens += encode(self.document())
        return tokens[:length]

    def document(self) -> str:
        kind = self.random.random()
        if kind < self.prose_share:
            return self.random.choice(self.prose)
        return self.chat() if kind < 0.97 else self.counting()

    def chat(self, system_length: int = 0) -> str:
        """A conversation of one to four questions, mostly with a system prompt; its length in bytes can be given."""
        turns: list[Turn] = []
        if system_length or self.random.random() < 0.8:
            turns.append(("system", self.system_prompt(system_length)))
        for _ in range(self.random.choice((1, 1, 2, 2, 3, 4))):
            if self.random.random() < 0.05:
                question, answer = self.count()
            else:
                questions, answers = self.random.choice(self.topics)
                question, answer = (
                    self.random.choice(LEADS) + self.random.choice(questions),
                    self.random.choice(answers),
                )
                if self.random.random() < 0.15:
                    question = question.lower().rstrip("?.")
            turns += [("user", question), ("assistant", answer)]
        return chatml(turns)

    def system_prompt(self, length: int) -> str:
        """One line, sometimes with rules; with a `length`, rules and passages up to that many characters."""
        lines = [self.random.choice(self.systems)]
        while len("\n".join(lines)) < length:
            lines.append(self.random.choice(self.rules if self.random.random() < 0.7 else self.prose))
        if not length and self.random.random() < 0.3:
            lines += self.random.sample(self.rules, self.random.randint(1, 4))
        return "\n".join(lines)[: length or None]

    def counting(self) -> str:
        return " ".join(f"{question} {answer}" for question, answer in (self.count() for _ in range(3)))

    def count(self) -> Turn:
        """A question about the number of blocks, and the answer."""
        size = self.random.choice((4, 8, 16, 16, 16, 32))
        total = self.random.choice((self.random.randint(20, 200), self.random.randint(3, 60) * 50, 2400))
        shared = self.random.randrange(total)
        full, left = divmod(total, size)
        return self.random.choice(
            (
                (
                    f"How many full blocks has a prompt of {total} tokens with a block size of {size}?",
                    f"It has {full} full blocks and {left} tokens in a partial block.",
                ),
                (
                    f"Two prompts of {total} tokens differ at token {shared}. How many blocks of {size} can be reused?",
                    f"{shared // size} of {full} blocks can be reused.",
                ),
                (
                    f"A request arrives with {total} tokens, and {shared} of them are cached. How many are computed?",
                    f"{total - shared} tokens are computed.",
                ),
            )
        )

    def _from_some_sentence(self, document: str) -> str:
        starts = [0] + [i + 2 for i in range(len(document) - 80) if document[i : i + 2] in (". ", "\n\n")]
        return document if self.random.random() < 0.5 else document[self.random.choice(starts) :]
