"""The closed lists of `--json`: the layers that can cause a loss, and the kinds of loss.

`docs/reference/diff.md` has both as tables; a test compares them.
"""

from enum import StrEnum


class Layer(StrEnum):
    """The part of the system that made the difference."""

    payload = "payload"
    template = "template"
    template_kwargs = "template-kwargs"
    renderer = "renderer"
    tokenizer = "tokenizer"
    engine = "engine"
    placement = "placement"
    hosted_rule = "hosted-rule"
    none = "none"


LAYERS: dict[Layer, str] = {
    Layer.payload: "the client or a gateway sent different JSON",
    Layer.template: "the chat template wrote equal JSON differently",
    Layer.template_kwargs: "an argument of the chat template changed",
    Layer.renderer: "the engine's code around the template wrote equal JSON differently",
    Layer.tokenizer: "equal text became different tokens",
    Layer.engine: "the tokens are equal, and the engine did not read them or should not have read them",
    Layer.placement: "the tokens are equal, and were not cached on this server at this time",
    Layer.hosted_rule: "a rule of the vendor",
    Layer.none: "the requests differ, and nothing is lost",
}


class Kind(StrEnum):
    """What happened."""

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
    Kind.nonce: "a random id in a part that every turn repeats",
    Kind.clock: "a time or a date",
    Kind.counter: "a count, a checkbox, or some lines of a list",
    Kind.moved_block: "a text that moved to a later message",
    Kind.retrieval_in_prefix: "retrieved text before the conversation",
    Kind.history_rewrite: "old messages shortened, removed or inserted",
    Kind.window_shift: "the oldest messages dropped",
    Kind.compaction: "several messages replaced by a summary",
    Kind.new_content: "the two requests ask different things",
    Kind.side_request: "a new prompt that repeats the conversation",
    Kind.branch: "an earlier turn changed",
    Kind.prompt_edit: "the system prompt or a tool changed",
    Kind.image_replaced: "an image replaced by text or by another image",
    Kind.tool_order: "the same tools in a different order",
    Kind.key_order: "the keys of an object in a different order",
    Kind.set_order: "a list whose order has no meaning, in a different order",
    Kind.tool_set_changed: "tools added or removed",
    Kind.reserialised: "the same JSON written differently",
    Kind.double_encoded: "JSON as text inside JSON",
    Kind.parts: "the same text, whole or in parts",
    Kind.null: "null, empty or absent",
    Kind.ids: "ids of tool calls",
    Kind.cache_control: "a mark for the cache of a hosted API",
    Kind.not_rendered: "a field that no prompt shows",
    Kind.template_asymmetry: "the template writes a turn differently in a later request",
    Kind.template_clock: "the template writes the time",
    Kind.template_arguments: "an argument of the template changed",
    Kind.hoist: "a later system message moved to the front",
    Kind.trim: "white space removed at the ends of a text",
    Kind.retokenised: "the same text in different tokens",
    Kind.double_bos: "the first token twice",
    Kind.normaliser: "two Unicode forms of the same text",
    Kind.seam: "the last token merged with the text after it",
    Kind.namespace: "a different salt, adapter or extra key",
    Kind.identical: "the two prompts are equal",
    Kind.wrong_reuse: "tokens reused across a key that separates them",
    Kind.skips_reading: "a request that does not read the cache",
    Kind.engine_unit: "the engine reuses only whole units",
    Kind.placement: "the prefix is cached on another server",
    Kind.lifetime: "the prefix was evicted, or not cached yet",
    Kind.hosted_rule: "a rule of the vendor",
    Kind.measurement: "a misleading figure",
}
EXPECTED = {Kind.compaction, Kind.side_request, Kind.branch}  # often intended: the report says so
