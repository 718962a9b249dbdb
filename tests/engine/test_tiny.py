"""The trained model that is in the package: it is small, it is what its config says, and it knows its subject."""

import math
from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F

from minicache.engine import Engine, EngineConfig, SamplingParams
from minicache.engine.model import Model
from minicache.engine.models.loader import load_eos_tokens, load_model
from minicache.engine.models.store import TINY_FOLDER
from minicache.engine.tiny.corpus import CORPUS, held_out, training_prose
from minicache.text.byte_tokenizer import ByteTokenizer
from minicache.text.template import ChatTemplate
from minicache.text.tokenizer import HubTokenizer
from tests.engine.small_models import require_same_logits, run_chunks

# Written for this test; no file of the corpus has a sentence of it.
UNSEEN = (
    "A prompt that begins with a new number each time can never be found in the cache. The engine compares its tokens "
    "with what it has kept, and the first one is already different. If the same number stands in the last message, "
    "all blocks before it are still equal, and only the last few tokens must be computed."
)


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model(TINY_FOLDER)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(EngineConfig(model=TINY_FOLDER))


def bits(model: Model, tokens: Sequence[int]) -> torch.Tensor:
    """How many bits each token but the first costs: `(len(tokens) - 1,)`."""
    logits = run_chunks(model, tokens, [min(512, len(tokens) - start) for start in range(0, len(tokens), 512)], 16)
    return F.cross_entropy(logits[:-1], torch.tensor(tokens[1:]), reduction="none") / math.log(2)


def ask(engine: Engine, question: str, system: str | None = None) -> tuple[str, str | None]:
    """The greedy answer of a chat, and why it ended."""
    messages = [{"role": "system", "content": system}] if system else []
    prompt = ChatTemplate.from_folder(TINY_FOLDER).render([*messages, {"role": "user", "content": question}])
    [output] = engine.generate([prompt], SamplingParams(max_tokens=250, temperature=0.0))
    return output.text, output.finish_reason


def test_it_is_small(model: Model) -> None:
    assert sum(path.stat().st_size for path in TINY_FOLDER.iterdir()) <= 4_000_000
    assert model.config.num_heads != model.config.num_kv_heads
    assert model.config.tie_embeddings
    assert model.config.max_positions == 4096


def test_one_byte_is_one_token() -> None:
    hub, by_hand = HubTokenizer(TINY_FOLDER), ByteTokenizer()
    text = "".join(map(chr, range(0x250))) + "\N{GRINNING FACE}"
    assert hub.encode(text) == list(text.encode()) == by_hand.encode(text)
    chat = ChatTemplate.from_folder(TINY_FOLDER).render([{"role": "user", "content": "Zoë"}])
    assert hub.encode(chat) == by_hand.encode(chat)
    assert hub.decode(hub.encode(chat), keep_control=True) == chat
    assert hub.vocab_size == by_hand.vocab_size
    assert hub.eos_ids == by_hand.eos_ids == load_eos_tokens(TINY_FOLDER)


def test_logits_are_those_of_transformers(model: Model) -> None:
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(TINY_FOLDER, dtype=torch.float32).eval()
    tokens = ByteTokenizer().encode(UNSEEN)
    with torch.inference_mode():
        expected = theirs(torch.tensor([tokens])).logits[0]
    require_same_logits(run_chunks(model, tokens, [len(tokens)], 16), expected, model)


def test_logits_are_those_of_the_decoder_that_was_trained(model: Model) -> None:
    from minicache.engine.tiny.train import load_decoder

    tokens = ByteTokenizer().encode(UNSEEN)
    with torch.inference_mode():
        expected = load_decoder(TINY_FOLDER)(torch.tensor([tokens]))[0]
    require_same_logits(run_chunks(model, tokens, [len(tokens)], 16), expected, model)


def test_bits_per_byte_of_unseen_text(model: Model) -> None:
    """A model that knows nothing needs 8 bits, one that knows how often each letter comes about 4.2."""
    assert bits(model, ByteTokenizer().encode(UNSEEN)).mean() < 2.1  # 1.80 measured


@pytest.mark.nightly
def test_the_far_end_of_the_context_is_as_good_as_the_beginning(model: Model) -> None:
    """The same 256 bytes after 256 others and after 3,840 others: the second must not cost more."""
    before = "\n\n".join(training_prose()).encode()[:3840]
    near, far = [], []
    for document in held_out()["prose"][:3]:
        text = document.encode()[:256]
        near.append(bits(model, list(before[-256:] + text))[-256:].mean())
        far.append(bits(model, list(before + text))[-256:].mean())
    assert sum(far) / 3 < sum(near) / 3 + 0.15


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Prefix caching is a way to", {"reuse"}),
        ("The KV cache holds", {"keys", "values"}),
        ("A timestamp at the top of a system prompt", {"cache"}),
    ],
)
def test_it_completes_a_sentence(engine: Engine, prompt: str, words: set[str]) -> None:
    [output] = engine.generate([prompt], SamplingParams(max_tokens=120, temperature=0.0))
    assert words <= set(output.text.replace(".", " ").replace(",", " ").split()), output.text


@pytest.mark.parametrize(
    ("question", "word"),
    [("What is prefix caching?", "prompt"), ("What is a block?", "tokens"), ("What is a radix tree?", "tree")],
)
@pytest.mark.parametrize("system", [None, "You are a helpful assistant."])
def test_it_answers_in_a_chat_and_ends(engine: Engine, question: str, word: str, system: str | None) -> None:
    text, reason = ask(engine, question, system)
    assert word in text
    assert reason == "stop"


def test_nothing_held_out_is_trained_on() -> None:
    """No sentence of the held-out documents, nor of this file's paragraph, is in a training file."""
    trained = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in CORPUS.glob("[pc]*/*.txt"))
    for document in [UNSEEN, *(text for texts in held_out().values() for text in texts)]:
        for line in document.splitlines():
            for sentence in line.replace("? ", ". ").removesuffix("<|im_end|>").split(". "):
                assert len(sentence) < 30 or sentence not in trained, sentence
