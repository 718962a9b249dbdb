"""Small chat templates, each with one habit that real ones have."""

from tests.text.tiny_hub import SMOLLM2_TEMPLATE

END = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
TURN = "{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') + '<|im_end|>\\n' }}"
CALLS = """
{%- for call in m.tool_calls or [] -%}
    {{- '<tool_call>{"name": "' ~ call.function.name ~ '", "arguments": ' -}}
    {%- if call.function.arguments is string -%}
        {{ call.function.arguments }}
    {%- else -%}
        {{ call.function.arguments | tojson }}
    {%- endif -%}
    {{- '}</tool_call>' -}}
{%- endfor -%}"""
TOOLS = """
{%- if tools -%}
    {{- '<|im_start|>system\\n' ~ (messages[0].content ~ '\\n\\n' if messages[0].role == 'system' else '') -}}
# Tools
    {%- for tool in tools %}{{ '\\n' + tool | tojson }}{% endfor -%}
    {{- '<|im_end|>\\n' -}}
{%- endif -%}"""
LAST_USER = """
{%- set ns = namespace(last=-1) -%}
{%- for m in messages if m.role == 'user' %}{% set ns.last = messages.index(m) %}{% endfor -%}"""

TEMPLATES = {
    "chatml": "{% for m in messages %}" + TURN + "{% endfor %}" + END,
    "smollm2": SMOLLM2_TEMPLATE,
    "tools": TOOLS
    + "{% for m in messages %}{% if m.role == 'tool' %}{{ '<tool_response>' ~ m.content ~ '</tool_response>' }}"
    + "{% else %}"
    + TURN
    + CALLS
    + "{% endif %}{% endfor %}"
    + END,
    "thinking": LAST_USER
    + """{% for m in messages %}
    {{- '<|im_start|>' ~ m.role ~ '\\n' -}}
    {%- if m.reasoning_content and loop.index0 > ns.last -%}
        {{- '<think>\\n' ~ m.reasoning_content ~ '\\n</think>\\n\\n' -}}
    {%- endif -%}
    {{- m.content or '' -}}"""
    + CALLS
    + "{{- '<|im_end|>\\n' -}}{% endfor %}"
    + END
    + "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}",
    "date": """{{ 'Today: ' + strftime_now('%d %b %Y') + '\\n' }}
{% for m in messages %}"""
    + TURN
    + "{% endfor %}"
    + END,
    "trim": "{{ bos_token }}{% for m in messages %}{{ '[' ~ m.role ~ '] ' ~ (m.content or '') | trim }}\n{% endfor %}",
    "tools at the last user": LAST_USER
    + "{% for m in messages %}{% if tools and loop.index0 == ns.last %}{{ '[TOOLS]' + tools | tojson + '[/TOOLS]' }}"
    + "{% endif %}"
    + TURN
    + "{% endfor %}",
    "everything as json": TOOLS
    + "{% for m in messages %}{{ m.content | tojson }}{% for call in m.tool_calls or [] %}"
    + "{{ call.function.arguments | tojson(indent=2) }}{% endfor %}{% endfor %}"
    + END,
}
