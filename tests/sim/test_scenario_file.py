"""Scenario files: what is accepted, and the one sentence for what is not."""

import pytest

from minicache.sim.errors import BadScenario, UnknownScenario
from minicache.sim.library import find_scenario
from minicache.sim.prompt import OutputOf, Segment, Text, Tokens, build
from minicache.sim.scenario_file import read_scenario
from minicache.sim.simulator import Simulator

GOOD = """title = "A title"
story = "A story. Watch it."
[cache]
kind = "both"
num_blocks = 65
[scheduler]
max_num_seqs = 4
[[request]]
id = "a"
prompt = [
    { text = "hé" },
    { tokens = [7, 8] },
    { segment = "tools", tokens = 3 },
]
max_tokens = 4
[[request]]
id = "b{n}"
count = 2
every = 0.5
after = "a"
prompt = [{ output_of = "a", drop = 1 }, { text = "{n}" }]
salt = "tenant-{n}"
adapter = { name = "legal", path = "/x" }
"""


def read(text):
    return read_scenario(text, "mine", "mine.toml")


def test_everything_is_read():
    scenario = read(GOOD)
    a, b1, b2 = scenario.requests
    assert a.prompt == (Text("hé"), Tokens((7, 8)), Segment("tools", 3))
    assert (b1.id, b2.id, b1.at, b2.at) == ("b1", "b2", 0.0, 0.5)
    assert b2.prompt == (OutputOf("a", 1), Text("2"))
    assert b2.namespace.salt == "tenant-2"
    assert b2.namespace.adapter.key == ("lora", "legal", "/x")
    assert scenario.kinds == ("hash", "radix")
    assert (scenario.caches["hash"].num_blocks, scenario.caches["hash"].block_size) == (65, 16)
    assert (scenario.caches["radix"].num_blocks, scenario.caches["radix"].block_size) == (1025, 1), "the same memory"
    assert scenario.schedulers["hash"].publish_at == "schedule"
    assert scenario.schedulers["radix"].publish_at == "compute", "each cache has its own engine's scheduler"
    assert scenario.schedulers["radix"].max_num_seqs == 4
    assert scenario.prompt_length(a) == 3 + 2 + 3
    assert scenario.prompt_length(b1) == 3 + 1


def test_prompts_know_where_their_tokens_come_from():
    scenario = read(GOOD)
    tokens, runs = build(scenario.requests[0].prompt, scenario.seed, {})
    assert tokens[:5] == [*"hé".encode(), 7, 8]
    assert [(run.start, run.end, run.label) for run in runs] == [(0, 3, "text"), (3, 5, "tokens"), (5, 8, "tools")]
    longer, _ = build((Segment("tools", 30),), scenario.seed, {})
    assert longer[:3] == tokens[5:], "a segment begins as a shorter one of its name"
    assert build((Segment("tools", 3),), 1, {})[0] != tokens[5:], "another seed is another text"


def test_a_profile_that_is_given_holds_for_both_caches():
    scenario = read(GOOD.replace("max_num_seqs = 4", 'profile = "vllm"'))
    assert scenario.schedulers["radix"].publish_outputs == "as_filled"
    assert scenario.schedulers["radix"].publish_at == "compute", "a radix cache can do nothing else"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "A title"', "title = A title", r"mine\.toml, line 1: title: not TOML: Invalid value"),
        ('kind = "both"', 'kind = "both', r"mine\.toml, line 4: kind: not TOML"),
        ('title = "A title"\n', "", r"mine\.toml: the key 'title' is missing"),
        ('kind = "both"', 'kind = "bot"', r"mine\.toml, line 4: cache\.kind: must be one of hash, radix, both"),
        ("num_blocks = 65", "num_block = 65", r"line 5: cache\.num_block: .*did you mean 'num_blocks'"),
        ("num_blocks = 65", "num_blocks = 1", r"line 5: cache\.num_blocks: must be at least 2, not 1"),
        ("num_blocks = 65", 'num_blocks = "many"', r"line 5: cache\.num_blocks: must be an integer, not 'many'"),
        ("num_blocks = 65", "num_blocks = true", r"line 5: cache\.num_blocks: must be an integer, not True"),
        ("num_blocks = 65", "num_blocks = 2", r"line 16: request 'b1' can never fit|line 8: request 'a' can never fit"),
        ("num_blocks = 65", 'strategy = "best"', r"line 5: cache\.strategy: must be one of lru"),
        ("max_num_seqs = 4", "max_num_sek = 4", r"line 7: scheduler\.max_num_sek: .*'max_num_seqs'"),
        ("max_num_seqs = 4", "max_num_seqs = 0", r"line 7: scheduler\.max_num_seqs: must be at least 1"),
        ("max_num_seqs = 4", 'queue_policy = "x"', r"line 7: scheduler\.queue_policy: must be one of fcfs"),
        ("max_num_seqs = 4", 'watermark = "a"', r"line 7: scheduler\.watermark"),
        ('id = "a"', 'id = ""', r"line 9: request\[0\]\.id: must not be empty"),
        ('id = "a"\n', "", r"line 8: request\[0\]: the key 'id' is missing"),
        ('id = "a"', 'id = "b1"', r"line \d+: "),
        ('{ text = "hé" }', "{ text = 7 }", r"line 10: request\[0\]\.prompt\[0\]\.text: must be a text, not 7"),
        ('{ text = "hé" }', '{ txt = "a" }', r"line 10: request\[0\]\.prompt\[0\]: the key 'tokens' is missing"),
        (
            '{ text = "hé" }',
            '{ text = "a", drop = 1 }',
            r"line 10: request\[0\]\.prompt\[0\]\.drop: this key has no meaning here",
        ),
        ('{ text = "hé" }', '{ text = "a", segment = "b" }', r"has text and segment: a part is one of them"),
        ("[7, 8]", "[7, true]", r"request\[0\]\.prompt\[1\]\.tokens: must be non-negative"),
        ("count = 2", "count = 200000", r"line 18: request\[1\]\.count: must be at most 20,000, not 200,000"),
        ("max_tokens = 4", "max_tokens = 200000", "request: the answers have 200,032 tokens together, and at most"),
        (
            "max_tokens = 4",
            "max_tokens = 0x" + "f" * 5000,
            r"line 15: request\[0\]\.max_tokens: must be between -2\*\*64",
        ),
        ("every = 0.5", "every = 1e308", r"line 19: request\[1\]\.every: is too long"),
        ("[cache]", "x = " + "[" * 500 + "]" * 500 + "\n[cache]", "mine.toml: it is nested more than 128 levels deep"),
        ("[cache]", "a." * 500 + "b = 1\n[cache]", "mine.toml: it is nested more than 128 levels deep"),
        ("[7, 8]", "[7, -8]", r"request\[0\]\.prompt\[1\]\.tokens: must be non-negative"),
        ("max_tokens = 4", "max_tokens = 0", r"line 15: request\[0\]\.max_tokens: must be at least 1"),
        ("count = 2", "cuont = 2", r"line 18: request\[1\]\.cuont: .*did you mean 'count'"),
        ('id = "b{n}"', 'id = "b"', r"line 17: request\[1\]\.id: needs \{n\}"),
        ("every = 0.5", "every = -1", r"line 19: request\[1\]\.every: must be a number of at least 0"),
        ("every = 0.5", "step = 3", r"line 19: request\[1\]\.step: says when it arrives, and so do at and after"),
        ('after = "a"', 'after = "c"', r"line 16: after: 'b1' needs a request 'c' before it"),
        ('after = "a"\n', "", r"line 16: output_of: 'b1' quotes 'a', which may not have answered"),
        ('path = "/x"', 'pth = "/x"', r"line 23: request\[1\]\.adapter: the key 'path' is missing"),
    ],
)
def test_bad_files_are_refused_with_line_and_key(old, new, message):
    assert old in GOOD
    with pytest.raises(BadScenario, match=message):
        read(GOOD.replace(old, new))


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85"])  # `splitlines` ends a line at each; TOML does not
def test_only_a_line_feed_ends_a_line(sign):
    text = GOOD.replace("A title", f"A{sign}title")
    with pytest.raises(BadScenario, match=r"line 9: request\[0\]\.id: must not be empty"):
        read(text.replace('id = "a"', 'id = ""'))
    with pytest.raises(BadScenario, match=r"line 4: kind: not TOML"):
        read(text.replace('kind = "both"', 'kind = "both'))
    for end in ("", "\n"):
        with pytest.raises(BadScenario, match=r"line 24: after: not TOML"):
            read(f"{text}after ={end}")


def test_a_file_without_requests_is_refused():
    with pytest.raises(BadScenario, match=r"mine\.toml: request: must be one \[\[request\]\] or more"):
        read('title = "t"\nstory = "s"\n')


def test_expectations_are_checked_too():
    with pytest.raises(BadScenario, match=r"expect\.hit_tokns: .*did you mean 'hit_tokens'"):
        read(GOOD + "[expect]\nhit_tokns = 3\n")
    with pytest.raises(BadScenario, match="is no definition of a hit rate"):
        read(GOOD + "[expect]\nhit_rate = { mine = 3.0 }\n")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cache.num_blocks", "write key=value"),
        ("cache.num_blok=4", "there is no key 'cache.num_blok': did you mean 'cache.num_blocks'"),
        ("num_blok=4", "did you mean 'num_blocks'"),
        ("cache.num_blocks=many", r"--set cache\.num_blocks: must be an integer, not 'many'"),
        ("cache.num_blocks=4", "request 'user1' can never fit"),
        ("cache.num_blocks=1000000000000", r"--set cache\.num_blocks: .* hold 15,999,999,999,984 tokens, and a sim"),
        ("cache.block_size=100000", r"--set cache\.block_size: 512 blocks of 100,000 hold 51,200,000 tokens"),
        ("scheduler.profile=vlm", r"must be one of vllm, sglang, not 'vlm': did you mean 'vllm'"),
        ("scheduler.admission=never", r"--set scheduler\.admission: must be one of"),
        ("cost.device=h200", r"--set cost\.device: must be one of a100, h100, 2-cpu-cores, not 'h200': did you mean"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(BadScenario, match=message):
        find_scenario("timestamp-top", [setting])


def test_settings_go_over_the_file():
    scenario = find_scenario("block-straddle", ["block_size=8", "scheduler.queue_policy=lpm", "seed=3", "device=h100"])
    assert scenario.caches["hash"].block_size == 8
    assert scenario.schedulers["radix"].queue_policy == "lpm"
    assert (scenario.seed, scenario.device) == (3, "h100")


def test_unknown_scenarios_suggest_the_nearest(tmp_path):
    with pytest.raises(UnknownScenario, match="no scenario 'timestamp-tip': did you mean 'timestamp-top'"):
        find_scenario("timestamp-tip")
    with pytest.raises(UnknownScenario, match="there is no file"):
        find_scenario(str(tmp_path / "none.toml"))
    with pytest.raises(UnknownScenario, match="cannot be read"):
        find_scenario(f"{tmp_path}/")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadScenario, match="not text in UTF-8"):
        find_scenario(str(tmp_path / "binary.toml"))


def test_a_request_that_fits_no_other_cache_is_refused_when_it_runs():
    scenario = find_scenario("chain-flip", ["cache.radix.num_blocks=100"])
    with pytest.raises(BadScenario, match="the radix cache has 99"):
        Simulator.of(scenario, "radix")
