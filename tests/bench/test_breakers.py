"""The breakers experiment on the small model: each repaired form reuses more, and both ask the same thing."""

import io
import json

import pytest
from rich.console import Console

from minicache.bench.breakers import BREAKERS, STATIC, Breakers, sentence
from minicache.bench.replay import Replay
from minicache.core.errors import InvalidArgument, RequestTooLong
from tests.bench.models import write_hub_model

torch = pytest.importorskip("torch", reason="the engine needs torch: pip install 'minicache-llm[engine]'")
SHORT = Breakers("tiny", requests=3)
NAMES = [breaker.name for breaker in BREAKERS]


@pytest.fixture(scope="module")
def result():
    return SHORT.run()


def hits(cache, stream):
    replay = Replay(cache, sum(map(len, stream)) + 16 * len(stream))
    return [replay.send(prompt, (0,)).num_cached_tokens for prompt in stream][1:]


@pytest.mark.parametrize("cache", ["hash", "radix"])
@pytest.mark.parametrize("seed", range(3))
def test_a_repair_wins(cache, seed):
    for stream in Breakers("tiny", requests=12, seed=seed).streams:
        broken, repaired = (hits(cache, stream[form]) for form in ("broken", "repaired"))
        assert sum(broken) + 200 * len(broken) < sum(repaired)


@pytest.mark.parametrize("form", ["broken", "repaired"])
@pytest.mark.parametrize("breaker", BREAKERS, ids=NAMES)
def test_what_a_form_says(breaker, form):
    """Each repaired form keeps the static parts at the front, and each form asks the question last."""
    for visit in SHORT.visits():
        system, user = getattr(breaker, form)(visit)
        assert user[-1] == visit.question
        assert (system[: len(STATIC)] == STATIC) == (form == "repaired")


def test_what_varies_varies_and_what_is_needed_stays():
    each = Breakers("tiny", requests=6).visits()
    for field in ("question", "time_of_day", "customer", "request_id", "passages"):
        assert len({getattr(visit, field) for visit in each}) == 6
    assert len({tuple(visit.tools) for visit in each}) > 1
    assert len({tuple(sorted(visit.tools)) for visit in each}) == 1
    assert len({visit.examples for visit in each}) > 1
    assert SHORT.visits() == SHORT.visits() != Breakers("tiny", requests=3, seed=1).visits()


def test_the_tools_are_json_in_order():
    names = [json.loads(line)["name"] for line in STATIC[1].splitlines()[1:]]
    assert names == sorted(names)
    assert len(names) == 5


def test_the_run(result):
    for run in result.runs:
        assert [case.breaker.name for case in run.cases] == NAMES
        for case in run.cases:
            assert len(case.broken.answers) == len(case.repaired.answers) == 2
            assert case.gain > 200
    hash_chain, radix = result.runs
    for one, other in zip(hash_chain.cases, radix.cases, strict=True):
        assert one.repaired.median_cached_tokens == other.repaired.median_cached_tokens // 16 * 16


def test_the_object_has_the_keys_that_scripts_read(result):
    value = json.loads(json.dumps(result.to_json()))
    assert list(value) == ["experiment", "model", "dtype", "device", "threads", "requests", "runs"]
    row = value["runs"][0]["rows"][0]
    assert list(row) == ["breaker", "repair", "why", "broken", "repaired"]
    assert {"prompt_tokens", "cached_tokens", "median_cached_tokens", "ttft_ms"} <= set(row["broken"])


def test_the_report(result):
    file = io.StringIO()
    console = Console(file=file, width=100)
    console.print(SHORT.header())
    result.table(console)
    text = " ".join(file.getvalue().split())
    for breaker in BREAKERS:
        assert f"{breaker.name} → {breaker.repair}" in text
        assert text.count(breaker.why) == len(result.runs)
    for run in result.runs:
        most, least = (pick(run.cases, key=lambda case: case.gain) for pick in (max, min))
        assert (
            f"{most.gain:,} tokens a request for {most.breaker.name}, {least.gain:,} for {least.breaker.name}."
            in sentence(run)
        )
    assert [panel.labels for panel in result.chart().panels] == [NAMES, NAMES]


def test_one_request_shows_nothing():
    with pytest.raises(InvalidArgument, match="requests"):
        Breakers("tiny", requests=1)


def test_a_context_that_is_too_short(tmp_path):
    with pytest.raises(RequestTooLong, match="has 64"):
        Breakers(write_hub_model(tmp_path, max_position_embeddings=64)).header()
