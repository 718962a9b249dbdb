"""`minicache diff --redact`: no text of a request on stdout, on stderr or on the page, whatever goes wrong."""

import copy
import io
import json
import re
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicache.cli import main as cli
from tests.prompts.cases import SYS, call, result, say, then, tool
from tests.prompts.templates import TEMPLATES
from tests.prompts.test_request_log import anthropic, responses

SECRET = "quokka"  # in no word of ours
ASK = say(SYS, "hi", call("ls", {"d": "."}), result("a.py"), "and?", tools=[tool("alpha"), tool("beta")], model="m")
ARGUMENTS = {
    **ASK,
    "chat_template_kwargs": {"enable_thinking": True, "custom": {"name": [1]}},
    "documents": [{"text": "x"}],
}
BODIES = [ASK, ARGUMENTS, anthropic(), responses(), {"prompt": "Once upon a time", "cache_salt": "x"}]
QUOTING = [
    "{{ raise_exception('no ' ~ messages[0].content ~ messages[-1]) }}",
    "{% for m in messages %}{{ m.content.split(m.content)[9] }}{% endfor %}",
    "{% for m in messages %}{{ {}[m.content] + m }}{% endfor %}",
    "{% for m in messages %}{{ m.content | int(base=m.content) }}{% endfor %}",
    "{% for m in messages %}{{ m.content.format(*m) }}{{ m.content % 3 }}{% endfor %}",
    "{% for m in messages %}{{ m.content | attr(m.role) + 1 }}{{ m.content | tojson | list | sum }}{% endfor %}",
    "{% for m in messages %}{% include m.content %}{% endfor %}",
    "{{ namespace(**{messages[0].content: '_' ~ messages[0].content})._x }}{{ strftime_now(messages[0].content) }}",
    "{% set n = namespace() %}{% for m in messages %}{% set n.x = dict(**m) %}{{ n.x.nothing.nothing }}{% endfor %}",
]


def leaves(value, path=()):
    """The paths of all values inside a value, and of the value itself."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))


def put(value, path, new):
    if not path:
        return new(value)
    copied = copy.copy(value)
    copied[path[0]] = put(value[path[0]], path[1:], new)
    return copied


INSERTED = {
    "in a text": lambda value: f"{value[:2]}{SECRET}{value[2:]}" if isinstance(value, str) else SECRET,
    "in the place of a value": lambda _: SECRET,
    "as a key": lambda value: {**value, SECRET: 1} if isinstance(value, dict) else {SECRET: [SECRET]},
    "as an item": lambda value: [*value, SECRET] if isinstance(value, list) else [value, {"type": SECRET}],
}


@st.composite
def records(draw):
    """Two records of a log, alike or not, with the secret in at least one place."""
    body = draw(st.sampled_from(BODIES))
    more = draw(st.sampled_from([*BODIES, then(ASK, "done", "next"), {**ASK, "tools": ASK["tools"][::-1]}]))
    answer = {"choices": [{"text": "ok"}], "usage": {"prompt_tokens_details": {"cached_tokens": 3}}}
    wrapped = [
        {"time": "2026-03-01T10:00:07Z", "id": f"r{i}", "body": b, "response": answer}
        for i, b in enumerate((body, more))
    ]
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(list(leaves(wrapped))[1:]))
        wrapped = put(wrapped, place, INSERTED[draw(st.sampled_from(sorted(INSERTED)))])
        if not all(isinstance(record, dict) for record in wrapped):
            break
    return wrapped if draw(st.booleans()) else [r.get("body", r) if isinstance(r, dict) else r for r in wrapped]


def everything_printed(arguments, page):
    """Everything that a run writes: both streams and the page. Raises every error that would print a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as exit:
        cli.main(["diff", *map(str, arguments), "--redact", "--html", str(page)])
    assert exit.value.code in (0, 1, 2), err.getvalue()
    assert (exit.value.code == 2) == bool(err.getvalue())
    assert "a fault of minicache" not in err.getvalue()
    return out.getvalue() + err.getvalue() + (page.read_text(encoding="utf-8") if page.exists() else "")


@given(
    records(),
    st.sampled_from(["chatml", *sorted(TEMPLATES.values()), *QUOTING]),
    st.sampled_from(["transformers", "vllm", "sglang"]),
    st.sampled_from([[], ["--json"], ["--generated", f"<think>{SECRET}</think> x"]]),
    st.integers(0, 60) | st.none(),
)
def test_the_secret_is_nowhere(pair, template, renderer, options, cut):
    with tempfile.TemporaryDirectory() as folder:
        source, log = Path(folder) / "t.jinja", Path(folder) / "log.jsonl"
        source.write_text(template, encoding="utf-8")
        text = "\n".join(map(json.dumps, pair))
        log.write_text(text if cut is None else text[: len(text) - cut] + SECRET, encoding="utf-8")
        named = ["--template", "chatml" if template == "chatml" else source, "--renderer", renderer]
        printed = everything_printed([log, 1, 2, *named, *options], Path(folder) / "page.html")
    assert SECRET not in printed.lower()


def test_a_sentence_keeps_its_own_words(tmp_path, capsys):
    """Only what was quoted is hidden, also where a key of the request is a word of the sentence."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"request": {}}')
    with pytest.raises(SystemExit):
        cli.main(["diff", str(log), str(log), "--redact"])
    words = capsys.readouterr().err.split("(its keys: ")
    assert words[0].endswith("log.jsonl is not a request of a known form ")
    assert words[1].startswith("#")


def test_it_would_be_there_without_the_option(tmp_path, capsys):
    """The test above can fail: these sentences and this report do quote the requests."""
    body = say(f"{SECRET} id 97bd6f0c", "hi")
    log = tmp_path / "log.jsonl"
    log.write_text(
        "\n".join(
            map(
                json.dumps,
                [body, say(f"{SECRET} id 24c2d9ee", "hi"), {**body, "model": SECRET}, {"model": "m", **body}],
            )
        )
    )
    template = tmp_path / "t.jinja"
    template.write_text(QUOTING[0])
    for arguments in ([1, 2], [1, 2, "--template", template], [3, 4], [1, SECRET]):
        for redact in ([], ["--redact"]):
            with pytest.raises(SystemExit):
                cli.main(["diff", *map(str, [log, *arguments, *redact])])
            assert (SECRET in "".join(capsys.readouterr())) == (not redact)


@pytest.mark.parametrize("name", ["quokka_mode", "quokka flag", "enable_thinking", "name", "quokka\n"])
@pytest.mark.parametrize(
    "template",
    ["chatml", "{{ messages[0].content }}{{ quokka_mode }}{{ name }}", "{{ name.no.such + quokka_mode.no.such }}"],
)
def test_the_name_of_an_argument_of_the_template_is_nowhere(name, template, tmp_path):
    """Its author chose the name, also one that an API uses elsewhere."""
    source = tmp_path / "t.jinja"
    source.write_text(template)
    pair = [say(SYS, "hi", chat_template_kwargs={name: {"text": value}}) for value in (1, 2)]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, pair)))
    for options in ([], ["--json"]):
        named = "chatml" if template == "chatml" else source
        printed = everything_printed([log, 1, 2, "--template", named, *options], tmp_path / "page.html")
        assert not re.search(rf"chat_template_kwargs(\.|\W+){re.escape(name.strip())}", printed)
        assert "quokka" not in printed
        assert "chat_template_kwargs['#" in printed or "minicache: " in printed
