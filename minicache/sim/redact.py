"""Redaction: a run that can be shown without its texts.

Each token becomes a keyed hash of itself and of everything before it in its request. So equal prefixes stay equal and a
difference stays where it is, and a reader learns nothing else: neither a token nor that one occurs twice. Block hashes,
salts and extra keys are hashed with the same key, because an unkeyed hash of a guessed prompt would confirm the guess.
Errors of the model are left out, and so are keys of the header that minicache does not write. Request ids, adapter
names, titles and lengths stay.
"""

import hashlib
import os
import re
from dataclasses import fields, replace
from typing import Any

from minicache.core import events as ev
from minicache.core.events import Event
from minicache.core.request import Namespace
from minicache.sim.timeline import Timeline
from minicache.sim.tokens import FIRST_REDACTED_TOKEN

# Of a log's header. Whoever wrote it may have put a prompt under another key.
KEPT = ("num_blocks", "block_size", "scenario", "title", "cache", "strategy", "scheduler", "seed", "clock")


class Redactor:
    """Redacts the events of one run, in order. Without a `key` it makes a random one and keeps it secret."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key if key is not None else os.urandom(16)
        self._tokens: dict[str, list[int]] = {}  # request -> its redacted tokens
        self._last: dict[str, bytes] = {}  # request -> the hash of all of them

    def __call__(self, event: Event) -> Event:
        changes: dict[str, Any] = {}
        match event:
            case ev.RequestArrived():
                self._tokens[event.request], self._last[event.request] = [], b""
                changes = {
                    "tokens": self._extend(event.request, event.tokens),
                    "namespace": self._space(event.namespace),
                    "stop_tokens": tuple(map(self._alone, event.stop_tokens)),
                }
            case ev.TokensSampled():
                changes = {"tokens": self._extend(event.request, event.tokens)}
            case ev.BlocksPublished():
                known = self._tokens.get(event.request)  # None: the log does not say that it arrived
                part = known and known[event.start : event.start + len(event.tokens)]
                changes = {
                    "tokens": tuple(part or map(self._alone, event.tokens)),
                    "namespace": self._space(event.namespace),
                    "hashes": tuple(map(self._hash, event.hashes)),
                    "parent": None if event.parent is None else self._hash(event.parent),
                }
            case ev.RequestPreempted() if event.error is not None:
                changes = {"error": "redacted"}
            case ev.BlocksEvicted():
                changes = {"hashes": tuple(map(self._hash, event.hashes))}
        if not changes:
            return event
        redacted = replace(event, **changes)
        for stamp in fields(Event):
            object.__setattr__(redacted, stamp.name, getattr(event, stamp.name))
        return redacted

    def _hash(self, data: bytes, size: int = 16) -> bytes:
        return hashlib.blake2b(data, digest_size=size, key=self._key).digest()

    def _alone(self, token: int) -> int:
        return FIRST_REDACTED_TOKEN + int.from_bytes(self._hash(b"stop" + token.to_bytes(8, "little"))[:5], "little")

    def _extend(self, request: str, tokens: tuple[int, ...]) -> tuple[int, ...]:
        known, last = self._tokens[request], self._last[request]
        start = len(known)
        for token in tokens:
            last = self._hash(last + token.to_bytes(8, "little"))
            known.append(FIRST_REDACTED_TOKEN + int.from_bytes(last[:5], "little"))
        self._last[request] = last
        return tuple(known[start:])

    def _space(self, namespace: Namespace) -> Namespace:
        def hide(text: str) -> str:
            return self._hash(text.encode(), 4).hex()

        salt = hide(namespace.salt) if namespace.salt else None
        return Namespace(namespace.adapter, salt, tuple(map(hide, namespace.extra)))


def redacted_sentence(sentence: str) -> str:
    """The sentence of an error in a scenario or a log, without the wrong text, list or table that it ends with."""
    return re.sub(r""", not (['"[{]|b['"]).*""", ", not the value that it has", sentence, flags=re.DOTALL)


def redacted(timeline: Timeline, key: bytes | None = None) -> Timeline:
    """The same run, redacted. It cannot be forked, because it has no scenario."""
    settings = {**{key: value for key, value in timeline.settings.items() if key in KEPT}, "redacted": True}
    redactor = Redactor(key)
    result = Timeline(settings["num_blocks"], settings["block_size"], settings)
    result.kind = timeline.kind
    for event in timeline.events:
        result.add(redactor(event))
    return result
