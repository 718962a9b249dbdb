"""The dialogs about other runs: a fork, a request of one's own, two in lock-step. Each opens a stage of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..changes import between, forked, injected, injection_defaults, offers, outcome, read_policy
from ..comparison import Comparison
from ..player import Player
from ..prompt_text import HELP
from .ask import Ask
from .menu import Menu

if TYPE_CHECKING:
    from .stage import Stage


async def fork(stage: Stage) -> None:
    """The same run with something changed."""
    player = stage.player
    offered = offers(player)
    menu = Menu(
        "What if?",
        f"A fork is this run with one thing different. It parts {between(player)}, if nothing else is said.",
        [(ask.title, words) for ask, words in offered],
    )
    chosen = await stage.app.push_screen_wait(menu)
    if chosen is None:
        return
    ask, _ = offered[chosen]
    line = ask.suggest(player.timeline, player.place)
    if line is None:
        branch: Player | None = forked(player, ask, "")
    else:
        help = HELP if ask.edit else ""
        dialog = Ask(ask.title, ask.hint, lambda text: forked(player, ask, text), line, edit=ask.edit, help=help)
        branch = await stage.app.push_screen_wait(dialog)
    if branch is not None:
        stage.app.open_fork(branch)


async def inject(stage: Stage) -> None:
    """A request of one's own, in a fork."""
    player = stage.player
    id, prompt, max_tokens = injection_defaults(player.timeline, player.place)
    hint = (
        f"It comes in {between(player)}, in a fork. Write a prompt, or ID (TOKENS TO GENERATE): PROMPT. It is text, or "
        "parts with | between, which takes the space on either side of it (\\| is a | of the text); [name COUNT] is a "
        "text of that length."
    )
    line = f"{id} ({max_tokens}): {prompt}"
    asked = Ask("A request of your own", hint, lambda line: injected(player, line), line, edit=True, help=HELP)
    branch = await stage.app.push_screen_wait(asked)
    if branch is not None:
        stage.app.open_fork(branch, outcome(branch))


async def prompt(stage: Stage) -> None:
    """A prompt for the live engine."""
    live = stage.live
    assert live is not None
    hint = f"It is served at once, as you type it: | and [ ] and \\ are plain text here. {live.token_words.unit}"
    id = await stage.app.push_screen_wait(Ask("A prompt for the engine", hint, live.submit))
    if id is not None:
        live.watch(id)
        stage.sync()


async def compare(stage: Stage) -> None:
    """Two runs on one clock."""
    player = stage.player
    choices: list[tuple[str, str]] = []
    made: list[Callable[[], Comparison]] = []
    if player.parent is not None:
        choices.append(("The original against this fork", "Both in lock-step, and where they part."))
        made.append(lambda: Comparison.of_fork(player))
    scenario = player.timeline.scenario
    if scenario is not None:
        choices.append(("The hash chain against the radix tree", "The same requests over vLLM's and SGLang's cache."))
        made.append(lambda: Comparison.of_kinds(scenario, player.step_now))
    choices.append(("This policy against another one", "From the beginning on."))
    chosen = await stage.app.push_screen_wait(Menu("Compare", "Two runs in lock-step, on one clock.", choices))
    if chosen is None:
        return
    if chosen < len(made):
        comparison: Comparison | None = made[chosen]()
    else:
        hint = "name=value, one or several: queue_policy=lpm, publish_at=compute, max_num_seqs=2."
        read: Callable[[str], Comparison] = lambda line: Comparison.of_policies(player, read_policy(line))  # noqa: E731
        comparison = await stage.app.push_screen_wait(Ask("Another policy", hint, read, "max_num_seqs=2"))
    if comparison is not None:
        stage.app.open_stage(comparison)
