"""Published cache failures as small synthetic cases: two requests, A's cached answer, and the right verdict.

Tokens are bytes and blocks hold 16 of them, so that every figure can be counted by hand. The name of a case is its name
in the specification (`C01c`); the inputs and templates are the specification's, written in our own form.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from minicache.prompts.kinds import Kind, Layer

SYS = "You are a careful coding helper. Follow the house rules. Answer briefly."

Body = dict[str, Any]
Verdict = tuple[Layer, Kind, str | None, int | None, int, int]  # … path, offset, gain in tokens and in blocks


@dataclass(frozen=True)
class Case:
    """`lengths`, in tokens: of A's prompt, of A's prompt and answer, and of B's prompt."""

    name: str
    template: str
    a: Body
    b: Body
    lengths: tuple[int, int, int]
    lcp: int
    causes: tuple[Verdict, ...] = ()
    extends: bool = False
    generated: str = ""
    times: tuple[datetime, datetime] | None = None
    no_loss: bool = False


def say(system: str | None, *turns: str | Body, **more: Any) -> Body:
    """A body: a system prompt, then turns of user and assistant in alternation (or messages as they are)."""
    messages: list[Body] = [] if system is None else [{"role": "system", "content": system}]
    role = "user"
    for turn in turns:
        messages.append({"role": role, "content": turn} if isinstance(turn, str) else turn)
        role = "user" if messages[-1]["role"] == "assistant" else "assistant"
    return {"messages": messages, **more}


def call(name: str, arguments: Any, id: str = "call_1", **more: Any) -> Body:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        **more,
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }


def result(text: str, **more: Any) -> Body:
    return {"role": "tool", "content": text, **more}


def tool(name: str, parameters: Body | None = None) -> Body:
    usual = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    return {
        "type": "function",
        "function": {"name": name, "description": "x", "parameters": parameters or usual},
    }


def then(body: Body, *turns: str | Body, **changes: Any) -> Body:
    """The same conversation with turns appended, an assistant's first."""
    more = say(None, {"role": "assistant", "content": turns[0]}, *turns[1:]) if turns else {"messages": []}
    return {**body, "messages": [*body["messages"], *more["messages"]], **changes}


P, T, R = Layer.payload, Layer.template, Layer.renderer
HEAD = "messages[0].content"


def _c01(a: str, b: str, a_box: str, b_box: str) -> tuple[Body, Body]:
    first = say(f"client-tag: {a}\n{SYS}\n# Tasks\n{a_box} read a.py", "List the files.", "a.py b.py", "Open a.py")
    other = say(f"client-tag: {b}\n{SYS}\n# Tasks\n{b_box} read a.py", "List the files.", "a.py b.py", "Open a.py")
    return first, then(other, "done", "Next")


OLD, NEW = "v=2.1.7.97b; tag=97bd6;", "v=2.1.7.24c; tag=24c2d;"


def _c04() -> list[Case]:
    times = ("10:00:00.123", "10:00:41.872", "10:01:17.006", "10:02:58.540")
    bodies = []
    for number, time in enumerate(times):
        turns = [text for i in range(number) for text in (f"question {i}", f"answer {i}")]
        system = f"{SYS}\n<memory_meta generated=2026-03-01T{time}Z>\nkeep notes short"
        bodies.append(say(system, *turns, f"question {number}"))
    sizes, places = (228, 307, 386, 465), ((132, 113, 96, 6), (130, 111, 177, 11), (130, 111, 256, 16))
    return [
        Case(
            f"C04.{i}", "chatml", bodies[i], bodies[i + 1], (sizes[i], sizes[i], sizes[i + 1]), lcp,
            ((P, Kind.clock, HEAD, offset, tokens, blocks),),
        )
        for i, (lcp, offset, tokens, blocks) in enumerate(places)
    ]  # fmt: skip


def _window(first: int) -> list[str]:
    return [f"{'au'[i % 2 == 0]}{i}" for i in range(first, first + 5)]


LOOP = say(
    SYS, "Sum the repo",
    call("ls", '{"d": "."}', reasoning_content="I should look at the tree first."), result("a.py b.py"),
)  # fmt: skip
LOOP_2 = {
    "messages": [
        *LOOP["messages"],
        call("read", '{"f": "a.py"}', "call_2", reasoning_content="Two files. Read the first."),
        result("print(1)"),
    ]
}
ANSWERED = {
    "messages": [
        *LOOP_2["messages"],
        {"role": "assistant", "content": "It prints 1.", "reasoning_content": "Enough."},
        {"role": "user", "content": "Hi"},
    ]
}
DIGITS = "0123456789" * 6
MARK = {"cache_control": {"type": "ephemeral"}}
WEATHER = "messages[2].tool_calls[0].function.arguments"
PARAMETERS = {"type": "object", "properties": {"day": {"type": "string"}}, "additionalProperties": False}
REORDERED = {key: PARAMETERS[key] for key in ("type", "additionalProperties", "properties")}
ONE_TOOL = [tool("alpha")]


def _c22(id: str) -> Body:
    return say(
        SYS, "w", call("weather", '{"city": "Oslo"}', id), result("12C", tool_call_id=id),
        {"role": "assistant", "content": "cold"}, "ok",
    )  # fmt: skip


CASES = [
    Case("C01a", "chatml", *_c01(OLD, NEW, "[ ]", "[ ]"), (304, 304, 373), 39, ((P, Kind.nonce, HEAD, 20, 265, 17),)),
    Case(
        "C01b", "chatml", *_c01(OLD, OLD, "[ ]", "[x]"), (304, 304, 373), 137,
        ((P, Kind.counter, HEAD, 118, 167, 11),),
    ),
    Case(
        "C01c", "chatml", *_c01(OLD, NEW, "[ ]", "[x]"), (304, 304, 373), 39,
        ((P, Kind.nonce, HEAD, 20, 98, 6), (P, Kind.counter, HEAD, 118, 167, 11)),
    ),
    Case(
        "C03", "chatml", say(f"Now: 2026-03-01 10:00:07 UTC\n{SYS}", "hi"),
        say(f"Now: 2026-03-01 10:00:52 UTC\n{SYS}", "hi", "hello", "bye"), (183, 183, 252), 41,
        ((P, Kind.clock, HEAD, 22, 142, 9),),
    ),
    *_c04(),
    Case(
        "C06", "chatml-tools", say(SYS, "hi", tools=[tool("alpha"), tool("mu"), tool("zeta")]),
        say(SYS, "hi", "hello", "bye", tools=[tool("alpha"), tool("zeta"), tool("mu")]), (657, 657, 726), 310,
        ((P, Kind.tool_order, "tools[1].function.name", 0, 347, 22),),
    ),
    Case(
        "C07", "chatml-tools", say(SYS, "hi", tools=[tool("cal_add", PARAMETERS), tool("cal_list")]),
        say(SYS, "hi", "hello", "bye", tools=[tool("cal_add", REORDERED), tool("cal_list")]), (514, 514, 583), 208,
        ((P, Kind.key_order, "tools[0].function.parameters", 1, 306, 19),),
    ),
    Case(
        "C08", "think-strip", say(SYS, "Hi", chat_template_kwargs={"enable_thinking": False}),
        say(SYS, "Hi", "Hello!", "More", chat_template_kwargs={"enable_thinking": False}), (173, 189, 244), 154,
        ((T, Kind.template_asymmetry, None, None, 35, 2),), generated="Hello!<|im_end|>",
    ),
    Case(
        "C09", "think-strip", LOOP_2, ANSWERED, (528, 576, 507), 166,
        ((T, Kind.template_asymmetry, None, None, 410, 26),),
        generated="<think>\nEnough.\n</think>\n\nIt prints 1.<|im_end|>",
    ),
    Case("C09in", "think-strip", LOOP, LOOP_2, (347, 347, 528), 347, extends=True),
    Case("C09rec", "think-strip", ANSWERED, then(ANSWERED, "Hello.", "Hi again"), (507, 507, 582), 507, extends=True),
    Case(
        "C11", "chatml", say("Rules: be brief.", "one"),
        say("Rules: be brief.\n\n<left>950 tokens</left>", "one", "1", "two"), (99, 99, 189), 35,
        ((P, Kind.hoist, HEAD, 16, 64, 4),),
    ),
    Case(
        "C12", "date", say(SYS, "hi"), say(SYS, "hi", "hello", "bye"), (217, 217, 286), 70,
        ((T, Kind.template_clock, None, None, 147, 9),),
        times=(datetime(2026, 3, 1, 23, 59, 58), datetime(2026, 3, 2, 0, 0, 3)),
    ),
    Case(
        "C13", "tools-last-user", say(SYS, "one", tools=ONE_TOOL), say(SYS, "one", "1", "two", tools=ONE_TOOL),
        (338, 338, 403), 102, ((T, Kind.template_asymmetry, None, None, 236, 15),),
    ),
    Case(
        "C13b", "tools-only-if-user-last", say(SYS, "one", tools=ONE_TOOL),
        say(SYS, "one", "calling", result("ok"), tools=ONE_TOOL), (338, 338, 225), 102,
        ((T, Kind.template_asymmetry, None, None, 236, 15),),
    ),
    Case(
        "C14", "chatml", say(SYS, "plan it", "planned", "do it\n<reminder>mode is now build</reminder>"),
        say(SYS, "plan it", "planned", "do it", "done", "thanks\n<reminder>mode is now build</reminder>"),
        (271, 271, 342), 199, ((P, Kind.moved_block, "messages[3].content", 5, 72, 4),),
    ),
    Case(
        "C15", "chatml", say("Use the context.\n<ctx>Cats purr.</ctx>\nCite it.", "cats?"),
        say("Use the context.\n<ctx>Dogs bark.</ctx>\nCite it.", "cats?", "They purr.", "dogs?"), (132, 132, 208), 41,
        ((P, Kind.retrieval_in_prefix, HEAD, 22, 91, 6),),
    ),
    Case(
        "C15b", "chatml", say("Use the context.", "<ctx>Long doc</ctx>\ncats?"),
        say("Use the context.", "cats?", "They purr.", "<ctx>Long doc</ctx>\ndogs?"), (121, 121, 197), 63,
        ((P, Kind.moved_block, "messages[1].content", 0, 58, 4),),
    ),
    Case(
        "C16pre", "chatml", say(None, "hello there", "hi, how can I help?"),
        say(None, "Write a title for:\nUSER: hello there\nBOT: hi, how can I help?"), (113, 113, 111), 17,
        ((P, Kind.side_request, HEAD, 0, 86, 5),),
    ),
    Case(
        "C16suf", "chatml", say(None, "hello there", "hi, how can I help?"),
        say(None, "hello there", "hi, how can I help?", "Write a title for the chat above."), (113, 113, 174), 103,
        no_loss=True,
    ),
    Case(
        "C17", "chatml", say(SYS, *_window(0)), say(SYS, *_window(2)), (284, 284, 284), 120,
        ((P, Kind.window_shift, "messages[1].content", 1, 164, 10),),
    ),
    Case(
        "C18", "chatml-tools",
        say(
            SYS, "run", call("sh", '{"c": "ls"}'), result(DIGITS),
            {"role": "assistant", "content": "ok"}, "next",
        ),
        say(
            SYS, "run", call("sh", '{"c": "ls"}'), result(DIGITS[:20] + "...[cut 40]"),
            {"role": "assistant", "content": "ok"}, "next", "sure", "go",
        ),
        (437, 437, 475), 281, ((P, Kind.history_rewrite, "messages[3].content", 20, 156, 10),),
    ),
    Case(
        "C19", "chatml-tools", say(SYS, "w"), say(SYS, "w", call("weather", '{"city":"Oslo"}'), result("12C")),
        (153, 236, 320), 205, ((P, Kind.reserialised, WEATHER, 8, 31, 2),),
        generated='<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call><|im_end|>',
    ),
    Case(
        "C19str", "args-tojson", say(SYS, "w", call("weather", {"city": "Oslo"}), result("12C")),
        say(SYS, "w", call("weather", '{"city":"Oslo"}'), result("12C")), (321, 321, 326), 197,
        ((R, Kind.double_encoded, WEATHER, 0, 123, 8),),
    ),
    Case(
        "C20", "trim", say(SYS, "sing"), say(SYS, "sing", "la la \n", "more"), (156, 173, 226), 161,
        ((T, Kind.trim, "messages[2].content", 5, 12, 0),), generated="la la \n<|im_end|>",
    ),
    Case(
        "C20cl", "chatml", say(SYS, "sing"), say(SYS, "sing", "la la", "more"), (156, 173, 226), 161,
        ((P, Kind.trim, "messages[2].content", 5, 12, 0),), generated="la la \n<|im_end|>",
    ),
    Case(
        "C22", "chatml-tools", _c22("call_9f3a"), _c22("call_b771"), (388, 388, 388), 388, extends=True,
        causes=(
            (Layer.none, Kind.ids, "messages[2].tool_calls[0].id", 5, 0, 0),
            (Layer.none, Kind.ids, "messages[3].tool_call_id", 5, 0, 0),
        ),
    ),
    Case(
        "C23", "chatml", say(SYS, "one", "1", {"role": "user", "content": "two", **MARK}),
        say(SYS, "one", "1", "two", "2", {"role": "user", "content": "three", **MARK}),
        (220, 220, 287), 220, extends=True,
        causes=((Layer.none, Kind.cache_control, "messages[3].cache_control", 0, 0, 0),),
    ),
    Case(
        "C24", "chatml", say(SYS, "one"), say(SYS, "one", "1", "two"), (155, 166, 220), 166, extends=True,
        generated="1<|im_end|>",
    ),
    Case(
        "C25", "chatml", say(SYS, "caf\u00e9 ouvert"), say(SYS, "cafe\u0301 ouvert", "oui", "merci"),
        (164, 164, 234), 122,
        ((P, Kind.normaliser, "messages[1].content", 3, 42, 3),),
    ),
    Case(
        "C26", "chatml", say(f"{SYS}\n<files>\na.py\nc.py\nd.py\n</files>\nUse tabs.", "hi"),
        say(f"{SYS}\n<files>\na.py\nb.py\nc.py\nd.py\n</files>\nUse tabs.", "hi", "hello", "bye"), (196, 196, 270), 105,
        ((P, Kind.counter, HEAD, 86, 91, 6),),
    ),
    Case(
        "C27", "chatml-tools", say(SYS, "hi", tools=[tool("alpha"), tool("mu")]),
        say(SYS, "hi", "hello", "bye", tools=[tool("alpha"), tool("mu"), tool("zeta")]), (492, 492, 726), 429,
        ((P, Kind.tool_set_changed, "tools[2]", 0, 63, 4),),
    ),
    Case(
        "C28", "chatml", say(SYS, "one", "1", "two", "2", "three"),
        say(SYS, "Summary of earlier turns: counted to two.", "ok", "three"), (287, 287, 261), 119,
        ((P, Kind.compaction, "messages[1].content", 0, 167, 10),),
    ),
    Case(
        "C29", "chatml", say(SYS, "look: <image sha=11aa>", "a cat", "sure?"),
        say(SYS, "look: [file: 1.png]", "a cat", "sure?", "yes", "ok"), (245, 245, 308), 125,
        ((P, Kind.image_replaced, "messages[1].content", 6, 120, 8),),
    ),
]  # fmt: skip
