"""Names of inputs that are no file to read: devices without an end, folders, loops, locked files, and odd surroundings:
variables of the environment that a command or a library reads."""

from random import Random

from tests.hostile.arguments import as_argument
from tests.hostile.event_logs import recorded
from tests.hostile.probe import Entry, Probe
from tests.hostile.request_logs import BODY
from tests.hostile.scenarios import built_in, to_toml
from tests.hostile.values import encoded, text, to_json

IMPORTS = ("minicache.engine.models.store",)
SPECIAL = (
    *("/dev/zero", "/dev/urandom", "/dev/full", "/dev/null", "/dev/stdin", "/dev/tty"),
    *("/proc/self/mem", "/proc/self/environ", "/proc/self/pagemap", "/proc", "/proc/self/fd/0"),
    *(
        "",
        "-",
        ".",
        "/",
        "x" * 5_000,
        "a/" * 3_000,
        "missing",
        "~nobody-at-all/x",
        "~",
        "folder",
        "locked",
        "shut/a.json",
        "loop",
        "here/loop",
    ),
)
ENVIRONMENT = {
    "HOME": ("", "/dev/null", "/", "missing", "~", "relative"),
    "MINICACHE_HOME": (
        "",
        "/dev/null",
        "/proc",
        "~nobody-at-all/x",
        "~",
        "a.json",
        "folder",
        "locked",
        "\udcff",
        "x" * 5_000,
    ),
    "XDG_CACHE_HOME": ("", "/dev/null", "relative", "a.json"),
    "XDG_CONFIG_HOME": ("", "/dev/null", "relative", "a.json", "locked"),
    "TMPDIR": ("", "/dev/null", "missing", "locked"),
    "LANG": ("C", "POSIX", "xx_YY.UTF-99"),
    "LC_ALL": ("C", "tr_TR.UTF-8"),
    "COLUMNS": ("0", "-1", "1", "x", "9" * 30),
    "LINES": ("0", "x"),
    "TERM": ("", "dumb", "x\x1b[2J"),
    "NO_COLOR": ("1", ""),
    "TZ": ("", ":/etc/passwd", "x" * 300, "\x1b[2J"),
    "HF_HOME": ("", "/dev/null", "a.json"),
}


def probe(random: Random) -> Probe:
    files = {
        **{name: encoded(to_json(BODY)) for name in ("a.json", "b.json")},
        "a.toml": encoded(to_toml({k: v for k, v in built_in("two-equal-prompts").items() if k != "expect"})),
        "a.jsonl": "\n".join(recorded("two-equal-prompts")).encode(),
        "folder": Entry("folder"),
        "locked": Entry("file", b"{}", mode=0),
        "shut": Entry("folder", mode=0),
        "loop": Entry("link", to="loop"),
    }
    env: dict[str, str] = {}
    name = "a.json"
    if random.random() < 0.5:
        name = random.choice(SPECIAL)
        if random.random() < 0.3:
            files |= {
                f"l{suffix}": Entry("link", to=name or ".")
                for suffix in (".toml", ".jsonl", ".gguf")
                if len(name) < 200
            }
            name = random.choice(("l.toml", "l.jsonl", "l.gguf"))
    else:
        for key in random.choices([*ENVIRONMENT], k=random.choice((1, 2))):
            env[key] = as_argument(random.choice((*ENVIRONMENT[key], text(random)))).replace("\x00", "")[:100_000]
    scenario, log = (name, name) if not env else ("a.toml", "a.jsonl")
    argv = random.choice(
        (
            ("diff", name, "b.json"),
            ("diff", name, "1", "2"),
            ("diff", "b.json", "b.json", "--template", name),
            ("diff", "b.json", "b.json", "--tokenizer", name, "--json"),
            ("diff", "b.json", "b.json", "--generated", name),
            ("sim", "run", scenario, "--plain"),
            ("sim", "run", log),
            ("sim", "run", scenario, "--json"),
            ("sim", "explain", scenario, "--event", "3"),
            ("tui", "--events", log, "--svg", "out.svg", "--size", "80x24"),
            ("tui", "--keys"),
            ("model", "list", *random.choice(((), ("--json",)))),
            ("experiment", "three-forms", "--model", name if not env else "no-such-model"),
        )
    )
    return Probe(argv, files, writes=("out.svg", "../home/store/"), env=env)
