"""How servers guess whether a template expects the content of a message as one text or as a list of parts.

A template that loops over the content of a message expects parts. vLLM 0.33.0 follows the names that the template gives
to messages. SGLang 0.5.23 knows only three usual names, and assumes that a template that mentions media expects parts.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache

from jinja2 import nodes

from minicache.text.environment import ChatEnvironment

_MEDIA = ("image", "audio", "video", "vision")


@lru_cache(maxsize=32)
def vllm_wants_parts(source: str) -> bool:
    """Whether vLLM gives this template lists of parts (its content format "openai")."""
    tree = ChatEnvironment().parse(source)
    lists = _names_of_messages(tree)
    messages = {name for loop in tree.find_all(nodes.For) if _name(loop.iter) in lists for name in _targets(loop)}
    in_macros = set()
    calls = defaultdict(list)
    for call in tree.find_all(nodes.Call):
        calls[_name(call.node)].append(call)
    for macro in tree.find_all(nodes.Macro):
        content = set(_parameters_for_content(calls[macro.name], macro, messages))
        for loop in macro.find_all(nodes.For):
            in_macros.add(loop)
            if _name(loop.iter) in content:
                return True
    return any(
        _is_content(loop.iter, messages) or (loop not in in_macros and _name(loop.iter) == "content")
        for loop in tree.find_all(nodes.For)
    )


@lru_cache(maxsize=32)
def sglang_wants_parts(source: str) -> bool:
    """Whether SGLang gives this template lists of parts (its content format "openai")."""
    if any(word in source for word in _MEDIA):
        return True
    loops = ChatEnvironment().parse(source).find_all(nodes.For)
    return any(_is_content(loop.iter, {"message", "msg", "m"}) for loop in loops)


def _names_of_messages(tree: nodes.Template) -> set[str]:
    """The names of variables that hold the list of messages or a part of it: `messages`, `rest`, `ns.history`."""
    given = defaultdict(list)  # a name -> the names that are set to it
    for assign in tree.find_all(nodes.Assign):
        target, value = assign.target, assign.node
        if isinstance(target, nodes.NSRef):
            given[_name(value)].append(f"{target.name}.{target.attr}")
        elif isinstance(target, nodes.Name):
            given[_name(value)].append(target.name)
            if isinstance(value, nodes.Call) and _name(value.node) == "namespace":
                for pair in value.kwargs:
                    given[_name(pair.value)].append(f"{target.name}.{pair.key}")
    names: set[str] = set()
    found = ["messages"]
    while found:
        name = found.pop()
        if name not in names:
            names.add(name)
            found += given[name]
    return names


def _parameters_for_content(calls: list[nodes.Call], macro: nodes.Macro, messages: set[str]) -> Iterator[str]:
    """The parameters of a macro that receive the content of a message in some call of it."""
    for call in calls:
        given = [*zip((parameter.name for parameter in macro.args), call.args, strict=False)]
        given += [(pair.key, pair.value) for pair in call.kwargs if isinstance(pair, nodes.Keyword)]
        yield from (name for name, value in given if _is_content(value, messages))


def _is_content(node: nodes.Node, messages: set[str]) -> bool:
    """Whether `node` is `message.content` or `message['content']`, perhaps filtered or sliced."""
    node = _unfiltered(node)
    if isinstance(node, nodes.Getattr):
        return node.attr == "content" and _name(node.node) in messages
    if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
        return node.arg.value == "content" and _name(node.node) in messages
    return False


def _name(node: nodes.Node) -> str | None:
    """`name` or `name.attribute` of a node that may be filtered or sliced; `None` for any other node."""
    node = _unfiltered(node)
    if isinstance(node, nodes.Name):
        return node.name
    if isinstance(node, nodes.Getattr) and (base := _name(node.node)):
        return f"{base}.{node.attr}"
    return None


def _unfiltered(node: nodes.Node) -> nodes.Node:
    while isinstance(node, (nodes.Filter, nodes.Test)) or (
        isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
    ):
        node = node.node  # type: ignore[assignment]
    return node


def _targets(loop: nodes.For) -> Iterator[str]:
    if isinstance(loop.target, nodes.Name):
        yield loop.target.name
