"""The scenarios that come with minicache: complete, and with the figures that they promise."""

import re

import pytest

from minicache.sim.expect import mismatches
from minicache.sim.library import find_scenario, scenario_names
from minicache.sim.lock_step import partings, run_both
from minicache.sim.scenario import GROUPS
from minicache.sim.timeline import Timeline
from tests.sim.goldens import cases

REQUIRED = {
    "timestamp-top",
    "timestamp-end",
    "timestamp-user-turn",
    "three-forms",
    "last-token",
    "short-prompt",
    "chain-flip",
    "shared-system-prompt",
    "multi-turn",
    "tail-first",
    "thrashing",
    "preempt-and-resume",
    "chunked-prefill",
    "two-equal-prompts",
    "radix-split-and-prune",
    "in-batch-order",
    "adapters-and-salts",
    "block-straddle",
    "thinking-stripped",
    "tool-order",
    "thundering-herd",
    "vllm-design-page",
    "sglang-article",
}


def test_none_is_missing():
    assert set(scenario_names()) >= REQUIRED


@pytest.mark.parametrize("name", scenario_names())
def test_each_tells_a_story(name):
    scenario = find_scenario(name)
    assert scenario.group in GROUPS
    assert 2 <= scenario.story.count(". ") + 1 <= 8, "a few sentences"
    assert any(word in scenario.story for word in ("Watch", "watch", "Compare")), "it says what to watch"
    for kind in scenario.kinds:
        assert scenario.expect[kind].per_request.get("hit_tokens"), "it says what is hit"


@pytest.mark.parametrize("name", scenario_names())
def test_a_story_names_another_scenario_by_its_title_and_its_name(name):
    story = " ".join(find_scenario(name).story.split()).lower()
    for other in scenario_names():
        if re.search(rf"\b{other}\b", story):
            assert f"{find_scenario(other).title.lower()} ({other})" in story


@pytest.mark.parametrize("name", scenario_names())
def test_a_setting_in_a_story_stands_in_brackets_and_can_be_set(name):
    """Screens show stories too, and a reader cannot type a setting there."""
    story = " ".join(find_scenario(name).story.split())
    settings = re.findall(r"\(`--set (\S+)`\)", story)
    assert story.count("--") == len(settings)
    for setting in settings:
        assert len(Timeline.record(find_scenario(name, [setting])))


@pytest.mark.parametrize(("name", "kind"), cases())
def test_figures_are_as_expected(name, kind):
    scenario = find_scenario(name)
    summary = Timeline.record(scenario, kind).index
    assert mismatches(scenario.expect[kind], summary) == []
    assert all(request.outcome == "length" for request in summary.requests.values())


@pytest.mark.parametrize("name", [name for name in scenario_names() if len(find_scenario(name).kinds) == 2])
def test_figures_hold_in_lock_step(name):
    scenario = find_scenario(name)
    for kind, timeline in run_both(scenario).items():
        assert mismatches(scenario.expect[kind], timeline.index) == []


def test_figures_that_are_wrong_are_told(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "t"\nstory = "s"\n[[request]]\nid = "a"\nprompt = [{ text = "hello" }]\n'
        '[expect]\nsteps = 3\nhit_tokens = { a = 5, b = 1 }\nhit_rate = { "full blocks" = 7.5 }\n'
    )
    scenario = find_scenario(str(file))
    assert mismatches(scenario.expect["hash"], Timeline.record(scenario).index) == [
        "expect.hit_tokens.a is 5, and the run has 0",
        "expect.hit_tokens: no request is called b",
        "expect.steps is 3, and the run has 16",
        'expect.hit_rate."full blocks" is 7.5 %, and the run has 0.0 %',
    ]


def test_both_caches_part_where_one_publishes_earlier():
    found = partings(run_both(find_scenario("two-equal-prompts")))
    assert [(parting.step, parting.request) for parting in found] == [(1, "user2")]
    assert found[0].sentence == (
        "In step 1 the hash chain finds 32 tokens of user2, the radix tree finds 0 tokens of user2."
    )
    assert "which has not computed it yet" in found[0].why["radix"]


def test_the_article_on_radix_attention_step_by_step():
    """Who goes for whom, as in its nine pictures."""
    timeline = Timeline.record(find_scenario("sglang-article"))
    gone: dict[str, list[str]] = {}
    published: dict[int, str] = {}
    for event in timeline.events:
        match type(event).__name__:
            case "BlocksPublished":
                published[event.node] = event.request
            case "NodeSplit":
                published[event.upper] = "shared"
            case "NodesEvicted":
                gone.setdefault(event.request.rstrip("123"), []).extend(published[node] for node in event.nodes)
    assert list(gone) == ["chat2-turn", "chat1-turn", "more-answers"]
    assert gone["chat2-turn"] == ["chat1-turn2"] * 2, "the latest turn of chat 1 goes for chat 2"
    assert gone["chat1-turn"] == ["chat2-turn2"] * 2 + ["chat2-turn1"] * 2, "all of chat 2 goes for chat 1"
    assert set(gone["more-answers"]) == {"few-shot1", "few-shot2", "few-shot3", "chat1-turn3"}
    kept = {published[node] for node in timeline.at(len(timeline) - 1).nodes}
    assert {"shared", "few-shot3", "chat1-turn1"} <= kept, "the path of the question that is sampled stays"


def test_the_design_page_of_vllm_step_by_step():
    """V22 of the specification, queue by queue."""
    timeline = Timeline.record(find_scenario("vllm-design-page"))

    def after(kind, request, nth=0):
        places = [
            place
            for place, event in enumerate(timeline.events)
            if type(event).__name__ == kind and event.request == request
        ]
        return timeline.at(places[nth])

    first = after("BlocksPublished", "r0")
    assert first.tables["r0"] == [1, 2, 3, 4]
    assert set(first.hashes) == {1, 2, 3}
    assert set(after("BlocksPublished", "r0", 1).hashes) == {1, 2, 3, 4}
    assert after("BlocksAllocated", "r0", 1).tables["r0"] == [1, 2, 3, 4, 5]
    r1 = after("BlocksAllocated", "r1")
    assert r1.tables["r1"] == [1, 2, 6, 7]
    assert list(r1.free) == [8, 9, 10]
    assert list(after("BlocksReleased", "r0").free) == [5, 8, 9, 10, 4, 3]
    assert list(after("BlocksReleased", "r1").free) == [7, 5, 8, 9, 10, 4, 3, 6, 2, 1]
    r2 = after("BlocksAllocated", "r2")
    assert r2.tables["r2"] == [1, 2, 3, 7, 5, 8, 9, 10]
    assert list(r2.free) == [4, 6]
