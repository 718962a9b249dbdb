"""The dialogs about other runs: a fork, a request of one's own, two in lock-step. Each opens a stage of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..asks import forked, offers, policy_hint, policy_suggestion, read_policy
from ..changes import between, injected, injection_defaults, outcome
from ..comparison import Comparison
from ..keys import key_of
from ..player import Player
from ..prompt_text import HELP
from .ask import Ask
from .menu import Menu
from .moving import READ

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
        hint = ask.hint(player.timeline, player.place)
        dialog = Ask(ask.title, hint, lambda text: forked(player, ask, text), line, edit=ask.edit, help=help)
        branch = await stage.app.push_screen_wait(dialog)
    if branch is not None:
        stage.app.open_fork(branch, f"{branch.title}.")


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
        play, forward = key_of(stage.app, "play"), key_of(stage.app, "forward")
        stage.notify(f"{id} is served: {play} plays what happens, {forward} goes on to the next thing.", timeout=READ)


async def compare(stage: Stage) -> None:
    """Two runs on one clock."""
    player = stage.player
    timeline = player.timeline
    choices: list[tuple[str, str]] = []
    made: list[Callable[[], Comparison]] = []
    if player.parent is not None:
        choices.append(("This fork against its original", f"The fork: {player.difference}."))
        made.append(lambda: Comparison.of_fork(player))
    scenario = timeline.scenario
    if scenario is not None:
        what = "The same requests over vLLM's and SGLang's cache" + (
            ", without what forks changed." if timeline.changes else "."
        )
        choices.append(("The hash chain against the radix tree", what))
        command = player.origin.command
        made.append(lambda: Comparison.of_kinds(scenario, player.step_now, command))
    choices.append(("This policy against another one", "From the beginning on."))
    chosen = await stage.app.push_screen_wait(Menu("Compare", "Two runs in lock-step, on one clock.", choices))
    if chosen is None:
        return
    if chosen < len(made):
        comparison: Comparison | None = made[chosen]()
    else:
        hint = policy_hint(timeline, player.place)
        read: Callable[[str], Comparison] = lambda line: Comparison.of_policies(player, read_policy(line))  # noqa: E731
        line = policy_suggestion(timeline, player.place)
        comparison = await stage.app.push_screen_wait(Ask("Another policy", hint, read, line))
    if comparison is not None:
        comparison.speed = player.speed
        stage.app.open_stage(comparison)
