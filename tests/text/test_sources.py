"""Tokenizers and templates by name, and the errors for unknown names."""

import json
import subprocess
import sys

import pytest

from minicache.text import sources
from minicache.text.byte_tokenizer import ByteTokenizer, PlainByteTokenizer
from minicache.text.errors import TemplateFailed, TokenizerFailed
from minicache.text.sources import open_template, open_tokenizer
from minicache.text.template import CHATML
from tests.text.tiny_hub import SMOLLM2_TEMPLATE, write_hub_folder

TEXT = "Zoë <|im_start|> 日本"


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with one model, as `minicache model pull org/model` leaves it."""
    monkeypatch.setenv("MINICACHE_HOME", str(tmp_path))
    folder = tmp_path / "models" / "org--model"
    folder.mkdir(parents=True)
    return write_hub_folder(folder)


def test_bytes_have_no_control_tokens():
    assert isinstance(open_tokenizer("bytes"), PlainByteTokenizer)
    assert open_tokenizer("bytes").encode(TEXT) == list(TEXT.encode())


def test_a_folder_a_file_and_a_name_of_the_store_are_one_tokenizer(store):
    ids = [open_tokenizer(name).encode(TEXT) for name in (store, str(store / "tokenizer.json"), "org/model")]
    assert ids[0] == ids[1] == ids[2]
    assert len(ids[0]) < len(TEXT.encode())
    assert open_tokenizer(store).eos_ids == open_tokenizer(store / "tokenizer.json").eos_ids


def test_the_model_of_the_package():
    assert open_tokenizer("tiny").encode(TEXT) == ByteTokenizer().encode(TEXT)
    assert open_template("tiny").source == CHATML


def test_templates(store, tmp_path):
    file = tmp_path / "some.jinja"
    file.write_text("from the file")
    assert open_template("chatml").source == CHATML
    assert open_template(file).source == "from the file"
    for name in ("org/model", store, store / "tokenizer.json", store / "tokenizer_config.json"):
        assert open_template(name).source == SMOLLM2_TEMPLATE
        assert open_template(name).special_tokens == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}


@pytest.mark.usefixtures("store")
def test_names_that_lead_nowhere(tmp_path):
    with pytest.raises(TokenizerFailed, match="unknown tokenizer 'nope': give bytes, a folder"):
        open_tokenizer("nope")
    with pytest.raises(TemplateFailed, match="unknown template 'nope': give chatml, "):
        open_template("nope")
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json does not exist"):
        open_tokenizer(tmp_path)
    with pytest.raises(TemplateFailed, match="has no chat template"):
        open_template(tmp_path)


def test_files_that_cannot_be_read(tmp_path):
    file = tmp_path / "rubbish"
    file.write_bytes(b"\xff\x00\xfe")
    with pytest.raises(TemplateFailed, match="rubbish is not a readable template"):
        open_template(file)
    rubbish = tmp_path / "tokenizer.json"
    rubbish.write_bytes(b"\xff\x00\xfe")
    with pytest.raises(TokenizerFailed, match=r"tokenizer\.json is not a tokenizer"):
        open_tokenizer(rubbish)


@pytest.mark.usefixtures("store")
def test_a_hub_that_cannot_be_reached(monkeypatch):
    def unreachable(*args, **options):
        raise OSError("no network\nhere")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(TokenizerFailed, match="of a/b from the Hugging Face hub: no network here"):
        open_tokenizer("a/b")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(TokenizerFailed, match="a/b from the Hugging Face hub needs the package 'huggingface_hub': pip"):
        open_template("a/b")


@pytest.mark.usefixtures("store")
def test_a_model_of_the_hub(monkeypatch, tmp_path):
    folder = tmp_path / "fetched"
    folder.mkdir()
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **options: str(write_hub_folder(folder)))
    assert open_template("a/b").source == SMOLLM2_TEMPLATE
    assert open_tokenizer("a/b").encode("<|im_start|>") == [1]


def test_tokens_that_a_tokenizer_adds_by_itself(store):
    config = json.loads((store / "tokenizer.json").read_text())
    config["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}},
    }
    (store / "tokenizer.json").write_text(json.dumps(config))
    plain, adding = open_tokenizer(store), open_tokenizer(store, special_tokens=True)
    assert adding.encode("<|im_start|>hi")[:2] == [1, 1]
    ids, spans = adding.encode_with_offsets("<|im_start|>hi")
    assert ids == [1, *plain.encode("<|im_start|>hi")] == adding.encode("<|im_start|>hi")
    assert spans[:2] == [(0, 0), (0, 12)]


def test_text_and_bytes_import_nothing_heavy():
    code = (
        "import sys\n"
        "from minicache.text.sources import open_template, open_tokenizer\n"
        "from minicache.text.renderer import Chat, Renderer\n"
        "chat = Chat([{'role': 'user', 'content': 'hi'}])\n"
        "text = Renderer(open_template('chatml')).render_with_origins(chat).text\n"
        "assert open_tokenizer('bytes').encode_with_offsets(text)[0]\n"
        "heavy = {'tokenizers', 'torch', 'transformers', 'rich', 'numpy', 'huggingface_hub', 'typer', 'platformdirs'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_store_is_where_models_are_pulled_to(store):
    from minicache.engine.models import store as model_store

    assert model_store.models_folder() == sources.models_folder() == store.parent
