"""The chapter on experts: its functions."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cellbycell.exercises.mixture_of_experts import softmax

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter defines, beyond the rows that it shows


SIZES = dict(
    seed=st.integers(0, 99),
    T=st.integers(1, 9),
    C=st.integers(1, 6),
    count=st.integers(1, 3),
)


@given(**SIZES, to_one=st.booleans())
def test_any_choice_gives_the_dense_sum(book, seed, T, C, count, to_one):
    """Experts without rows, ties and a single expert included."""
    rng, count = np.random.default_rng(seed), min(count, C)
    scores = rng.normal(size=(T, C)).round(seed % 2)  # half with ties
    x = rng.normal(size=(T, 3))
    by = rng.normal(size=C)
    experts = [lambda rows, b=b: b * rows for b in by]
    order = np.argsort(-scores, -1, kind="stable")[:, :count]
    shares = softmax(scores)[np.arange(T)[:, None], order]
    if to_one:
        shares = shares / shares.sum(-1, keepdims=True)
    wanted = (by[order] * shares).sum(-1)[:, None] * x
    given = torch.tensor(scores)
    chosen = book["choose"](given, count, to_one)
    for way in ("by_loop", "by_sorting"):
        found = book[way](torch.tensor(x), *chosen, experts)
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    chosen = book["choose_tf"](scores, count, to_one)
    for way in ("by_loop_tf", "by_sorting_tf"):
        found = book[way](book["tf"].constant(x), *chosen, experts)
        np.testing.assert_allclose(found, wanted, atol=1e-9)


@given(**SIZES, capacity=st.integers(0, 4))
def test_the_past_does_not_depend_on_the_future(
    book, seed, T, C, count, capacity
):
    rng, count = np.random.default_rng(seed), min(count, C)
    chosen = np.stack([rng.permutation(C)[:count] for _ in range(T)])
    cut = int(rng.integers(T + 1))
    for name, make in (
        ("within_capacity", torch.tensor),
        ("within_capacity_tf", book["tf"].constant),
    ):
        kept = np.asarray(book[name](make(chosen), C, capacity))
        assert kept.shape == chosen.shape
        counts = np.bincount(chosen[kept], minlength=C)
        wanted = np.minimum(
            np.bincount(chosen.flatten(), minlength=C), capacity
        )
        assert (counts == wanted).all()
        if cut:
            alone = np.asarray(book[name](make(chosen[:cut]), C, capacity))
            assert (alone == kept[:cut]).all()


def test_the_balance_loss_of_pads_and_of_small_batches(book):
    """It is no mean over rows: neither pads nor quarters give the same."""
    scores = torch.tensor(np.random.default_rng(1).normal(size=(64, 8)))
    scores = scores + torch.linspace(2, -2, 64)[:, None] * scores[:1]
    whole = book["balance_loss"](scores, 3)
    quarters = [book["balance_loss"](part, 3) for part in scores.chunk(4)]
    assert sum(quarters) / 4 > whole + 0.3
    pads = torch.cat([scores, scores[:1].repeat(192, 1)])
    assert book["balance_loss"](pads, 3) > whole + 0.3


def test_even_is_not_the_least_balance_loss(book):
    found = []
    for seed in range(300):
        scores = 0.1 * np.random.default_rng(seed).normal(size=(64, 8))
        found.append(float(book["balance_loss"](torch.tensor(scores), 3)))
    assert min(found) < 3


def test_grouped_products_want_widths_of_four():
    rows, ends = torch.ones(6, 8), torch.tensor([2, 6], dtype=torch.int32)
    F.grouped_mm(rows, torch.ones(2, 8, 4), offs=ends)
    with pytest.raises(RuntimeError):
        F.grouped_mm(rows, torch.ones(2, 8, 6), offs=ends)


# Latents


def test_operations_are_those_that_pytorch_counts(book):
    from torch.utils.flop_counter import FlopCounterMode

    heads, key, turned, value, latent = 6, 5, 4, 3, 10
    for new, seen in ((1, 7), (5, 5)):
        for absorbed in (False, True):
            given = [
                torch.zeros(1, heads, new, key),
                torch.zeros(1, heads, new, turned),
                torch.zeros(1, seen, latent),
                torch.zeros(1, seen, turned),
                torch.zeros(heads, key, latent),
                torch.zeros(heads, value, latent),
            ]
            with FlopCounterMode(display=False) as counter:
                book["attend_latents"](*given, absorbed)
            sizes = (key, turned, value, latent)
            wanted = book["operations"](new, seen, absorbed, heads, sizes)
            assert counter.get_total_flops() == wanted


def test_a_rotation_cannot_be_absorbed(book):
    """The matrix between query and latent differs for each distance."""
    rng = np.random.default_rng(0)
    down, up = (torch.tensor(rng.normal(size=(4, n))) for n in (6, 3))
    found = []
    for distance in range(4):
        eye = torch.eye(4, dtype=torch.float64)[None]
        turned = book["rotary"](eye, torch.full((1, 4), distance))[0]
        found.append(down.T @ turned @ up)
    assert all((x - found[0]).abs().max() > 0.5 for x in found[1:])


def test_grouped_heads_are_latents_with_a_matrix_that_copies(book):
    from cellbycell.pytorch import attend_grouped, make_causal_mask

    rng = np.random.default_rng(0)
    query, key, value = (
        torch.tensor(rng.normal(size=(2, heads, 7, 4))) for heads in (6, 2, 2)
    )
    wanted = attend_grouped(query, key, value, make_causal_mask(7))
    merged = [part.transpose(1, 2).flatten(2) for part in (key, value)]
    latent = torch.cat(merged, -1)
    up_key, up_value = torch.zeros(2, 6, 4, 16, dtype=torch.float64)
    for head in range(6):
        start = 4 * (head // 3)
        up_key[head, :, start : start + 4] = torch.eye(4)
        up_value[head, :, 8 + start : 12 + start] = torch.eye(4)
    nothing = torch.zeros(2, 6, 7, 0), torch.zeros(2, 7, 0)
    nothing = [part.double() for part in nothing]
    for absorbed in (False, True):
        found = book["attend_latents"](
            query, nothing[0], latent, nothing[1], up_key, up_value, absorbed
        )
        assert torch.allclose(found, wanted)


# A whole DeepSeek V3


def test_the_inner_norms_have_their_own_epsilon(book):
    """Transformers takes 1e-6 for them, whatever rms_norm_eps says."""
    theirs = book["small_deepseek"](rms_norm_eps=1e-3)
    for layer in theirs.model.layers:
        for name in ("kv_a_proj_with_mqa", "q_a_proj"):
            getattr(layer.self_attn, name).weight.data *= 0.01
    weights = of_both(theirs.state_dict())
    said = book["said"] | {"rms_norm_eps": 1e-3}
    config = book["deepseek_config"](said)
    ids = torch.tensor(book["token_ids"])
    with torch.no_grad():
        wanted = theirs(ids).logits
        found = book["run_deepseek"](weights, ids, config)
        config.inner.epsilon = 1e-3
        other = book["run_deepseek"](weights, ids, config)
    assert (found - wanted).abs().max() < 1e-4
    assert (other - wanted).abs().max() > 0.01


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "deepseek_v2"),
        ("attention_bias", True),
        ("q_lora_rank", None),
        ("rope_parameters", {"rope_type": "yarn", "rope_theta": 1e4}),
        ("rope_parameters", None),
        ("rope_interleave", False),
    ],
)
def test_what_is_not_computed_is_refused(book, field, value):
    with pytest.raises(ValueError, match=field):
        book["deepseek_config"](book["said"] | {field: value})


@pytest.mark.parametrize("absorbed", [False, True])
def test_the_kit_finds_nothing(book, as_module, absorbed, asked, often):
    from cellbycell.checks import check_model

    def run(weights, token_ids, cache):
        given = weights, token_ids, book["config"], cache, absorbed
        return book["run_deepseek"](*given)

    model = as_module(run, book["arrays"])
    count = sum(weight.size for weight in book["arrays"].values())
    report = check_model(model, **asked, reference=book["theirs"], count=count)
    assert not report.failed and not report.errors, report
    assert often | {
        "reference_parity",
        "parameter_count",
        "target_alignment",
    } <= {*report.passed}, report


@pytest.mark.parametrize("mistake", ["cache_consistency", "batch_invariance"])
def test_the_kit_finds_a_mistake(book, as_module, mistake, monkeypatch, asked):
    """A latent normalised twice; a capacity over the batch."""
    from cellbycell.checks import check_model

    config, choose = book["config"], book["choose_with_bias"]

    def run(weights, token_ids, cache):
        if mistake == "cache_consistency":
            cache = [
                (
                    book["scale_rows"](
                        latent,
                        weights,
                        f"model.layers.{i}.self_attn.kv_a_layernorm",
                        config.inner,
                    ),
                    shared,
                )
                for i, (latent, shared) in enumerate(cache)
            ]
        return book["run_deepseek"](weights, token_ids, config, cache)

    def choose_some(*given):
        chosen, shares = choose(*given)
        served = book["within_capacity"](chosen, 8, 6)
        return chosen, shares * served

    if mistake == "batch_invariance":
        names = book["routed_experts"].__globals__
        monkeypatch.setitem(names, "choose_with_bias", choose_some)
    report = check_model(as_module(run, book["arrays"]), **asked)
    assert mistake in report.failed and "causality" in report.passed, report
    assert mistake == "batch_invariance" or [*report.failed] == [
        "cache_consistency"
    ], report


# What the libraries do


def of_both(weights):
    """Return weights of Transformers with the names of their checkpoint."""
    weights = dict(weights)
    for name in [*weights]:
        if name.endswith("experts.gate_up_proj"):
            start = name.removesuffix(".gate_up_proj")
            for e, both in enumerate(weights.pop(name)):
                gate, up = both.chunk(2)
                weights[f"{start}.{e}.gate_proj.weight"] = gate
                weights[f"{start}.{e}.up_proj.weight"] = up
            for e, down in enumerate(weights.pop(f"{start}.down_proj")):
                weights[f"{start}.{e}.down_proj.weight"] = down
    return weights


def test_the_gradients_are_those_of_transformers(book):
    """Plain, absorbed, and in TensorFlow; the bias has none."""
    tf, theirs, config = book["tf"], book["theirs"], book["config"]
    ids = torch.tensor(book["token_ids"])
    theirs.zero_grad()
    wanted_loss = theirs(ids, labels=ids).loss
    wanted_loss.backward()
    wanted = of_both({n: w.grad for n, w in theirs.named_parameters()})
    for absorbed in (False, True):
        leaves = {
            n: torch.tensor(w).requires_grad_()
            for n, w in book["arrays"].items()
        }
        logits = book["run_deepseek"](leaves, ids, config, absorbed=absorbed)
        loss = F.cross_entropy(
            logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
        )
        loss.backward()
        assert abs(float(loss.detach() - wanted_loss.detach())) < 1e-5
        slopes = {n: w.grad for n, w in leaves.items()}
        compare(slopes, wanted)
    leaves = {n: tf.Variable(w) for n, w in book["arrays"].items()}
    ids = tf.constant(book["token_ids"])
    with tf.GradientTape() as tape:
        logits = book["run_deepseek_tf"](leaves, ids, config)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                ids[:, 1:], logits[:, :-1]
            )
        )
    slopes = tape.gradient(loss, leaves)
    slopes = {
        n: None if g is None else torch.tensor(tf.convert_to_tensor(g).numpy())
        for n, g in slopes.items()
    }
    compare(slopes, wanted)


def compare(slopes, wanted):
    for name, slope in slopes.items():
        if "correction_bias" in name:
            assert slope is None
        else:
            limit = 1e-4 * wanted[name].abs().max()
            assert (slope - wanted[name]).abs().max() <= limit, name


def test_deepseeks_router(book):
    import transformers as hf
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
        DeepseekV3TopkRouter,
    )

    rng = np.random.default_rng(0)
    for groups, kept in ((1, 1), (4, 2)):
        sizes = dict(hidden_size=6, n_routed_experts=8, num_experts_per_tok=3)
        sizes |= dict(n_group=groups, topk_group=kept)
        config = hf.DeepseekV3Config(**sizes, routed_scaling_factor=1.0)
        router = DeepseekV3TopkRouter(config)
        bias = torch.tensor(rng.normal(size=8) - 1.5).float()
        matrix = torch.tensor(rng.normal(size=(8, 6))).float()
        x = torch.tensor(rng.normal(size=(20, 6))).float()
        with torch.no_grad():
            router.weight.copy_(matrix)
            router.e_score_correction_bias.copy_(bias)
            _, weight, index = router(x)
        scores = x @ matrix.T
        found = book["bias_by_groups"](scores, bias, config)
        chosen, shares = book["choose_with_bias"](scores, found, 3)
        ours, theirs = (
            torch.zeros(20, 8).scatter(1, *pair)
            for pair in ((chosen, shares), (index, weight))
        )
        assert (ours - theirs).abs().max() < 1e-5


def test_switchs_router_serves_tokens_in_turn(book):
    import transformers as hf
    from transformers.models.switch_transformers import (
        modeling_switch_transformers,
    )

    sizes = dict(num_experts=8, expert_capacity=3, d_model=24)
    router = modeling_switch_transformers.SwitchTransformersTop1Router(
        hf.SwitchTransformersConfig(**sizes, hidden_size=24)
    ).eval()
    rows = torch.tensor(book["rows"])
    with torch.no_grad():
        router.classifier.weight.copy_(book["matrix"])
        hot, probs, _ = router(rows[None])
    chosen, shares = book["choose"](rows @ book["matrix"].T, 1, to_one=False)
    for by_choice in (False, True):
        served = book["within_capacity"](chosen, 8, 3, by_choice)
        ours = F.one_hot(chosen[:, 0], 8) * served
        assert torch.equal(ours, hot[0].long()) and not served.all()
    assert (probs[0] - shares).abs().max() < 1e-6


def test_kerashubs_block_and_loss(book):
    from keras_hub.src.models.qwen3_moe import qwen3_moe_decoder

    block, scores = book["block"], book["scores"].detach()
    hub = qwen3_moe_decoder.Qwen3SparseMoeBlock(24, 12, 8, 3, True)
    hub.build((None, None, 24))
    weights = [
        block.gate.weight.T,
        *(w.mT for w in block.experts.parameters()),
    ]
    kernels = [
        hub._sparse_feedforward_gate_dense.kernel,
        hub.expert_bank._expert_feedforward_gate_dense,
        hub.expert_bank._expert_feedforward_output_dense,
    ]
    for kernel, weight in zip(kernels, weights, strict=True):
        kernel.assign(weight.detach().numpy())
    found = hub(book["block_x"].numpy())[0]
    np.testing.assert_allclose(found, book["found_tf"], atol=1e-4)
    loss = qwen3_moe_decoder.compute_load_balancing_loss(scores.numpy(), 8, 3)
    wanted = float(book["balance_loss"](scores, 3))
    assert abs(3 * float(loss) - wanted) < 1e-4


def test_transformers_pools_layers_and_adds_the_loss_only_if_asked(book):
    import transformers as hf

    sizes = dict(vocab_size=13, hidden_size=24, intermediate_size=20)
    sizes |= dict(num_hidden_layers=2, num_attention_heads=6, head_dim=4)
    sizes |= dict(num_key_value_heads=2, num_experts=8, num_experts_per_tok=3)
    sizes |= dict(moe_intermediate_size=12, pad_token_id=None)
    torch.manual_seed(0)
    model = hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**sizes)).eval()
    ids = torch.tensor(book["token_ids"])
    with torch.no_grad():
        plain = model(ids, labels=ids)
        asked = model(ids, labels=ids, output_router_logits=True)
    scores = torch.cat(asked.router_logits)
    pooled = book["balance_loss"](scores, 3)
    assert (asked.aux_loss - pooled).abs() < 1e-5
    added = asked.loss - plain.loss
    assert abs(added - model.config.router_aux_loss_coef * pooled) < 1e-5


def test_nllb_moe_lets_the_past_see_the_future(book):
    """Its decoder in training, with a capacity that is reached."""
    import transformers as hf

    config = hf.NllbMoeConfig(
        vocab_size=20,
        d_model=16,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=8,
        decoder_ffn_dim=8,
        num_experts=4,
        expert_capacity=3,
        encoder_sparse_step=0,
        decoder_sparse_step=1,
        second_expert_policy="all",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        moe_token_dropout=0.0,
        encoder_layerdrop=0.0,
        decoder_layerdrop=0.0,
        pad_token_id=1,
        max_position_embeddings=32,
    )
    torch.manual_seed(0)
    model = hf.NllbMoeModel(config).train()
    for weight in model.parameters():
        weight.data = weight.data * (10 if weight.ndim > 1 else 1)
    ids = torch.randint(3, 20, (1, 12))
    other = ids.clone()
    other[:, 6:] = torch.randint(3, 20, (1, 6))
    moved = {}
    for capacity in (3, 99):
        for module in model.modules():
            if hasattr(module, "expert_capacity"):
                module.expert_capacity = capacity
        with torch.no_grad():
            outputs = [
                model(input_ids=ids[:, :5], decoder_input_ids=each)
                for each in (ids, other)
            ]
        past = [out.last_hidden_state[:, :6] for out in outputs]
        moved[capacity] = float((past[0] - past[1]).abs().max())
    assert moved[99] < 1e-4 < 1e-2 < moved[3]


def test_kerashub_counts_pads_in_its_balance_loss():
    """Qwen3MoeBackbone does; when this fails, mend *In the wild*."""
    import keras
    from keras_hub.models import Qwen3MoeBackbone

    keras.utils.set_random_seed(0)
    model = Qwen3MoeBackbone(
        vocabulary_size=13,
        num_layers=1,
        num_query_heads=6,
        hidden_dim=24,
        head_dim=4,
        intermediate_dim=12,
        moe_intermediate_dim=12,
        num_key_value_heads=2,
        num_experts=4,
        top_k=2,
        norm_top_k_prob=True,
        decoder_sparse_step=1,
        router_aux_loss_coefficient=0.01,
    )
    for weight in model.weights:
        weight.assign(6 * weight)
    ids = np.array([[3, 1, 4, 1, 5]])
    losses = []
    for pads in (0, 15):
        given = {
            "token_ids": np.pad(ids, [(0, 0), (0, pads)]),
            "padding_mask": np.pad(np.ones_like(ids), [(0, 0), (0, pads)]),
        }
        model(given, training=True)
        losses.append(float(model.losses[0]))
    assert abs(losses[0] - losses[1]) > 1e-3
