"""`minicache experiment NAME` and `minicache demo NAME`: one object, a picture, and one sentence for wrong input."""

import json
from xml.etree import ElementTree

import pytest

from minicache.bench import three_forms, timestamp
from minicache.bench.experiment import BENCHMARKS, EXPERIMENTS, load, options
from minicache.cli import demo
from minicache.cli import main as cli
from minicache.engine.tiny.folder import write_tiny
from tests.thinned import thinned

pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")
QUICK = {
    "three-forms": ["--cache", "radix", "--quick"],
    "timestamp": ["--cache", "radix"],
    "cold-warm": ["--cache", "radix", "--system-tokens", "300", "--rounds", "1"],
    "breakers": ["--cache", "radix", "--requests", "2"],
}


def call(*args):
    with pytest.raises(SystemExit) as exit:
        cli.main(args)
    return exit.value.code


@pytest.mark.parametrize("name", thinned(QUICK, "three-forms", "cold-warm", "breakers"))
def test_one_object_and_a_picture(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="charts need matplotlib: pip install 'minicache-llm[plots]'")
    monkeypatch.setattr(timestamp, "VARIATIONS", ())
    svg = tmp_path / "figure.svg"
    assert call("experiment", name, "--model", "tiny", *QUICK[name], "--json", "--svg", str(svg)) == 0
    captured = capsys.readouterr()
    value = json.loads(captured.out)
    assert (value["experiment"], value["model"]) == (name, "tiny")
    assert value["runs"][0]["cache"] == "radix"
    assert f"wrote {svg}" in captured.err
    root = ElementTree.parse(svg).getroot()
    assert root.tag.endswith("svg")
    assert "Times are this machine's: cpu, float32, " in " ".join(root.itertext())


def test_every_experiment_and_benchmark_of_the_lists_is_a_command(capsys):
    for group, names in (("experiment", EXPERIMENTS), ("bench", BENCHMARKS)):
        assert call(group, "--help") == 0
        out = capsys.readouterr().out
        for name in names:
            assert f"\n  {name} " in out
            first, *_ = (load(name).__doc__ or "").split(". ")
            assert call(group, name, "--help") == 0
            assert " ".join(first.split()[:5]) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_each_setting_with_an_option_is_an_option(name, capsys):
    assert call("experiment", name, "--help") == 0
    out = capsys.readouterr().out
    flags = {"caches": "--cache"}
    assert all(flags.get(setting, f"--{setting.replace('_', '-')}") in out for setting in options(load(name)))
    assert ("--svg" in out) == load(name).has_chart


def test_demo_shows_another_experiment_and_lists_the_others(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(demo, "conduct", lambda experiment, settings, as_json: asked.append((experiment, settings)))
    assert call("demo", "breakers", "--model", "tiny", "--seed", "3") == 0
    assert asked == [(load("breakers"), {"model": "tiny", "caches": ("hash",), "seed": 3})]
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "This was the hash cache only. All of it: `minicache experiment breakers --cache both --model tiny --seed 3`."
        in out
    )
    assert "`minicache demo three-forms`, `minicache demo timestamp`, `minicache demo cold-warm`" in out


def test_the_help_of_the_demo_says_what_its_options_mean(capsys):
    assert call("demo", "--help") == 0
    out = " ".join(capsys.readouterr().out.split())
    meanings = options(load("three-forms"))
    assert all(meanings[name].help in out for name in ("model", "caches", "quick", "seed"))
    assert "[default: hash]" in out
    assert "[default: 0]" in out
    assert "This is `minicache experiment NAME`, by default with one cache." in out


def ranges():
    for group, names in (("experiment", EXPERIMENTS), ("bench", BENCHMARKS)):
        for name in names:
            yield from ((group, name, each, o) for each, o in options(load(name)).items() if o.min is not None)


@pytest.mark.parametrize(("group", "name", "setting", "option"), [*ranges()], ids=lambda value: str(value)[:12])
def test_the_help_of_a_command_gives_the_range_of_each_number(group, name, setting, option, capsys):
    assert call(group, name, "--help") == 0
    out = " ".join(capsys.readouterr().out.split())
    words = f"At least {option.min}." if option.max is None else f"From {option.min} to {option.max}."
    assert f"--{setting.replace('_', '-')} <int> {option.help} {words}" in out


def test_the_demo_takes_five_cold_prompts_and_shows_each_request_at_once(monkeypatch, capsys):
    """Cold prompts: the stable form, an id at the start, and each of the three forms once without a cache."""
    events = []

    def ask(engine, prompt, max_tokens):
        events.append(capsys.readouterr().out)  # what has been shown when a request begins
        return honest(engine, prompt, max_tokens)

    honest = three_forms.ask
    monkeypatch.setattr(three_forms, "ask", ask)
    assert call("demo", "--model", "tiny", "--quick") == 0
    assert len(events) == 8
    header, *shown = [text.strip().splitlines() for text in events]
    assert header[0].startswith("The same support bot")
    for (line,), begins in zip(
        shown, ("hash cache: stable, cold ", "hash cache: stable, warm-up ", *[""] * 5), strict=True
    ):
        assert line.startswith(begins)
        assert " reused " in line
        assert len(line) <= 80
        assert line.endswith(" ms")
    assert [line.split(" of ")[0].split()[-1] for (line,) in shown] == ["0", "288", "288", "0", "256", "0", "0"]
    out = " ".join(capsys.readouterr().out.split())
    assert "This was 1 of 5 rounds, the hash cache only, a tenth of the prompt length." in out
    assert "All of it: `minicache experiment three-forms --cache both --rounds 5 --model tiny`." in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["experiment", "breakers", "--requests", "1"],
        ["experiment", "breakers", "--model", "gpt-17"],
        ["experiment", "cold-warm", "--system-tokens", "0"],
        ["experiment", "cold-warm", "--system-tokens", "5000"],
        ["experiment", "cold-warm", "--rounds", "0"],
        ["experiment", "three-forms", "--svg", "figure.png"],
        ["experiment", "timestamp", "--svg", "figure.png"],
        ["experiment", "timestamp", "--svg", "/no/such/folder/figure.svg"],
        ["demo", "timestamp", "--quick"],
    ],
)
def test_wrong_input_is_one_sentence_and_no_result(arguments, capsys):
    model = [] if "--model" in arguments else ["--model", "tiny"]
    assert call(*arguments, *model) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("minicache: ")
    assert captured.err.count("\n") == 1


def no_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


def no_template(folder):
    change(folder / "tokenizer_config.json", chat_template=None)


def short_context(folder):
    change(folder / "config.json", max_position_embeddings=64)


def no_config(folder):
    (folder / "config.json").unlink()


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@pytest.mark.parametrize("name", QUICK)
def test_a_template_without_a_system_prompt_is_refused_before_anything_is_printed(name, tmp_path, capsys):
    write_tiny(tmp_path)
    change(tmp_path / "tokenizer_config.json", chat_template="{{ messages[-1].content }}")
    assert call("experiment", name, "--model", str(tmp_path), *QUICK[name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "leaves out or changes what the system says" in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (no_tokenizer, "tokenizer.json does not exist"),
        (no_template, "has no chat template"),
        (short_context, "context of"),
        (no_config, "has no config.json"),
    ],
)
def test_a_model_that_will_not_do_is_refused_before_anything_is_printed(name, spoil, words, tmp_path, capsys):
    write_tiny(tmp_path)
    spoil(tmp_path)
    assert call("experiment", name, "--model", str(tmp_path), *QUICK[name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_without_matplotlib_nothing_is_run(monkeypatch, capsys):
    monkeypatch.setattr("minicache.cli.console.find_spec", lambda name: None if name == "matplotlib" else name)
    assert call("experiment", "timestamp", "--model", "tiny", "--svg", "figure.svg") == 2
    assert capsys.readouterr() == (
        "",
        "minicache: This needs the package 'matplotlib': pip install 'minicache-llm[plots]'\n",
    )
