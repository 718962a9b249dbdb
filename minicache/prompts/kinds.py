"""The closed lists of `--json`: the layers that a loss can come from, and the kinds of loss.

`docs/reference/diff.md` prints the tables; a test compares the two.
"""

from enum import StrEnum


class Layer(StrEnum):
    """Who made the prompt differ."""

    payload = "payload"  # the client or a gateway sent other JSON
    template = "template"  # the chat template wrote equal JSON differently
    template_kwargs = "template-kwargs"  # an argument of the template changed
    renderer = "renderer"  # the engine's code around the template
    tokenizer = "tokenizer"  # equal text became other tokens
    engine = "engine"  # equal tokens, and the engine did not read them
    placement = "placement"  # equal tokens, but not where, or not when, they are cached
    hosted_rule = "hosted-rule"  # a vendor's rule
    none = "none"  # it looks different and costs nothing


class Kind(StrEnum):
    """What happened. One name for each row of the taxonomy, and one for each of those that a row draws together."""

    nonce = "nonce"
    clock = "clock"
    counter = "counter"
    moved_block = "moved_block"
    retrieval_in_prefix = "retrieval_in_prefix"
    history_rewrite = "history_rewrite"
    window_shift = "window_shift"
    compaction = "compaction"
    new_content = "new_content"
    side_request = "side_request"
    branch = "branch"
    prompt_edit = "prompt_edit"
    image_replaced = "image_replaced"
    tool_order = "tool_order"
    key_order = "key_order"
    set_order = "set_order"
    tool_set_changed = "tool_set_changed"
    reserialised = "reserialised"
    double_encoded = "double_encoded"
    parts = "parts"
    null = "null"
    ids = "ids"
    cache_control = "cache_control"
    not_rendered = "not_rendered"
    template_asymmetry = "template_asymmetry"
    template_clock = "template_clock"
    template_arguments = "template_arguments"
    hoist = "hoist"
    trim = "trim"
    retokenised = "retokenised"
    double_bos = "double_bos"
    normaliser = "normaliser"
    seam = "seam"
    namespace = "namespace"
    identical = "identical"
    wrong_reuse = "wrong_reuse"
    skips_reading = "skips_reading"
    engine_unit = "engine_unit"
    placement = "placement"
    lifetime = "lifetime"
    hosted_rule = "hosted_rule"
    measurement = "measurement"


WORDS: dict[Kind, str] = {
    Kind.nonce: "a random id in what all turns stand on",
    Kind.clock: "a time or a date",
    Kind.counter: "a number that counts, a box that was ticked, a list that changed by some lines",
    Kind.moved_block: "a block that moved to a later message",
    Kind.retrieval_in_prefix: "retrieved text before the conversation",
    Kind.history_rewrite: "old messages shortened, taken out or put in",
    Kind.window_shift: "the oldest messages dropped",
    Kind.compaction: "many messages became a summary",
    Kind.new_content: "the two ask different things",
    Kind.side_request: "a new prompt that retells the conversation",
    Kind.branch: "an earlier turn says something else",
    Kind.prompt_edit: "the system prompt or a tool says something else",
    Kind.image_replaced: "an image became text, or another image",
    Kind.tool_order: "the same tools in another order",
    Kind.key_order: "an object's keys in another order",
    Kind.set_order: "a list that is a set in another order",
    Kind.tool_set_changed: "tools came or went",
    Kind.reserialised: "the same JSON written differently",
    Kind.double_encoded: "JSON as a text inside JSON",
    Kind.parts: "one text, whole or in parts",
    Kind.null: "null, empty or absent",
    Kind.ids: "ids of calls",
    Kind.cache_control: "a mark for a hosted API's cache",
    Kind.not_rendered: "a field that no prompt shows",
    Kind.template_asymmetry: "the template writes a turn differently later on",
    Kind.template_clock: "the template prints the time",
    Kind.template_arguments: "an argument of the template changed",
    Kind.hoist: "late system text was moved to the front",
    Kind.trim: "space around a text was removed",
    Kind.retokenised: "the same text in other tokens",
    Kind.double_bos: "the first token twice",
    Kind.normaliser: "two Unicode forms of one text",
    Kind.seam: "the last token joined what follows it",
    Kind.namespace: "another salt, adapter or extra key",
    Kind.identical: "the two prompts are the same",
    Kind.wrong_reuse: "reuse that should not be",
    Kind.skips_reading: "a request that does not read the cache",
    Kind.engine_unit: "the engine reuses whole units only",
    Kind.placement: "the prefix is on another server",
    Kind.lifetime: "the prefix was gone, or not there yet",
    Kind.hosted_rule: "a vendor's rule",
    Kind.measurement: "a figure that misleads",
}
EXPECTED = {Kind.compaction, Kind.side_request, Kind.branch}  # often meant: the report says so
