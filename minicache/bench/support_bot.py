"""The system prompt of a support bot, with any exact number of tokens.

It is the help desk of a shop: an introduction, then as many handbook articles as needed. The text is fixed, so a prompt
of the same length and tokenizer is the same everywhere.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import count, islice

from minicache.core.errors import InvalidArgument

INTRODUCTION = (
    "You are the support assistant of Heron & Finch, a shop for walking, camping and cycling gear. Answer in one or "
    "two friendly sentences. Use only the handbook below. If the handbook does not answer a question, say so and offer "
    "to pass it on to a colleague. Never promise a refund that the handbook does not grant, never guess the state of "
    "an order, and never repeat a customer's address or card number. Handbook:"
)
QUESTION = "Where is my parcel?"

PRODUCTS = (
    "tents", "rain jackets", "walking boots", "bicycle lights", "gas stoves", "sleeping bags", "water filters",
    "rucksacks", "head torches", "panniers", "walking poles", "insulated flasks", "child seats", "maps",
)  # fmt: skip
ARTICLES = (
    "Orders for {product} placed before {hour}:00 leave the warehouse the same working day; later ones leave on the "
    "next. A parcel travels {days} working days, and the tracking page is updated each evening.",
    "Unused {product} can be sent back within {weeks} weeks. The customer prints the label from the account page, and "
    "the money is returned to the card within {days} working days of the parcel's arrival.",
    "The guarantee on {product} covers faults of material for {months} months. Wear, cuts and wrong washing are not "
    "covered; offer a repair at {price} euros instead, and mention that it takes about {weeks} weeks.",
    "If {product} arrive damaged, ask for one photograph of the parcel and one of the damage. Send a replacement at "
    "once when the value is below {price} euros; above that, a colleague decides within {days} working days.",
    "Shipping of {product} is free from {price} euros. Below that it costs {days} euros; islands add {weeks} euros. "
    "Express delivery is not offered for this group of articles.",
    "Customers who ask which {product} to choose get at most two suggestions: the most popular one, and the one that "
    "is best rated by people who bought it at least {months} months ago.",
)
QUESTIONS = (
    "When will my {product} arrive?",
    "May I return the {product} I bought in March?",
    "One of my {product} is broken. What now?",
    "Is shipping of {product} free?",
    "Which {product} do most people buy?",
)
PADDING = (" Thanks", " and", " a", ".", "!", "a", "1")  # what fills the last tokens when the next word has too many


def system_prompt(length: Callable[[str], int], target: int, introduction: str = INTRODUCTION) -> str:
    """A system prompt whose `length` is exactly `target`. It is found by search, because the tokens of parts do not add
    up.

    Without an `introduction` it has only handbook articles. `length` returns the tokens of the text that the prompt
    becomes part of, such as a rendered chat. Raises `InvalidArgument` if the target is too small, or if this tokenizer
    cannot reach it.
    """
    if length("") >= target:
        raise InvalidArgument(f"a prompt of {target} tokens is too short: the rest of the chat alone has {length('')}")
    words = list(islice(_words(introduction), target))  # a word is at least one token
    longest = bisect_right(range(len(words)), target, key=lambda n: length(" ".join(words[:n]))) - 1
    for num_words in range(longest, max(-1, longest - 20), -1):
        text = _pad(length, " ".join(words[:num_words]), target)
        if length(text) == target:
            return text
    raise InvalidArgument(f"found no prompt of exactly {target} tokens with this tokenizer")


def _words(introduction: str) -> Iterator[str]:
    """The words of the prompt, endlessly."""
    yield from introduction.split()
    for number in count(1):
        yield from f"({number}) {article(number)}".split()


def article(number: int) -> str:
    """Article number `number` of the handbook, which is endless."""
    return ARTICLES[number % len(ARTICLES)].format(
        product=PRODUCTS[number % len(PRODUCTS)],
        hour=9 + number % 8,
        days=2 + number % 5,
        weeks=2 + number % 6,
        months=6 * (1 + number % 6),
        price=15 + 10 * (number % 9),
    )


def question(number: int) -> str:
    """Question number `number`; all are different."""
    text = QUESTIONS[number % len(QUESTIONS)].format(product=PRODUCTS[number % len(PRODUCTS)])
    return f"{text} My order is {4711 + number}."


def _pad(length: Callable[[str], int], text: str, target: int) -> str:
    """`text` and as much padding as fits, in steps of one token if a piece adds exactly one."""
    while (now := length(text)) < target:
        longer = [text + piece for piece in PADDING if now < length(text + piece) <= target]
        if not longer:
            break
        text = longer[0]
    return text
