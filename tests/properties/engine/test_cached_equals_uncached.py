"""A prefix cache never changes an answer.

Law: every request gets the same answers as without a cache, from the same logits (within 1e-9 in float64) and with the
same log-probabilities. This holds for all requests in any order, with either cache, at any block size, in a pool so
small that blocks are evicted and requests preempted, in chunks of any size, for both times of publishing, and with a
model of any family. It holds for answers that are sampled, filtered, penalised, stopped by a string or a token, and for
several answers to a prompt. It holds when requests are aborted, between two steps or in the middle of one, when the
victim of a preemption was scheduled in the same step, and when the model fails: no uncomputed block is ever found, and
no block leaks.
"""

from collections import Counter

import pytest
from hypothesis import example, given

from tests.properties.cases import AnswersCase, answers, eventful_cases, troubled_cases
from tests.properties.serving import FAMILIES, require


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_every_answer_is_the_same_with_a_cache(kind: str) -> None:
    seen: Counter[str] = Counter()

    @given(answers(kind, troubled=False))
    def law(case: AnswersCase) -> None:
        happened = case.hold()
        seen.update(happened)
        seen[case.family] += happened["hits"]

    for case in eventful_cases(kind):
        law = example(case)(law)
    law()
    require(seen, "hits", "evictions", "preemptions", "shared blocks", "stops", *FAMILIES)


@pytest.mark.hypothesis
@pytest.mark.parametrize("kind", ["hash", "radix"])
def test_nothing_uncomputed_is_found_after_aborts_and_failures(kind: str) -> None:
    seen: Counter[str] = Counter()

    @given(answers(kind, troubled=True))
    def law(case: AnswersCase) -> None:
        seen.update(case.hold())

    for case in troubled_cases(kind):
        law = example(case)(law)
    law()
    require(seen, "hits", "evictions", "preemptions", "failures", "aborts")
