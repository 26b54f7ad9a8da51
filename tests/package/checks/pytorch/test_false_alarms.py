"""Correct models as people write them: no check fails, none is an error."""

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

from cellbycell.checks import check_model

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called")
transformers = pytest.importorskip("transformers")
SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}
RIGHT = [[5, 6, 7, 8, 9, 3], [4, 9, 8, 0, 0, 0]]
LEFT = [[5, 6, 7, 8, 9, 3], [0, 0, 0, 4, 9, 8]]
LONG = [[5, 6, 7, 8, 9, 3, 11, 12, 13], [4, 9, 8, 10, 14, 15, 2, 3, 5]]


def made(kind, **entries):
    """Return a new model of transformers, small, always the same."""
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM", None)
    model = model or getattr(transformers, f"{kind}LMHeadModel")
    text = "Text" if kind == "Llama4" else ""
    config = getattr(transformers, f"{kind}{text}Config")
    return model(config(**(SIZES | entries)))


def llama(**entries):
    return made("Llama", num_key_value_heads=2, **entries)


class Within(nn.Module):
    """A Llama inside a module of one's own."""

    def __init__(self):
        super().__init__()
        self.model = llama()


class Autocast(Within):
    def forward(self, input_ids):
        with torch.autocast("cpu", torch.bfloat16):
            return self.model(input_ids).logits


class LossAlone(Within):
    def forward(self, input_ids, labels=None):
        output = self.model(input_ids, labels=labels)
        return output.logits if labels is None else output.loss


class Flex(nn.Module):
    """flex_attention, which has no gradient on a CPU."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.last = nn.Embedding(50, 32), nn.Linear(32, 50)

    def forward(self, ids):
        q = self.embed(ids).unflatten(-1, (4, 8)).transpose(1, 2)

        def near(score, b, h, i, j):
            return torch.where(i >= j, score + 0.1 * (j - i), -torch.inf)

        found = flex_attention(q, q, q, score_mod=near)
        return self.last(found.transpose(1, 2).flatten(-2))


def not_fine(report):
    return {r.name for r in report if r.status in ("failed", "error")}


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("Llama", {}),
        ("Qwen3", {"head_dim": 8}),
        ("Gemma2", {"head_dim": 8}),
    ],
)
def test_a_row_of_zeros_for_pads_says_nothing_of_positions(kind, entries):
    model = made(kind, num_key_value_heads=2, pad_token_id=0, **entries)
    assert not_fine(check_model(model, RIGHT)) == set()


def test_without_its_rotation_that_model_has_no_positions(monkeypatch):
    name = "transformers.models.llama.modeling_llama.apply_rotary_pos_emb"
    monkeypatch.setattr(name, lambda q, k, cos, sin: (q, k))
    report = check_model(llama(pad_token_id=0), RIGHT)
    assert not_fine(report) == {"position_dependence"}


def test_an_encoder_is_told_once_that_it_is_one():
    torch.manual_seed(0)
    config = transformers.BertConfig(**SIZES)
    model = transformers.BertForMaskedLM(config)
    report = check_model(model, RIGHT, pad_id=0)
    assert not_fine(report) == {"causality"}
    assert "pass causal=False" in report["causality"].sentence
    assert not_fine(check_model(model, RIGHT, pad_id=0, causal=False)) == set()


def test_positions_do_not_count_left_pads_in_any_part():
    model = made("GPT2", n_embd=32, n_layer=2, n_head=4, n_positions=32)
    assert not_fine(check_model(model, LEFT, pad_id=0)) == set()


def test_a_model_that_selects_keys_gets_a_warning():
    entries = {
        "intermediate_size_mlp": 64,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_local_experts": 2,
        "num_hidden_layers": 4,
        "no_rope_layers": [1] * 4,
    }
    report = check_model(
        made("Llama4", attention_chunk_size=4, **entries), LONG
    )
    assert not_fine(report) == set()
    assert "attention_chunk_size=4" in report["token_influence"].sentence


@pytest.mark.parametrize("make", [Autocast, LossAlone, Flex])
def test_what_cannot_run_is_not_run(make):
    report = check_model(make(), RIGHT, targets=RIGHT)
    assert not_fine(report) <= {"target_alignment", "initial_loss"}
    if make is LossAlone:
        assert report["target_alignment"].status == "not run"
        assert "give loss=" in report["target_alignment"].sentence
    if make is Flex:
        assert report["position_dependence"].status == "not run"


def test_a_row_of_pads_alone_is_no_left_padding():
    assert not_fine(check_model(llama(), [*RIGHT, [0] * 6], pad_id=0)) == set()


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_gradients_that_the_caller_switched_off_are_asked(off):
    model = llama()
    with off():
        report = check_model(model, RIGHT)
    assert not_fine(report) == set()
    assert report["gradient_flow"].status == "passed"


class Pair(nn.Module):
    """PyTorch's own decoder: its layers begin as copies."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True)
        self.embed, self.places = nn.Embedding(50, 32), nn.Embedding(32, 32)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.last = nn.Linear(32, 50)

    def rows(self, ids):
        return self.embed(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, source, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        found = self.decoder(self.rows(ids), self.rows(source), tgt_mask=mask)
        return self.last(found)


def test_a_new_decoder_of_copies_gets_a_warning():
    source, ids = [[5, 6, 7, 8]] * 2, [[1, 2, 3, 4], [1, 5, 6, 7]]
    model = Pair()
    report = check_model(model, source, ids)
    assert not_fine(report) == set()
    assert report["duplicate_weights"].status == "warning"
    nn.init.normal_(model.decoder.layers[0].norm1.weight)  # no longer new
    report = check_model(model, source, ids)
    assert not_fine(report) == {"duplicate_weights"}


class NanoGPT(nn.Module):
    """As nanoGPT: without targets, the logits of the last position alone."""

    def __init__(self, causal=True, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.dropout = dropout
        self.wte, self.wpe = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.c_attn, self.c_proj = nn.Linear(32, 96), nn.Linear(32, 32)
        self.lm_head, self.causal = nn.Linear(32, 50, bias=False), causal

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        parts = self.c_attn(x).unflatten(-1, (3, 4, 8)).transpose(1, 3)
        found = nn.functional.scaled_dot_product_attention(
            *parts.unbind(2), dropout_p=self.dropout, is_causal=self.causal
        )
        x = x + self.c_proj(found.transpose(1, 2).flatten(-2))
        if targets is None:
            return self.lm_head(x[:, [-1]]), None
        logits = self.lm_head(x)
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=-1
        )
        return logits, loss


def test_nanogpt_is_asked_for_all_positions():
    rows = [[5, 6, 7, 8, 9, 3], [4, 9, 8, 2, 1, 7]]
    targets = [[*row[1:], -1] for row in rows]
    report = check_model(NanoGPT(), rows, targets=targets)
    assert not_fine(report) == set()
    assert report["target_alignment"].status == "passed"
    assert any("ids as targets" in note for note in report.notes)
    # With dropout in evaluation, too: the first call draws, and is repeated.
    assert not_fine(check_model(NanoGPT(dropout=0.3), rows)) == {"determinism"}
    leaks = not_fine(check_model(NanoGPT(causal=False), rows))
    assert {"causality", "causality_grad", "prefix_consistency"} <= leaks


class ShiftsAgain(NanoGPT):
    """Its loss shifts targets that are shifted already."""

    def forward(self, idx, targets=None):
        logits, loss = super().forward(idx, targets)
        if targets is not None:
            loss = nn.functional.cross_entropy(
                logits[:, :-1].flatten(0, 1),
                targets[:, 1:].flatten(),
                ignore_index=-1,
            )
        return logits, loss


def test_the_loss_in_nanogpts_forward_is_asked():
    rows = [[5, 6, 7, 8, 9, 3], [4, 9, 8, 2, 1, 7]]
    targets = [[*row[1:], -1] for row in rows]
    report = check_model(ShiftsAgain(), rows, targets=targets)
    assert "the loss shifts them again" in report["target_alignment"].sentence
    given = {
        "loss": lambda logits, y: nn.functional.cross_entropy(
            logits.flatten(0, 1), y.flatten(), ignore_index=-1
        )
    }
    report = check_model(NanoGPT(), rows, targets=targets, **given)
    assert "loss= gets -100, not -1" in report["target_alignment"].sentence


class PlainList(NanoGPT):
    """Its second layer stands in a list."""

    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(32, 32)]


def test_a_plain_list_of_modules_is_named():
    rows = [[5, 6, 7, 8, 9, 3], [4, 9, 8, 2, 1, 7]]
    report = check_model(PlainList(), rows)
    assert "PlainList.blocks is a list" in report["gradient_flow"].sentence
    shared = NanoGPT()
    shared.twice = [shared.wte]  # a second name for what is registered
    assert "gradient_flow" not in not_fine(check_model(shared, rows))
