"""What the libraries' experts do, beside those of the chapter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="module", params=["mixture_of_experts"])
def book(chapter, request):
    """The variables of the chapter after a run; not to be changed."""
    return chapter(request.param)  # whose tests then share the run


@pytest.mark.parametrize("kind", ["", "_sparse"])
def test_the_gradients_are_those_of_transformers(book, of_both, kind):
    """Plain, absorbed, and in TensorFlow; bias and indexers have none."""
    tf, theirs = book["tf"], book[f"theirs{kind}"]
    config, arrays = book[f"config{kind}"], book[f"arrays{kind}"]
    ids = torch.tensor(book["token_ids"])
    theirs.zero_grad()
    wanted_loss = theirs(ids, labels=ids).loss
    wanted_loss.backward()
    given = theirs.named_parameters()
    assert all(("indexer" in n) == (w.grad is None) for n, w in given)
    given = theirs.named_parameters()
    wanted = of_both({n: w.grad for n, w in given if w.grad is not None})
    for absorbed in (False, True):
        leaves = {
            n: torch.tensor(w).requires_grad_() for n, w in arrays.items()
        }
        logits = book["run_deepseek"](leaves, ids, config, absorbed=absorbed)
        loss = F.cross_entropy(
            logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
        )
        loss.backward()
        assert abs(float(loss.detach() - wanted_loss.detach())) < 1e-5
        slopes = {n: w.grad for n, w in leaves.items()}
        compare(slopes, wanted)
    leaves = {n: tf.Variable(w) for n, w in arrays.items()}
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
        if "correction_bias" in name or "indexer" in name:
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


@pytest.mark.parametrize("kind", ["DeepseekV32", "GlmMoeDsa"])
def test_which_columns_an_indexer_rotates(book, kind, monkeypatch):
    """Halves in DeepSeek V3.2, pairs in GLM-5; a short text shows neither."""
    sizes = dict(index_topk=4, index_head_dim=6, index_n_heads=8)
    model = book["small_deepseek"](kind, **sizes)
    said, arrays = book["folder_of"](model)
    config = book["deepseek_config"](said | {"model_type": "deepseek_v32"})
    weights = {name: torch.tensor(array) for name, array in arrays.items()}
    ids, off = torch.tensor(book["token_ids"]), {}
    names = book["turn_some"].__globals__
    for way in ("rotary_halves", "rotary"):
        monkeypatch.setitem(names, "rotary_halves", book[way])
        with torch.no_grad():
            gap = (
                book["run_deepseek"](weights, ids, config) - model(ids).logits
            )
        off[way] = gap.abs().amax((0, 2))
        monkeypatch.undo()
    pairs = kind == "GlmMoeDsa"
    right, wrong = sorted(off, reverse=not pairs)
    assert off[right].max() < 1e-4 and off[wrong][:4].max() < 1e-4
    assert off[wrong][4:].min() > 0.1


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
        served = book["served"](chosen.numpy(), 3, by_choice)
        ours = F.one_hot(chosen[:, 0], 8) * torch.tensor(served)
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
