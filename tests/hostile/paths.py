"""Names of outputs that are no new file: devices, pipes, links, folders, inputs, protected files, impossible names.

A name in `writes` may be created or changed; whatever it is (a link, a mode), it must stay.
"""

from functools import cache
from pathlib import Path
from random import Random

from tests.hostile.arguments import FILES, GIVEN, as_argument, commands, writes_a_file
from tests.hostile.probe import Entry, Probe
from tests.hostile.values import ESCAPES

Files = dict[str, bytes | Entry]
OLD = b"what was there before"


def probe(random: Random) -> Probe:
    command, flag = random.choice(outputs())
    suffix = {"--svg": ".svg", "--html": ".html"}.get(flag, ".jsonl")
    name, files, writes = _target(random, suffix, () if command == "diff" else tuple(FILES))
    given = [part for part in GIVEN.get(command, ("--model", "no-such-model")) if part != "out.svg"]
    given = [part for part in given if part != "--svg"]
    if command == "sim run":
        given += random.choice(((), ("--cache", "both"), ("--redact",)))
        writes += tuple(each for base in (name, *writes) for each in _of_both(base))
    argv = tuple(as_argument(part) for part in (*command.split(), *given, *_named(random, flag, name)))
    return Probe(argv, {**FILES, **files}, writes=writes)


@cache
def outputs() -> tuple[tuple[str, str], ...]:
    """Every option that names a file to write; those that cost nothing more often."""
    found = [(name, p.opts[-1]) for name, parameters in commands() for p in parameters if writes_a_file(name, p)]
    return tuple(found + 3 * [each for each in found if each[0] in ("sim run", "diff")])


def _named(random: Random, flag: str, name: str) -> tuple[str, ...]:
    return (f"{flag}={name}",) if random.random() < 0.3 else (flag, name)


def _of_both(name: str) -> tuple[str, ...]:
    """The names of the logs of two caches."""
    path = Path(name)
    return tuple(
        str(path.with_name(f"{path.stem}.{k}{path.suffix or '.jsonl'}")) for k in ("hash", "radix") if path.name
    )


def _target(random: Random, suffix: str, inputs: tuple[str, ...]) -> tuple[str, Files, tuple[str, ...]]:
    """The name that is given, what is there, and what may be written; `inputs` if the command does not read them."""
    out, target = f"out{suffix}", f"../home/target{suffix}"
    mode = random.choice((0o600, 0o640, 0o666, 0o755))
    cases: list[tuple[str, Files, tuple[str, ...]]] = [
        (out, {}, (out,)),
        (out, {out: Entry("file", OLD, mode=mode)}, (out,)),
        (out, {out: Entry("file", OLD, mode=random.choice((0o400, 0o444, 0)))}, ()),
        (out, {out: Entry("null")}, ()),
        (out, {out: Entry("fifo")}, ()),
        (out, {out: Entry("socket")}, ()),
        (out, {out: Entry("folder")}, ()),
        (out, {target: Entry("file", OLD, mode=mode), out: Entry("link", to=target)}, (target,)),
        (out, {target: Entry("file", OLD, mode=0o400), out: Entry("link", to=target)}, ()),
        (out, {out: Entry("link", to=target)}, (target,)),
        (out, {"null": Entry("null"), out: Entry("link", to="null")}, ()),
        (out, {"pipe": Entry("fifo"), out: Entry("link", to="pipe")}, ()),
        (out, {out: Entry("link", to=out)}, ()),
        (out, {out: Entry("link", to="b"), "b": Entry("link", to=out)}, ()),
        (out, {out: Entry("link", to=".")}, ()),
        (out, {out: Entry("link", to="/proc/self/fd/1")}, ()),
        (out, {out: Entry("link", to="missing/there")}, ()),
        (f"sealed/{out}", {"sealed": Entry("folder", mode=0o555)}, ()),
        (f"shut/{out}", {"shut": Entry("folder", mode=0)}, ()),
        (
            f"link/{out}",
            {"../home/in": Entry("folder"), "link": Entry("link", to="../home/in")},
            (f"../home/in/{out}",),
        ),
        (f"missing/{out}", {}, ()),
        (f"file/{out}", {"file": OLD}, ()),
        (f"a.json/{out}", {}, ()),
        *((name, {}, ()) for name in ("", ".", "..", "/", "./", "//", "../", "/proc/self/fd/1", "/proc/x")),
        (f"/proc/self/{out}", {}, ()),
        ("x" * 300 + suffix, {}, ()),
        ("x" * 5_000 + suffix, {}, ()),
        ("a/" * 3_000 + out, {}, ()),
        ("é" * 127 + suffix, {}, ()),
        *((name, {}, inputs) for name in ("a.json", "b.json", "./a.json")),
        ("x" * (255 - len(suffix)) + suffix, {}, ("x" * (255 - len(suffix)) + suffix,)),
        *(
            (name, {}, (name,))
            for name in map(_file_name, (" ", f"-{suffix}", f"\udcff{suffix}", f"a'b;c{suffix}", f"~{suffix}"))
        ),
    ]
    escape = _file_name(random.choice(ESCAPES)) + suffix
    cases += [(escape, {}, (escape,)), (f"{escape}/{out}", {}, ())]
    return random.choice(cases)


def _file_name(name: str) -> str:
    return name.replace("/", "_").replace("\0", "")
