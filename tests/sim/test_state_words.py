"""How things stand after a step: what a screen shows, in the transcript."""

import re

import pytest

from minicache.sim.library import find_scenario
from minicache.sim.timeline import Timeline
from minicache.sim.transcript import transcript


@pytest.mark.parametrize(
    ("name", "kind", "step", "states"),
    [
        (
            "two-equal-prompts",
            "hash",
            1,
            [
                "user1 runs: 40 prompt tokens, 1 generated, the KV of 40 in blocks b1–b3.",
                "user2 runs: 40 prompt tokens, 32 of them hit, 1 generated, the KV of 40 in blocks b1, b2, b4.",
                "Used by several requests: blocks b1, b2.",
                "The free queue, from its head: b5–b16.",
                "Lookups can find: blocks 0, 1 of user1 in b1, b2.",
                "Hit rate so far: 40.0% of the tokens looked up.",
            ],
        ),
        (
            "vllm-design-page",
            "hash",
            3,
            [
                "The free queue, from its head: b7, b5, b8–b10, b4, b3, b6, b2, b1.",
                "Lookups can find: blocks 0–3 of r0 in b1–b4; block 2 of r1 in b6.",
                "Hit rate so far: 27.6% of the tokens looked up.",
            ],
        ),
        (
            "radix-split-and-prune",
            "radix",
            2,
            [
                "The free queue, from its head: b38–b64.",
                'The tree: node 1 below node 2 holds 12 tokens, "good morning"; node 2 below the root holds 16 tokens, '
                '"Translate this: "; node 3 below node 2 holds 9 tokens, "thank you".',
                "Leaves that can be evicted, the least recently used first: nodes 1 and 3.",
                "Hit rate so far: 30.2% of the tokens looked up.",
            ],
        ),
    ],
)
def test_how_things_stand_after_a_step(name, kind, step, states):
    told = list(transcript(Timeline.record(find_scenario(name), kind)))
    end = next(index for index, line in enumerate(told) if line[6:].startswith(f"Step {step} ends"))
    behind = [line.strip() for line in told[end + 1 :]]
    assert behind[: len(states)] == states
    assert re.match(r"$|\d+  ", behind[len(states)]), "that is all"


def test_what_can_be_found_is_told_when_it_has_changed():
    told = list(transcript(Timeline.record(find_scenario("chain-flip"))))
    assert sum("Lookups can find" in line for line in told) == 3
    waits = list(transcript(Timeline.record(find_scenario("preempt-and-resume"), "hash")))
    assert "      Waiting, the next one first: second." in waits
    locked = list(transcript(Timeline.record(find_scenario("two-equal-prompts"), "radix")))
    assert "      No leaf of the tree can be evicted: requests lock them all." in locked
