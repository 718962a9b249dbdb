"""The templates of the cases: each does one thing that real templates do."""

END, ASSISTANT = "'<|im_end|>\\n'", "'<|im_start|>assistant\\n'"
GENERATION = "{% if add_generation_prompt %}{{ " + ASSISTANT + " }}{% endif %}"
TURN = "{{ '<|im_start|>' + m.role + '\\n' + m.content + " + END + " }}"
LAST_USER = (
    "{% set ns = namespace(q=-1) %}{% for m in messages %}"
    "{% if m.role == 'user' %}{% set ns.q = loop.index0 %}{% endif %}{% endfor %}"
)
ARGUMENTS = (
    "{% if c.function.arguments is string %}{{ c.function.arguments }}"
    "{% else %}{{ c.function.arguments | tojson }}{% endif %}"
)
CALLS = (
    "{% for c in m.tool_calls or [] %}"
    """{{ '<tool_call>{"name": "' + c.function.name + '", "arguments": ' }}ARGUMENTS{{ '}</tool_call>' }}{% endfor %}"""
)
SYSTEM_WITH_TOOLS = (
    "{% if tools %}{{ '<|im_start|>system\\n' }}"
    "{% if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif %}{{ '# Tools' }}"
    "{% for t in tools %}{{ '\\n' + (t | tojson) }}{% endfor %}{{ " + END + " }}{% endif %}"
)
RESULT = "{{ '<|im_start|>user\\n<tool_response>' + m.content + '</tool_response>' + " + END + " }}"
TOOLS = "{{ '[TOOLS]' + (tools | tojson) + '[/TOOLS]\\n' }}"


def _tools_template(arguments: str) -> str:
    return (
        SYSTEM_WITH_TOOLS + "{% for m in messages %}{% if loop.first and tools and m.role == 'system' %}"
        "{% elif m.role == 'tool' %}" + RESULT + "{% else %}{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') }}"
        "" + CALLS.replace("ARGUMENTS", arguments) + "{{ " + END + " }}{% endif %}{% endfor %}" + GENERATION
    )


TEMPLATES = {
    "chatml": "{% for m in messages %}" + TURN + "{% endfor %}" + GENERATION,
    "chatml-tools": _tools_template(ARGUMENTS),
    "args-tojson": _tools_template("{{ c.function.arguments | tojson }}"),
    "think-strip": (
        LAST_USER + "{% for m in messages %}{% if m.role == 'assistant' %}{{ " + ASSISTANT + " }}"
        "{% if loop.index0 > ns.q and m.reasoning_content %}"
        "{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}{{ m.content or '' }}"
        "" + CALLS.replace("ARGUMENTS", ARGUMENTS) + "{{ " + END + " }}"
        "{% elif m.role == 'tool' %}{{ '<|im_start|>tool\\n' + m.content + "
        + END
        + " }}{% else %}"
        + TURN
        + "{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ " + ASSISTANT + " }}"
        "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
        "{% endif %}"
    ),
    "date": (
        "{{ '<|im_start|>system\\nCutting Knowledge Date: December 2023\\nToday Date: ' + strftime_now('%d %b %Y') + "
        "'\\n\\n' }}{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}{{ " + END + " }}"
        "{% for m in messages %}{% if not (loop.first and m.role == 'system') %}" + TURN + "{% endif %}{% endfor %}"
        "" + GENERATION
    ),
    "trim": "{% for m in messages %}" + TURN.replace("m.content", "(m.content | trim)") + "{% endfor %}" + GENERATION,
    "tools-last-user": (
        LAST_USER
        + "{% for m in messages %}{% if tools and loop.index0 == ns.q %}"
        + TOOLS
        + "{% endif %}"
        + TURN
        + "{% endfor %}"
        "" + GENERATION
    ),
    "tools-only-if-user-last": (
        "{% for m in messages %}{% if tools and loop.last and m.role == 'user' %}"
        + TOOLS
        + "{% endif %}"
        + TURN
        + "{% endfor %}"
        "" + GENERATION
    ),
}
