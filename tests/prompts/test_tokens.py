"""Equal text in different tokens: retokenised answers, a first token twice, seams, Unicode forms."""

import pytest

from minicache.prompts.errors import CannotCompare
from minicache.prompts.kinds import Kind, Layer
from minicache.prompts.prompt import Means
from minicache.text.byte_tokenizer import PlainByteTokenizer
from tests.prompts.cases import SYS, say, then, tool
from tests.prompts.diffs import diff_of, logged, means, verdicts
from tests.prompts.toys import ComposedBytes, ToyPairs

TURNS = "{% for m in messages %}{{ m.content + '|' }}{% endfor %}"


def test_an_answer_in_other_tokens_than_the_tokenizer_would_choose():
    """Case 7. The model generated `ab` `c`; the tokenizer encodes the same text as `a` `bc`."""
    toy = ToyPairs()
    a_, b_, c_, ab, bc, bar = (toy.pieces[piece] for piece in ("a", "b", "c", "ab", "bc", "|"))
    assert (a_, b_, c_, bc, ab) == (0, 1, 2, 4, 3)
    using = Means(toy)
    a = logged({"prompt": "aa|"}, response={"choices": [{"token_ids": [ab, c_]}]})
    diff = diff_of(a, {"prompt": "aa|abc|a"}, using)
    assert (diff.a_tokens, diff.generated_tokens, diff.reuse.lcp) == (3, 2, 3)
    assert toy.encode("aa|abc|a") == [a_, a_, bar, a_, bc, bar, a_]
    assert verdicts(diff) == ((Layer.tokenizer, Kind.retokenised, "prompt", 3, 2, 0),)
    assert (diff.causes[0].a_text, diff.causes[0].b_text) == ("abc", "abc")
    assert "token in, token out" in diff.causes[0].fix


def test_two_endpoints_that_tokenize_differently():
    toy = ToyPairs()
    other = [toy.pieces[piece] for piece in ("ab", "c", "|")]
    a = logged(say(None, "abc"), response={"prompt_token_ids": other})
    diff = diff_of(a, say(None, "abc", "c", "b"), means(TURNS, toy))
    assert verdicts(diff) == ((Layer.tokenizer, Kind.retokenised, "messages[0].content", 0, 3, 0),)
    assert "the same version of the same tokenizer at every endpoint" in diff.causes[0].fix


def test_retokenisation_cannot_be_seen_without_the_ids():
    diff = diff_of({"prompt": "aa|"}, {"prompt": "aa|abc|a"}, Means(ToyPairs()), "abc")
    assert not diff.lost
    assert "upper bound" in " ".join(diff.notes)


def test_retokenised_in_a_conversation_names_the_message():
    toy = ToyPairs()
    ids = [toy.pieces["ab"], toy.pieces["c"]]
    a = logged(say(None, "aa"), response={"choices": [{"token_ids": ids}]})
    diff = diff_of(a, say(None, "aa", "abc", "cab"), means(TURNS, toy))
    assert verdicts(diff) == ((Layer.tokenizer, Kind.retokenised, "messages[1].content", 0, 2, 0),)


def test_the_first_cause_may_be_in_the_tokens_and_the_second_in_the_text():
    toy = ToyPairs()
    ids = toy.encode("aab|cab|")[3:] and [toy.pieces["ab"], toy.pieces["c"]]
    a = logged(say(None, "aa"), response={"choices": [{"token_ids": [*ids, *toy.encode("|aaaacc")]}]})
    diff = diff_of(a, say(None, "aa", "abc|aaaaca", "cab"), means(TURNS, toy))
    assert [cause.kind for cause in diff.causes] == [Kind.retokenised, Kind.branch]


def test_the_first_token_twice():
    """Case 22: the template writes the first token, and the tokenizer of one endpoint adds it."""
    toy = ToyPairs()
    bos = toy.pieces["<bos>"]
    template = "{{ '<bos>' }}" + TURNS
    once = toy.encode("<bos>abc|")
    a = logged(say(None, "abc"), response={"prompt_token_ids": [bos, *once]})
    b = logged(say(None, "abc"), response={"prompt_token_ids": once})
    for first, second in ((a, b), (b, a)):
        diff = diff_of(first, second, means(template, toy))
        assert (diff.reuse.lcp, diff.reuse.blocks) == (1, 0)
        assert [(c.layer, c.kind) for c in diff.causes] == [(Layer.tokenizer, Kind.double_bos)]
        assert diff.ideal.lcp == diff.a_tokens
    assert not diff_of(a, a, means(template, toy)).lost


def test_two_equal_tokens_at_the_start_are_no_fault_of_themselves():
    diff = diff_of({"prompt": "aac|b"}, {"prompt": "aab|b"}, Means(ToyPairs()))
    assert Kind.double_bos not in [cause.kind for cause in diff.causes]


def test_a_repeated_letter_is_no_first_token_twice():
    diff = diff_of({"prompt": "cb|b"}, {"prompt": "ccb|b"}, Means(ToyPairs()))
    assert (diff.reuse.lcp, [cause.kind for cause in diff.causes]) == (1, [Kind.prompt_edit])


def test_a_text_that_differs_inside_a_chosen_token_is_no_retokenisation():
    toy = ToyPairs()
    a = logged(say(None, "aa"), response={"choices": [{"token_ids": [toy.pieces["ab"], toy.pieces["c"]]}]})
    diff = diff_of(a, say(None, "aa", "acc", "cab"), means(TURNS, toy))
    assert verdicts(diff)[0][:4] == (Layer.payload, Kind.branch, "messages[1].content", 1)


def test_a_retokenised_part_ends_at_a_boundary_of_the_chosen_tokens():
    toy = ToyPairs()
    ids = [toy.pieces[piece] for piece in ("ab", "c", "a", "ab")]
    a = logged(say(None, "aa"), response={"choices": [{"token_ids": ids}]})
    diff = diff_of(a, say(None, "aa", "abcaac", "cab"), means(TURNS, toy))
    assert [(c.kind, c.path, c.offset) for c in diff.causes] == [
        (Kind.retokenised, ("messages", 1, "content"), 0),
        (Kind.branch, ("messages", 1, "content"), 5),
    ]


def test_a_prompt_that_ends_inside_a_token_of_the_answer():
    toy = ToyPairs()
    a = logged({"prompt": "c|"}, response={"choices": [{"token_ids": [toy.pieces["ab"], toy.pieces["c"]]}]})
    assert diff_of(a, {"prompt": "c|a"}, Means(toy)).causes == ()


def test_a_seam_in_the_last_token():
    """Case 54: A's last token merged with the text that follows it in B."""
    toy = ToyPairs("abct ", ("at",))
    diff = diff_of({"prompt": "ca ca"}, {"prompt": "ca cat cat"}, Means(toy))
    assert (diff.a_tokens, diff.reuse.lcp) == (5, 4)
    assert verdicts(diff) == ((Layer.tokenizer, Kind.seam, "prompt", 4, 1, 0),)


def test_no_seam_where_the_text_is_another():
    toy = ToyPairs("abct ", ("at",))
    diff = diff_of({"prompt": "ca ca"}, {"prompt": "ca cbt"}, Means(toy))
    assert [cause.kind for cause in diff.causes] == [Kind.prompt_edit]


COMPOSED, DECOMPOSED = "caf\u00e9 ouvert", "cafe\u0301 ouvert"


def test_a_normaliser_hides_a_difference_and_is_named():
    a, b = say(SYS, COMPOSED), say(SYS, DECOMPOSED, "oui", "merci")
    assert verdicts(diff_of(a, b, means()))[0][:4] == (Layer.payload, Kind.normaliser, "messages[1].content", 3)
    hidden = diff_of(a, b, means(tokenizer=ComposedBytes()))
    assert not hidden.lost
    assert verdicts(hidden) == ((Layer.none, Kind.normaliser, "messages[1].content", 3, 0, 0),)
    assert "NFC" in hidden.causes[0].detail


def test_the_cause_after_a_hidden_difference_is_found_where_it_is():
    a = say(SYS, COMPOSED, "oui", "merci beaucoup")
    b = say(SYS, DECOMPOSED, "oui", "merci 7 fois", "de rien", "bon")
    (cause,) = diff_of(a, b, means(tokenizer=ComposedBytes())).causes
    assert (cause.kind, cause.path, cause.offset) == (Kind.branch, ("messages", 3, "content"), 6)


def test_a_difference_after_a_hidden_one_in_the_same_text():
    a, b = say(f"{DECOMPOSED} id 97bd6f0c {COMPOSED}", "hi"), say(f"{COMPOSED} id 24c2d9ee {COMPOSED}", "hi", "x", "y")
    diff = diff_of(a, b, means(tokenizer=ComposedBytes()))
    assert [(c.kind, c.a_text, c.b_text) for c in diff.causes] == [(Kind.nonce, "97bd6f0c", "24c2d9ee")]
    assert diff.ideal.lcp == diff.a_tokens


def test_a_template_s_cause_after_a_hidden_difference():
    think = {"chat_template_kwargs": {"enable_thinking": False}}
    a, b = say(COMPOSED, "Hi", **think), say(DECOMPOSED, "Hi", "Hello!", "More", **think)
    (cause,) = diff_of(a, b, means("think-strip", ComposedBytes()), "Hello!<|im_end|>").causes
    assert (cause.kind, cause.a_text, cause.b_text) == (Kind.template_asymmetry, "<think>\n\n</think>\n\n", "")


def test_logged_tokens_of_another_tokenizer_are_refused():
    a = logged(say(SYS, "hi"), response={"prompt_token_ids": [1, 2, 3]})
    with pytest.raises(CannotCompare, match="log: its logged tokens are not those of this template and tokenizer"):
        diff_of(a, say(SYS, "hi", "hello", "bye"), means())


def test_a_token_that_the_server_puts_before_every_prompt_is_put_before_both():
    lead = [0, *PlainByteTokenizer().encode(means().text(source(say(SYS, "hi"))))]
    a = logged(say(SYS, "hi"), response={"prompt_token_ids": lead})
    diff = diff_of(a, then(say(SYS, "hi"), "hello", "bye"), means(), "hello<|im_end|>")
    assert not diff.lost
    assert diff.reuse.lcp == len(lead) + len("hello<|im_end|>")


def test_gains_are_right_behind_such_a_token():
    a, b = say(f"id 97bd6f0c {SYS}", "hi"), say(f"id 24c2d9ee {SYS}", "hi", "hello", "bye")
    ids = [0, *PlainByteTokenizer().encode(means().text(source(a)))]
    diff = diff_of(logged(a, response={"prompt_token_ids": ids}), b, means())
    assert verdicts(diff) == (
        (Layer.payload, Kind.nonce, "messages[0].content", 3, len(ids) - 23, diff.a_tokens // 16 - 1),
    )
    # The log has the tokens of only one of the requests, of either.
    first = [0, *PlainByteTokenizer().encode(means().text(source(b)))]
    other = diff_of(a, logged(b, response={"prompt_token_ids": first}), means())
    assert verdicts(other) == verdicts(diff)
    template = means("tools-only-if-user-last")
    c = {**say(SYS, "hi"), "tools": [tool("alpha")]}
    ids = [0, *PlainByteTokenizer().encode(template.text(source(c)))]
    diff = diff_of(
        logged(c, response={"prompt_token_ids": ids}), {**say(SYS, "hi", *("x", "y")), "tools": c["tools"]}, template
    )
    (cause,) = diff.causes
    assert (cause.kind, cause.after.lcp) == (Kind.template_asymmetry, len(ids))
    d = {**say(SYS, "hi", "x", "y"), "tools": c["tools"]}
    first = [0, *PlainByteTokenizer().encode(template.text(source(d)))]
    assert verdicts(diff_of(c, logged(d, response={"prompt_token_ids": first}), template)) == verdicts(diff)


def source(body):
    from minicache.prompts.prompt import Source

    return Source(logged(body).body.payload)
