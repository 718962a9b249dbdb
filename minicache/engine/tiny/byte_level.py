"""`ByteTokenizer` as a tokenizer.json."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from minicache.text.tokenizer import ByteTokenizer


def byte_tokenizer() -> Tokenizer:
    """`ByteTokenizer` as a tokenizer.json: byte-level BPE that has nothing to merge, so that any tool can read it."""
    vocabulary = {letter: byte for byte, letter in enumerate(byte_letters())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    control = sorted(ByteTokenizer.CONTROL, key=ByteTokenizer.CONTROL.__getitem__)
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in control])
    return tokenizer


def byte_letters() -> list[str]:
    """The printable letter that byte-level BPE writes for each byte: itself if it prints, else one from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(256, 512))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]
