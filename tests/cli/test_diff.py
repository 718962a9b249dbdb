"""`minicache diff`: its output, its exit status, and its errors."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from minicache.cli import main as cli
from tests.prompts.cases import CASES, SYS, say, then
from tests.prompts.templates import TEMPLATES


def call(*args):
    with pytest.raises(SystemExit) as exit:
        cli.main(["diff", *map(str, args)])
    return exit.value.code


def write(folder, name, value):
    file = folder / name
    file.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return file


def files_of(name, folder):
    """The files of a case, and the options that go with them."""
    case = next(case for case in CASES if case.name == name)
    times = case.times or (None, None)
    wrapped = [
        {"time": time and time.isoformat(), "body": body} for body, time in zip((case.a, case.b), times, strict=True)
    ]
    options = ["--template", write(folder, "t.jinja", TEMPLATES[case.template])]
    if case.generated:
        options += ["--generated", case.generated]
    return case, [write(folder, "a.json", wrapped[0]), write(folder, "b.json", wrapped[1]), *options]


@pytest.mark.parametrize("name", ["C01c", "C09", "C12", "C13", "C16suf", "C23", "C24"])
def test_exit_status_and_json(name, tmp_path, capsys):
    case, args = files_of(name, tmp_path)
    status = call(*args, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["reusable"]["radix_tokens"] == min(case.lcp, case.lengths[2] - 1)
    causes = [
        (c["layer"], c["kind"], c["path"], c["offset"], c["gain_tokens"], c["gain_blocks"]) for c in found["causes"]
    ]
    assert causes == [tuple(cause) for cause in case.causes]
    assert status == (1 if any(cause["layer"] != "none" for cause in found["causes"]) else 0)


def test_the_report_page_and_redaction_together(tmp_path, capsys):
    _, args = files_of("C01c", tmp_path)
    page = tmp_path / "page.html"
    assert call(*args, "--redact", "--html", page, "--prefill-speed", 5000) == 1
    out = capsys.readouterr().out
    assert "loss    98 tokens, 6 blocks; 0.0196 s of prefill" in out
    for text in (out, page.read_text(encoding="utf-8")):
        assert "careful" not in text
        assert "97bd6" not in text
        assert "messages[0].content" in text


def test_no_file_that_is_read_is_overwritten(tmp_path, capsys):
    _, args = files_of("C01c", tmp_path)
    for file in [*args[:2], args[args.index("--template") + 1]]:
        before = file.read_bytes()
        assert call(*args, "--html", file) == 2
        assert "reads this file" in capsys.readouterr().err
        assert file.read_bytes() == before


def test_two_lines_of_a_log(tmp_path, capsys):
    a = say(SYS, "hi")
    records = [
        {"id": "r1", "body": a},
        {"id": "r2", "body": say("Other.", "hi")},
        {"id": "r3", "body": then(a, "x", "y")},
    ]
    log = write(tmp_path, "log.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    assert call(log, "r1", "r3") == call(log, 1, 3) == 0
    assert call(log, 1, 2) == 1
    assert "No loss: B extends A." in capsys.readouterr().out


def test_the_answer_from_a_file_and_as_text(tmp_path, capsys):
    a, b = (
        write(tmp_path, name, body) for name, body in (("a.json", say(SYS, "hi")), ("b.json", say(SYS, "hi", "x", "y")))
    )
    for answer in ("x<|im_end|>", write(tmp_path, "answer.txt", "x<|im_end|>")):
        assert call(a, b, "--generated", answer, "--json") == 0
        assert json.loads(capsys.readouterr().out)["generated_tokens"] == 11
    assert call(a, b, "--generated", "x" * 10_000 + "\0") == 1  # no name of a file


def test_what_is_there_and_no_file_is_not_taken_for_an_answer_without_a_word(tmp_path, capsys):
    """A pipe, such as `<(…)`, is read; what cannot be read is an error; a folder may be called as an answer is."""
    a = write(tmp_path, "a.json", say(SYS, "hi"))
    reading, writing = os.pipe()
    os.write(writing, b"answer")
    os.close(writing)
    try:
        assert call(a, a, "--generated", f"/dev/fd/{reading}", "--json") == 0
    finally:
        os.close(reading)
    assert json.loads(capsys.readouterr().out)["generated_tokens"] == len("answer")
    (tmp_path / "folder").mkdir()
    assert call(a, a, "--generated", tmp_path / "folder") == 0
    assert "this is the name of a folder" in capsys.readouterr().err
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for name, words in ((os.devnull, "it is a device"), (binary, "is not text in UTF-8")):
        assert call(a, a, "--generated", name) == 2
        assert words in capsys.readouterr().err


def test_block_size(tmp_path, capsys):
    _, args = files_of("C01c", tmp_path)
    assert call(*args, "--json", "--block-size", 8) == 1
    assert json.loads(capsys.readouterr().out)["reusable"] | {"blocks": 4, "vllm_tokens": 32, "total_blocks": 38} == {
        "block_size": 8, "blocks": 4, "total_blocks": 38, "vllm_tokens": 32, "radix_tokens": 39,
    }  # fmt: skip


GOOD = say(SYS, "hi")
NULL = say(SYS, "hi", {"role": "assistant", "content": None}, "and?")


@pytest.mark.parametrize(
    ("a", "b", "options", "sentence"),
    [
        ("", GOOD, [], "a.json is empty: give the JSON of a request"),
        ("{", GOOD, [], "a.json is not valid JSON"),
        ({"request": GOOD}, GOOD, [], "a.json is not a request of a known form (its keys: 'request')"),
        ({**GOOD, "model": "x"}, {**GOOD, "model": "y"}, [], "two models share no KV"),
        (NULL, GOOD, [], "a.json: message 2: content is null"),
        (GOOD, GOOD, ["--tokenizer", "none/such/there"], "unknown tokenizer 'none/such/there'"),
        (GOOD, GOOD, ["--template", "none-such"], "unknown template 'none-such'"),
        (GOOD, GOOD, ["--template", "{tmp}/bad.jinja"], "the chat template does not parse"),
        (GOOD, GOOD, ["--block-size", "0"], "--block-size must be at least 1, not 0"),
        (GOOD, GOOD, ["--html", "{tmp}/none/page.html"], "there is no folder"),
        (GOOD, GOOD, ["--html", "{tmp}"], "cannot be written"),
    ],
)
def test_wrong_input_is_one_sentence_and_nothing_is_written(a, b, options, sentence, tmp_path, capsys):
    write(tmp_path, "bad.jinja", "{% for %}")
    names = write(tmp_path, "a.json", a), write(tmp_path, "b.json", b)
    before = sorted(tmp_path.rglob("*"))
    page = [] if "--html" in options else ["--html", tmp_path / "page.html"]
    assert call(*names, *(option.format(tmp=tmp_path) for option in options), *page) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.startswith("minicache: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def image(**more):
    return {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", **more}]}


@pytest.mark.parametrize(
    ("a", "b", "options", "sentence"),
    [
        (
            GOOD,
            {"prompt": "Once"},
            [],
            "a.json is a body of OpenAI chat and {b} of completion: a chat and a completion have no fields",
        ),
        # The place in the body that was sent: its system prompt is no message.
        ({"system": SYS, "messages": [image()]}, GOOD, [], "in the body that was sent this is messages[0].content"),
        (say(None, image()), GOOD, [], "use the template of a model that reads such parts"),
        (say(None, {"role": "user", "content": [{"type": ["text"]}]}), GOOD, ["--renderer", "vllm"], "part of type"),
        (say(None, {"role": "user", "content": [{"type": "text", "text": 5}]}), GOOD, ["--renderer", "vllm"], "is int"),
        (say(None, {"role": "user", "content": [{"type": "text", "text": 5}]}), GOOD, [], "send one text"),
        (say(None, {"role": "user", "content": 0.5}), GOOD, ["--renderer", "vllm"], "content must be text or a list"),
        (say(SYS, {"role": "user", "tool_calls": [{"function": 3}]}), GOOD, [], "content is missing"),
        (say(SYS, {"role": "user", "tool_calls": True}), GOOD, [], "content is missing"),
        ({**GOOD, "model": "\x1b[31mred"}, {**GOOD, "model": "m"}, [], "is for the model '\\x1b[31mred'"),
        ({"\x1b[31mred" * 500: GOOD}, GOOD, [], "its keys: '\\x1b[31mred"),
    ],
)
def test_what_no_template_can_take_is_one_short_sentence(a, b, options, sentence, tmp_path, capsys):
    names = write(tmp_path, "a.json", a), write(tmp_path, "b.json", b)
    assert call(*names, *options) == 2
    err = capsys.readouterr().err
    assert sentence.format(b=names[1]) in err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert len(err) < 2000


def test_a_line_of_a_log_ends_where_its_json_does(tmp_path, capsys):
    """A text may hold U+2028 and other ends of lines as they are; a line may end in a carriage return."""
    texts = ["one\u2028\x85two", "one\u2028\x85three"]
    log = write(tmp_path, "log.jsonl", "\r\n\n".join(json.dumps(say(None, text), ensure_ascii=False) for text in texts))
    assert call(log, 1, 3) == 1
    assert "messages[0].content, character 6" in capsys.readouterr().out


def test_an_answer_that_looks_like_the_name_of_a_file_is_remarked_on(tmp_path, capsys):
    a = write(tmp_path, "a.json", GOOD)
    for answer, remarked in ((tmp_path / "answer.txt", True), ("It is in a/b.", False), ("yes", False)):
        assert call(a, a, "--generated", answer) == 0
        assert (
            "--generated: there is no such file, so the value is used as the text" in capsys.readouterr().err
        ) == remarked


def test_a_log_given_as_a_request_is_told_how_to_be_given(tmp_path, capsys):
    log = write(tmp_path, "log.jsonl", f"{json.dumps(GOOD)}\n{json.dumps(GOOD)}\n")
    assert call(log, log) == 2
    assert (
        "log.jsonl has a request on each line: give the file once, then the line numbers or ids of two requests"
        in capsys.readouterr().err
    )


def test_binary_rubbish(tmp_path, capsys):
    file = tmp_path / "a.json"
    file.write_bytes(bytes(range(256)))
    assert call(file, file) == 2
    assert "a.json is not text in UTF-8" in capsys.readouterr().err


def test_how_many_names(tmp_path, capsys):
    assert call(tmp_path / "a") == 2
    assert "give two JSON files, or a JSON Lines file and two line numbers or ids" in capsys.readouterr().err
    for option, value in (("--prefill-speed", "1e-320"), ("--price", "1e308"), ("--cached-price", "1e308")):
        assert call("a", "b", option, value) == 2, "their losses would be infinite, which JSON does not have"
        assert f"{option} must be a number" in capsys.readouterr().err
    assert call("a", "b", "--prefill-speed", "-3") == 2
    assert "must be a number from 1e-9 to 1e15, not -3" in capsys.readouterr().err


def run(*args, **more):
    return subprocess.run([sys.executable, "-m", "minicache", "diff", *map(str, args)], text=True, **more)


def test_what_stdout_cannot_take(tmp_path):
    """Letters that its encoding lacks, half a surrogate pair, a disk that is full, a reader that is gone."""
    half = write(tmp_path, "half.json", json.dumps(say(None, "é \ud800 97bd6f0c")))
    other = write(tmp_path, "other.json", json.dumps(say(None, "é \ud800 24c2d9ee", "x", "y")))
    for encoding in ("ascii", "latin-1", "utf-8"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        plain, as_json = (
            run(half, other, *more, env=environment, capture_output=True, encoding=encoding)
            for more in ([], ["--json"])
        )
        assert (plain.returncode, plain.stderr) == (1, "")
        assert ("■╳" if encoding == "utf-8" else "#X") in plain.stdout
        assert json.loads(as_json.stdout)["context"][0].endswith("é \ud800 ")
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            failed = run(half, other, stdout=full, stderr=subprocess.PIPE)
        assert (failed.returncode, failed.stderr) == (
            74,
            "minicache: stdout cannot be written: No space left on device\n",
        )
    for pair, status in (((half, half), 0), ((half, other), 1)):
        read, written = os.pipe()
        os.close(read)
        gone = run(*pair, stdout=written, stderr=subprocess.PIPE)
        os.close(written)
        assert (gone.returncode, gone.stderr) == (status, "")


def test_the_help_lists_each_exit_status(capsys):
    assert call("--help") == 0
    out = capsys.readouterr().out
    for line in (
        "  Exit status:",
        "    0  nothing is lost",
        "    1  something is lost",
        "    2  the requests could not be compared",
    ):
        assert f"\n{line}" in out


WITHOUT = """
import sys
from minicache.cli.main import main
try:
    main(sys.argv[1:])
finally:
    heavy = {"torch", "transformers", "tokenizers", "numpy", "rich", "huggingface_hub", "hypothesis"} & set(sys.modules)
    assert not heavy, heavy
"""


def test_4000_tokens_in_bytes_need_no_library(tmp_path):
    """Nothing heavy is imported: a run takes 0.3 s, most of which is its start."""
    turns = [f"{number} " + "word " * 20 for number in range(39)]
    a, b = say(f"id 97bd6f0c {SYS}", *turns), say(f"id 24c2d9ee {SYS}", *turns, "x", "y")
    names = [write(tmp_path, name, body) for name, body in (("a.json", a), ("b.json", b))]
    run = subprocess.run([sys.executable, "-c", WITHOUT, "diff", *names], capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert run.stderr == ""
    assert "nonce" in run.stdout
    assert int(run.stdout.split(" left ")[1].split()[0].replace(",", "")) > 4000


def test_the_example_of_the_page(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "reference" / "diff.md").read_text(encoding="utf-8")
    a, b = (write(tmp_path, f"{name}.json", text) for name, text in zip("AB", blocks(page, "json"), strict=True))
    assert call(a, b) == 1
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == blocks(page, "text")[0].splitlines()


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)\n```", page, flags=re.DOTALL | re.MULTILINE)
