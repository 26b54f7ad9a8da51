"""The chapter on fine-tuning: the libraries."""

import copy
import json
import re
import shutil
import warnings

import numpy as np
import pytest

from benchmarks import finetune as benchmark

pytestmark = pytest.mark.xdist_group("frameworks")


# The libraries


def same(one, other, atol=1e-4):
    return np.allclose(one.detach(), other.detach(), atol=atol)


def linears(model):
    """Return (part, name) of each matrix of a Llama of Transformers."""
    attention = "q_proj", "k_proj", "v_proj", "o_proj"
    network = "gate_proj", "up_proj", "down_proj"
    for layer in model.model.layers:
        yield from ((layer.self_attn, name) for name in attention)
        yield from ((layer.mlp, name) for name in network)


@pytest.fixture
def by_peft(book):
    """A model of Transformers, with our adapters, and with those of peft."""
    import peft

    base = book["to_transformers"](
        book["sizes"], book["llama_weights"](book["drawn"])
    )
    config = peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear")
    with warnings.catch_warnings(action="ignore"):  # of Transformers 5.23
        model = peft.get_peft_model(copy.deepcopy(base), config).eval()
    ids = book["torch"].tensor(book["token_ids"])
    start = base(ids).logits
    assert book["torch"].equal(model(ids).logits, start)
    rng = np.random.default_rng(0)
    tuned = copy.deepcopy(base).requires_grad_(False)
    inside = linears(tuned), linears(model.base_model.model)
    for (part, name), (theirs, _) in zip(*inside, strict=True):
        of_theirs = getattr(theirs, name)
        of_ours = book["Lora"](getattr(part, name), 8, 16, rng)
        of_ours.up.data = of_ours.up.new_tensor(
            0.1 * rng.normal(size=of_ours.up.shape)
        )
        setattr(part, name, of_ours)
        assert of_theirs.scaling["default"] == of_ours.scale
        down, up = of_theirs.lora_A.default, of_theirs.lora_B.default
        down.weight.data = of_ours.down.detach().clone()
        up.weight.data = of_ours.up.detach().clone()
    return base, tuned, model, ids


def test_peft_has_the_same_logits_loss_and_gradients(book, by_peft):
    base, tuned, model, ids = by_peft
    found, slopes = [], []
    for each in (tuned, model):
        each.zero_grad()
        output = each(ids, labels=ids)
        output.loss.backward()
        found.append(output)
        trained = [w for w in each.parameters() if w.requires_grad]
        slopes.append([w.grad for w in trained])
    assert same(found[0].logits, found[1].logits)
    assert same(found[0].loss, found[1].loss, 1e-5)
    assert len(slopes[0]) == len(slopes[1]) == 28
    for one, other in zip(*slopes, strict=True):
        assert same(one, other) and one.abs().max() > 1e-3
    start = base(ids).logits
    assert not same(found[1].logits, start, 0.5)
    with model.disable_adapter():
        assert book["torch"].equal(model(ids).logits, start)


def test_the_file_of_peft_is_read_and_folded(book, by_peft, tmp_path):
    base, _, model, ids = by_peft
    wanted = model(ids).logits
    model.save_pretrained(tmp_path)
    said = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (said["lora_alpha"], said["r"]) == (16, 8)
    # The book's reader, for a folder with the names of a model's files.
    base.config.save_pretrained(tmp_path)
    names = "adapter_model.safetensors", "model.safetensors"
    shutil.copy(*(tmp_path / name for name in names))
    from cellbycell.checkpoint import read_checkpoint

    _, tensors = read_checkpoint(tmp_path)
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
    assert len(tensors) == 28 and tensors[name].shape == (8, 32)
    state = base.state_dict()
    for name, down in tensors.items():
        if "lora_A" in name:
            up = tensors[name.replace("lora_A", "lora_B")]
            place = name.removeprefix("base_model.model.")
            place = place.replace(".lora_A", "")
            merged = book["folded_solution"](
                state[place].numpy(), down, up, said["lora_alpha"]
            )
            state[place].copy_(book["torch"].tensor(merged))
    assert same(base(ids).logits, wanted)
    with warnings.catch_warnings(action="ignore"):
        assert same(model.merge_and_unload()(ids).logits, wanted)


def test_the_lines_with_peft_run(book, tmp_path, monkeypatch):
    from tools.notebooks import Notebook
    from tools.settings import BOOK

    cells = Notebook.read(BOOK / "finetune.ipynb").cells
    (text,) = (c.source for c in cells if "get_peft_model(" in c.source)
    (lines,) = re.findall(r"```python\n(.*?)\n```", text, re.DOTALL)
    base = book["to_transformers"](
        book["sizes"], book["llama_weights"](book["drawn"])
    )
    names = {"model": copy.deepcopy(base)}
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="ignore"):
        exec(lines, names)
    ids = book["torch"].tensor(book["token_ids"])
    assert same(names["model"](ids).logits, base(ids).logits)
    files = [path.stat().st_size for path in (tmp_path / "adapter").iterdir()]
    assert len(files) >= 2 and sum(files) < 100_000


def test_keras_has_the_same_adapter(book):
    keras, tf = book["keras"], book["tf"]
    x = np.sin(np.arange(1, 85.0) ** 2).reshape(7, 12)
    dense, theirs = keras.layers.Dense(20), keras.layers.Dense(20)
    dense.build((None, 12))
    theirs.build((None, 12))
    theirs.set_weights(dense.get_weights())
    rng = np.random.default_rng(0)
    ours = book["LoraTF"](dense, 4, 8, rng)
    ours.up.assign(rng.normal(size=(20, 4)))
    theirs.enable_lora(4, lora_alpha=8)
    assert len(theirs.trainable_variables) == 3  # with the bias, which ours
    assert len(ours.trainable_variables) == 2  # has frozen
    theirs.lora_kernel_a.assign(tf.transpose(ours.down))
    theirs.lora_kernel_b.assign(tf.transpose(ours.up))
    x = tf.constant(x, tf.float32)
    assert np.allclose(theirs(x), ours(x), atol=1e-4)
    assert not np.allclose(theirs(x), dense(x), atol=0.1)


def test_the_collator_of_transformers_packs_alike(book):
    from transformers import DataCollatorWithFlattening

    texts = []
    for text in book["texts_of_signs"]:
        prompt, answer = map(book["to_ids"], text)
        label = [-100] * len(prompt) + list(answer)
        texts.append({"input_ids": [*prompt, *answer], "labels": label})
    with warnings.catch_warnings(action="ignore"):
        given = DataCollatorWithFlattening(return_tensors="pt")(texts)
    torch = book["torch"]
    names = "input_ids", "labels", "position_ids"
    given = {name: torch.as_tensor(given[name]) for name in names}
    output = book["theirs"](**given, use_cache=False)
    assert same(
        output.loss, book["packed_loss"](book["drawn"], book["packed"])
    )


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_only_a_call_without_a_cache_tells_texts_apart(book, kind):
    theirs = copy.deepcopy(book["theirs"])
    theirs.set_attn_implementation(kind)
    told, calls = book["told"], book["by_call"]
    wrong, right = calls["plain"], calls["use_cache=False"]
    assert same(theirs(**told).logits, wrong)
    assert same(theirs(**told, use_cache=False).logits, right)
    ones = book["ones"]
    assert same(theirs(**told, **ones, use_cache=False).logits, wrong)
    theirs.config.use_cache = False  # as its Trainer does
    assert same(theirs(**told).logits, right)


def test_flash_attention_separates_the_texts_of_one_row_alone(
    book, monkeypatch
):
    from transformers import modeling_flash_attention_utils as flash

    torch, calls = book["torch"], []

    def of_rows(query, key, value):
        calls.append("rows")
        return query

    def of_texts(query, key, value, cu_seqlens_q, cu_seqlens_k):
        calls.append(cu_seqlens_q.tolist())
        return query

    theirs = of_rows, of_texts, None, None, None
    found = theirs, (lambda **given: {}, None)
    monkeypatch.setattr(flash, "lazy_import_flash_attention", lambda _: found)
    for count in (1, 2):
        x = torch.zeros(count, 16, 4, 8)  # (B, T, H, K)
        positions = torch.tensor(book["positions"]).repeat(count, 1)
        flash._flash_attention_forward(
            x, x, x, None, 16, True, position_ids=positions
        )
    assert calls == [[0, 6, 12, 16], "rows"]


def test_peft_asks_for_less_than_all_matrices_of_a_llama():
    from peft.utils.constants import (
        TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as names,
    )

    assert names["llama"] == ["q_proj", "v_proj"]


def test_checkpoints_of_transformers_are_not_reentrant(book):
    from torch.utils.checkpoint import checkpoint

    theirs = copy.deepcopy(book["theirs"]).train()
    with warnings.catch_warnings(action="ignore"):  # of its name in 5.23
        theirs.gradient_checkpointing_enable()
    layer = theirs.model.layers[0]
    assert layer._gradient_checkpointing_func.func is checkpoint
    given = layer._gradient_checkpointing_func.keywords
    assert given == {"use_reentrant": False}


def test_the_trainer_switches_the_cache_off(book, tmp_path):
    from transformers import Trainer, TrainingArguments

    theirs = copy.deepcopy(book["theirs"])
    assert theirs.config.use_cache
    Trainer(theirs, TrainingArguments(output_dir=tmp_path, report_to=[]))
    assert not theirs.config.use_cache


def test_a_table_of_positions_needs_them_to_start_again(book):
    import transformers as hf

    torch = book["torch"]
    torch.manual_seed(0)
    sizes = dict(vocab_size=13, n_embd=24, n_layer=2, n_head=6, n_positions=32)
    ends = dict(bos_token_id=None, eos_token_id=None)
    config = hf.GPT2Config(**sizes, **ends, initializer_range=0.3)
    model = hf.GPT2LMHeadModel(config).eval()
    mask = torch.tensor(book["block_mask"](book["texts"]))[:, None]
    ids, last = torch.tensor(book["token_ids"]), slice(12, 16)
    alone = model(ids[:, last]).logits
    again = torch.tensor(book["positions"])
    for positions, right in ((again, True), (torch.arange(16)[None], False)):
        given = dict(attention_mask=mask, position_ids=positions)
        found = model(ids, **given, use_cache=False).logits[:, last]
        assert same(found, alone) == right


def test_gradients_of_packed_rows_are_those_of_rows_alone(book):
    model = copy.deepcopy(book["drawn"])
    slopes = []
    for length in (6, 16, 40):
        rows = book["pack_rows"](book["texts_check"], length)
        model.zero_grad()
        book["packed_loss"](model, rows).backward()
        slopes.append([w.grad.clone() for w in model.parameters()])
    for one, two, three in zip(*slopes, strict=True):
        assert same(one, two) and same(one, three) and one.abs().max() > 1e-4


def test_keras_leaves_out_what_is_not_asked(book):
    logits, targets = book["right"].numpy(), book["targets"]
    loss = book["keras"].losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0
    )
    ours = book["smoothed_loss_tf"](logits, targets, smoothing=0.0)
    assert np.isclose(float(loss(targets, logits)), float(ours), atol=1e-4)


def test_the_picture_says_what_the_row_is(book):
    from cellbycell.figures import finetune as picture

    torch = book["torch"]

    def to_text(ids):
        return "".join(book["SIGNS"][i] for i in ids)

    ids, targets, texts, positions = book["packed"]  # (1, T)
    assert to_text(ids[0]) == picture.SIGNS
    assert to_text(targets[0]) == picture.ANSWERS
    assert texts[0].tolist() == picture.TEXTS
    assert positions[0].tolist() == picture.PLACES
    given = map(torch.tensor, (ids, positions, book["block_mask"](texts)))
    logits = book["packed_logits"](book["drawn"], *given)[0, -2:]
    loss = torch.nn.functional.cross_entropy(
        logits, torch.tensor(targets)[0, -2:]
    )
    shown = book["show_packed"](book["drawn"], book["to_ids"]).data
    said = re.findall(r"answer has the loss ([\d.]+), and ([\d.]+) in", shown)
    right = [now for now, alone in said if now == alone]
    assert {*right} == {f"{loss:.2f}"} and len(said) > 2 * len(right) > 0


def test_the_template_is_that_of_the_package(book):
    from cellbycell.smol import SYSTEM, chat

    turns = [("system", SYSTEM), ("user", "Why?")]
    text = "".join(text for text, _ in book["chat_parts"](turns))
    assert text + "<|im_start|>assistant\n" == chat("Why?")


@pytest.mark.parametrize("name", [*benchmark.WAYS][1::2])
def test_the_ways_begin_as_they_are_told(book, name):
    way, told = benchmark.WAYS[name], book["ways"][name]
    model = benchmark.student_of(way.get("lora"))
    batches = benchmark.batches_of(way.get("ends", True))[:1]
    losses = book["teach"](model, batches, way["rate"])
    # The second loss shows what the first step has moved.
    second = benchmark.batches_of(way.get("ends", True))[1]
    losses.append(book["packed_loss"](model, second).item())
    assert np.allclose(losses, told["losses"][:2], atol=5e-3)
    assert len(told["losses"]) == len(book["losses"])
    assert [*told["answers"]] == benchmark.QUESTIONS[:4]


def test_smollm2_learns_alike_in_both_frameworks(book):
    twin = book["add_lora"](copy.deepcopy(book["smol"]), rank=8, alpha=16)
    twin_tf = book["add_lora_tf"](book["smol_tf"], rank=8, alpha=16)
    rng, pairs = np.random.default_rng(1), []
    both = map(book["projections"], (twin, twin_tf))
    for (part, name), (part_tf, _) in zip(*both, strict=True):
        ours, theirs = getattr(part, name), getattr(part_tf, name)
        up = 0.01 * rng.normal(size=ours.up.shape)
        ours.up.data = ours.up.new_tensor(up)
        theirs.up.assign(up)
        pairs += (ours.up, theirs.up), (ours.down, theirs.down)
    packed = book["batches"][1]
    loss = book["packed_loss"](twin, packed)
    loss.backward()
    with book["tf"].GradientTape() as tape:
        loss_tf = book["packed_loss_tf"](twin_tf, packed)
    slopes = tape.gradient(loss_tf, [theirs for _, theirs in pairs])
    assert np.isclose(loss.item(), float(loss_tf), atol=1e-3)
    for (ours, _), slope in zip(pairs, slopes, strict=True):
        gap = np.linalg.norm(ours.grad - slope.numpy())
        assert gap < 0.01 * np.linalg.norm(ours.grad)
    book["merge_lora_tf"](twin_tf, factor=0)


def test_the_bytes_are_those_of_a_llama_3_1_8b(book):
    torch = book["torch"]
    sizes = dict(vocab_size=128256, num_layers=32, d_model=4096, num_heads=32)
    sizes |= dict(key_heads=8, d_head=128, d_ff=14336)
    with torch.device("meta"):
        model = book["Llama"](book["LlamaConfig"](**sizes))
    weights = sum(w.numel() for w in model.parameters())
    assert weights == book["linear"] + book["others"]
    matrices = [getattr(*x).weight for x in book["projections"](model)]
    assert sum(w.numel() for w in matrices) == book["linear"]
    assert sum(16 * sum(w.shape) for w in matrices) == book["trained"]
    assert 0.004 < book["trained"] / weights < 0.006
