"""Chat templates that a stranger wrote: programs of statements that break compilers, never end, or fill memory; and
the entries of tokenizer_config.json that hold them."""

import json
from random import Random
from typing import Any

from tests.hostile.probe import Probe

IMPORTS = ("minicache.prompts.examine", "minicache.prompts.html", "minicache.text.renderer", "minicache.text.sources")

NUMBERS = (
    "0",
    "1",
    "-1",
    "7",
    "10**5",
    "10**10",
    "2**63",
    "9**99",
    "1.5",
    "1e400",
    "0x" + "f" * 99,
    "9" * 5000,
    "none",
)
TEXTS = (
    "'a'", "''", "'\x1b[31m'", "'\u202e'", "'%s'", "'%10000000000d'", "'%*d'", "'{:>10000000000}'", "'{0.__class__}'",
    "'é' * 10**6", "'a' * 10**10", "'<!---->' * 10**4", "messages[0].content", "messages[-1].content", "bos_token",
    "'\\ud800'",
)  # fmt: skip
VALUES = (
    "messages", "tools", "[1, 2]", "[]", "(1,)", "{}", "{'a': 1}", "range(100000)", "range(10**9)", "wrong", "none",
    "true", "x", "y", "n", "namespace(a=1)", "self", "loop", "cycler(1, 2)", "dict(a=1)", "varargs", "lipsum(9**9)",
    "m", "strftime_now", "raise_exception", "caller", "[x, x, x]", "(x, x)", "{'a': x, 'b': x}",
)  # fmt: skip
OPERATORS = (
    " + ",
    " - ",
    " * ",
    " / ",
    " // ",
    " % ",
    " ** ",
    " ~ ",
    " == ",
    " < ",
    " in ",
    " and ",
    " or ",
    " if true else ",
)
FILTERS = (
    "abs", "attr('__class__')", "attr('format')", "batch(10**10, x)", "batch(2)", "capitalize", "center(10**11)",
    "d(1)",
    "dictsort", "e", "filesizeformat", "first", "float", "format(x)", "groupby('a')", "groupby('__class__')",
    "indent(10**9)",
    "indent('x' * 10**6, true)", "int", "int(1, 99)", "items", "join(x)", "last", "length", "list", "lower",
    "map('center', 10**9)",
    "map(attribute='a')", "map('nothing')", "max", "min", "pprint", "random", "reject", "replace('', 'x' * 10**6)",
    "reverse", "round(10**9)", "safe", "select('in', x)", "slice(10**11)", "sort", "string", "striptags",
    "sum(start=[])",
    "title", "tojson", "tojson(indent=10**9)", "tojson(separators=1)", "trim(x)", "truncate(-1)", "unique", "upper",
    "urlencode", "urlize", "wordcount", "wordwrap(0)", "wordwrap(1, true, 'x' * 10**6)", "xmlattr", "nothing",
)  # fmt: skip
METHODS = (
    ".upper()", ".split()", ".split('')", ".join(x)", ".center(10**11)", ".replace('', x)", ".format(x)",
    ".format_map(x)",
    ".encode()", ".expandtabs(10**9)", ".translate({97: x})", ".to_bytes(10**11, 'big')", ".append(1)", ".pop()",
    ".items()",
    ".__class__", ".__init__.__globals__", ".a", "[0]", "['a']", "[1:]", "[::-1]", "[::0]", "[10**10:]", "()", "(x)",
    "(*x)",
    "(**x)", ".mro()", ".isdigit()", ".rfind(x)", ".strip(x)", ".zfill(10**10)", ".maketrans(x, x)", ".fromkeys(x, x)",
)  # fmt: skip
BODIES = (
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(3) }}",
    "{% for a in [1, 2] recursive %}{{ loop([1, 2]) }}{% endfor %}",
    "{% set x = 'ab' %}" + "{% set x = x + x %}" * 60 + "{{ x }}",
    "{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}{{ x == x }}{{ x | tojson }}",
    "{% set n = namespace(a=[]) %}{% for i in range(99999) %}{% set n.a = [n.a] %}{% endfor %}{{ n.a }}",
    "{{ raise_exception('\x1b]52;c;eA==\x07' * 9) }}",
    "{{ raise_exception(messages) }}",
    "{% include 'x' %}",
    "{% import x as y %}",
    "{% extends messages %}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ self.__init__.__globals__ }}",
    "{% set messages = 3 %}{% for m in messages %}{% endfor %}",
)
HALVES = (
    "{% if x %}",
    "{% endif %}",
    "{% for a in x %}",
    "{% endfor %}",
    "{% else %}",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "(",
    ")",
    "{% raw %}",
)
REPEATED = (
    "{% if 1 %}",
    "{% for a in x %}",
    "{{ (",
    "{{ [",
    "{{ {1: ",
    "{{ not ",
    "{{ -",
    "{{ x + ",
    "{{ x if x else ",
    "{{ x[",
    "{#",
)
CONTENTS: tuple[Any, ...] = (
    "hi",
    "",
    "a" * 3000,
    "\x1b[2J",
    "\ud800",
    "x\u2028y",
    None,
    [],
    [{"type": "text", "text": "t"}],
    3,
)


def expression(random: Random, depth: int = 3) -> str:
    kind = random.random() if depth else 0.2
    if kind < 0.3:
        return random.choice(random.choice((NUMBERS, TEXTS, VALUES)))
    inner = expression(random, depth - 1)
    if kind < 0.5:
        return f"({inner}){random.choice(METHODS)}"
    if kind < 0.75:
        return f"({inner}) | {random.choice(FILTERS)}"
    return f"({inner}{random.choice(OPERATORS)}{expression(random, depth - 1)})"


def statement(random: Random, depth: int = 3) -> str:
    inner = "".join(statement(random, depth - 1) for _ in range(random.randint(0, 2))) if depth else "{{ m }}"
    value, dash = expression(random), random.choice(("", "-"))
    return random.choice(
        (
            f"{{{{{dash} {value} }}}}",
            f"{{% set x = {value} %}}{inner}",
            f"{{% set n = namespace(x={value}) %}}{inner}{{% set n.x = {value} %}}",
            f"{{% set x %}}{inner}{{% endset %}}",
            f"{{% if {value} {dash}%}}{inner}{{% elif {expression(random)} %}}{{% endif %}}",
            f"{{% for m in messages %}}{inner}{{% endfor %}}",
            f"{{% for a in {value} {random.choice(('', 'recursive', 'if a'))} %}}{inner}{{% else %}}{{% endfor %}}",
            f"{{% macro x(a, b={value}) %}}{inner}{{% endmacro %}}{{{{ x(1) }}}}",
            f"{{% call x({value}) %}}{inner}{{% endcall %}}",
            f"{{% filter {random.choice(FILTERS)} %}}{inner}{{% endfilter %}}",
            f"{{% block b{random.randint(0, 9)} %}}{inner}{{% endblock %}}",
            f"{{% generation %}}{inner}{{% endgeneration %}}",
            random.choice(BODIES),
        )
    )


def source(random: Random) -> str:
    kind = random.random()
    if kind < 0.1:
        return "".join(random.choices((*HALVES, expression(random)), k=random.randint(1, 9)))
    if kind < 0.2:
        return random.choice(REPEATED) * random.choice((25, 300, 20_000)) + expression(random)
    whole = "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}" if random.random() < 0.6 else ""
    return whole + "\n".join(statement(random) for _ in range(random.randint(1, 3)))


def body(random: Random) -> bytes:
    roles = ("system", "user", "assistant", "tool", "\x1b", "{{ x }}")
    messages = [
        {"role": random.choice(roles), "content": random.choice(CONTENTS)} for _ in range(random.choice((1, 2, 2, 9)))
    ]
    whole: dict[str, Any] = {"messages": messages}
    if random.random() < 0.3:
        whole["tools"] = [
            {"type": "function", "function": {"name": "f", "parameters": random.choice(({}, None, {"a": [1]}))}}
        ]
    if random.random() < 0.2:
        name = random.choice(
            ("bos_token", "messages", "tools", "tools", "raise_exception", "range", "x", "self", "\x1b", "loop")
        )
        whole["chat_template_kwargs"] = {name: random.choice((1, None, "x", [1], [{"a": 1}], {"a": {}}))}
    if random.random() < 0.2:
        arguments = random.choice(("{", "[]", '{"a": 1}', "[" * 2000, '{"a": NaN}', "9" * 5000, None, {"a": 1}))
        messages.append({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})  # type: ignore[dict-item]
    return json.dumps(whole).encode()


def options(random: Random) -> list[str]:
    chosen = ["--template-seconds", random.choice(("0.05",) * 12 + ("1e-300", "0", "nan", "2", "x"))]
    chosen += random.choice((["--json"], ["--redact"], ["--json", "--redact"], ["--html", "out.html"], [], []))
    return chosen + random.choice(([], [], ["--renderer", "vllm"], ["--renderer", "sglang"]))


def probe(random: Random) -> Probe:
    first = body(random)
    files = {"a.json": first, "b.json": first if random.random() < 0.3 else body(random)}
    template = source(random)
    if random.random() < 0.7:
        files["t.jinja"], name = template.encode("utf-8", "surrogatepass"), "t.jinja"
    else:
        name = "model"
        default = random.choice(("default", "default", ["default"], {}, None, 3))
        entries = random.choice(
            (template, [{"name": default, "template": template}], [template], {"default": template}, 3)
        )
        config = {
            "chat_template": entries,
            "bos_token": random.choice(("<s>", {"content": "<s>"}, 3, None, {"content": {}})),
        }
        files["model/tokenizer_config.json"] = random.choice(
            (json.dumps(config).encode(),) * 6 + (b"{", b"[]", b'{"a": ' * 400 + b"1" + b"}" * 400, b"\xff", b"")
        )
        if random.random() < 0.3:
            files["model/chat_template.jinja"] = template.encode("utf-8", "surrogatepass")
    return Probe(("diff", "a.json", "b.json", "--template", name, *options(random)), files, writes=("out.html",))
