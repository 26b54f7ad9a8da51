"""The chapter on states: other families."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmarks import recall

pytestmark = pytest.mark.xdist_group("frameworks")


# What the chapter defines, beyond the rows that it shows


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_delta_rule_and_positions_answer_all(book, seed):
    """The order of the rules holds for other weights, too."""
    shares = {}
    for rule in ("softmax", "sum", "delta", "rotary"):
        model = book["StateModel"](72, 32, 8, rule)
        book["initialise"](model, seed)
        book["learn"](
            model,
            book["train_texts"],
            rate=0.02,
            seed=seed,
            loss_of=book["recall_loss"],
        )
        said = model(torch.tensor(book["questions"]))[:, 16:].argmax(-1)
        shares[rule] = (said.numpy() == book["answers"]).mean()
    assert max(shares["softmax"], shares["sum"]) < 0.75
    assert min(shares["delta"], shares["rotary"]) > 0.97


@pytest.mark.parametrize("d_head", [8, 16])
def test_more_things_are_recalled_as_stored(book, d_head):
    """A part of `benchmarks.recall`: the rest takes minutes."""
    rule = "rotary" if d_head == 8 else "delta"
    place = book["stored"]["things"].index(4)
    stored = book["stored"]["shares"][f"{rule} {d_head}"][0][place]
    assert abs(recall.answered(rule, d_head, 4) - stored) < 0.02


def test_a_state_has_a_limit_that_softmax_has_not(book):
    """What the chapter says of its picture, for both seeds."""
    things = book["stored"]["things"]
    shares = {
        name: np.array(rows) for name, rows in book["stored"]["shares"].items()
    }
    for name, width in (("delta 8", 8), ("delta 16", 16)):
        for n, found in zip(things, shares[name].T, strict=True):
            assert (found > 0.97).all() if n <= width else (found < 0.96).all()
    ahead = shares["rotary 8"] - shares["delta 8"]
    assert (ahead[:, things.index(12) :] > 0.03).all()
    last = things.index(32)
    assert (shares["rotary 8"] > shares["delta 16"] + 0.05)[:, last].all()


def test_three_equations_of_the_layers(book):
    """(8), (9) and (10), number by number."""
    config, weights = book["config"], book["weights"]
    x = torch.tensor(book["sines"](2, 5, 24, seed=9))

    def of(part):
        return weights[f"model.layers.0.linear_attn.{part}"]

    name = "model.layers.0.linear_attn"
    decay, beta = book["decay_and_beta"](x, weights, name)
    heads = torch.tensor(book["sines"](2, 6, 5, 5, seed=10))  # (B, H, T, V)
    output = book["gated_output"](heads, x, weights, name, config)
    for b in range(2):
        for t in range(5):
            rows = []
            for h in range(6):
                pace = of("in_proj_a.weight")[h] @ x[b, t] + of("dt_bias")[h]
                pace = -of("A_log")[h].exp() * torch.log1p(pace.exp())
                assert torch.allclose(decay[b, h, t], pace, atol=1e-5)
                said = of("in_proj_b.weight")[h] @ x[b, t]
                said = 1 / (1 + (-said).exp())
                assert torch.allclose(beta[b, h, t], said, atol=1e-5)
                o = heads[b, h, t]
                size = (o.square().mean() + config.rms_norm_eps).sqrt()
                rows.append(o / size * of("norm.weight"))
            gate = of("in_proj_z.weight") @ x[b, t]
            row = torch.cat(rows) * gate / (1 + (-gate).exp())
            row = of("out_proj.weight") @ row
            assert torch.allclose(output[b, t], row, atol=1e-5)
    name = "model.layers.3.self_attn"
    found, gate, _ = book["attended_heads"](x, weights, name, config)
    output, _ = book["gated_attention"](x, weights, name, config)
    for b in range(2):
        for t in range(5):
            row = found[b, :, t] / (1 + (-gate[b, :, t]).exp())
            row = weights[f"{name}.o_proj.weight"] @ row.flatten()
            assert torch.allclose(output[b, t], row, atol=1e-5)


def test_lightning_attention_has_one_decay_a_head(book):
    from transformers import MiniMaxConfig
    from transformers.models.minimax import modeling_minimax as minimax

    config = MiniMaxConfig(
        vocab_size=13,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=4,
        block_size=4,
        layer_types=["linear_attention", "full_attention"],
    )
    torch.manual_seed(0)
    layer = minimax.MiniMaxLightningAttention(config, 0)
    x = torch.tensor(book["sines"](2, 11, 24))
    theirs, their_state = layer(x, None, None)
    heads = F.silu(layer.qkv_proj(x)).unflatten(-1, (6, 12)).transpose(1, 2)
    decay = -layer.slope_rate[:, 0].expand(2, 6, 11)
    ours, state = book["in_chunks"](
        book["linear_chunk"],
        5,
        *heads.split(4, -1),
        decay,
        state=torch.zeros(2, 6, 4, 4),
    )
    ours = layer.norm(ours.transpose(1, 2).flatten(-2))
    ours = layer.out_proj(torch.sigmoid(layer.output_gate(x)) * ours)
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert torch.allclose(state, their_state, atol=1e-5)


def test_the_gradients_of_a_whole_mamba2(book):
    ids, theirs = book["token_ids"], book["their_mamba"]
    params = dict(theirs.named_parameters())
    wanted = torch.autograd.grad(
        theirs(ids, labels=ids).loss, [*params.values()]
    )
    leaves = {n: w.clone().requires_grad_() for n, w in params.items()}
    weights = book["mamba_weights"] | leaves
    logits, _ = book["mamba2"](ids, weights, book["mamba_config"])
    loss = F.cross_entropy(logits[:, :-1].mT, ids[:, 1:])
    found = torch.autograd.grad(loss, [*leaves.values()])
    for ours, right in zip(found, wanted, strict=True):
        assert (ours - right).abs().max() < 1e-4 * right.abs().max()


def test_a_limit_of_steps_clamps_many(book):
    """With another limit, or none, the logits are far away."""
    from copy import copy

    config = copy(book["mamba_config"])
    config.time_step_limit = (0.0, float("inf"))
    logits, _ = book["mamba2"](
        book["token_ids"], book["mamba_weights"], config
    )
    assert (logits - book["mamba_logits"]).abs().max() > 0.01


@pytest.mark.parametrize("pace", [-1.4, -1.5])
def test_gradients_at_strong_decays(book, pace):
    """Which functions overflow backwards, as in the story."""
    tf, fits = book["tf"], pace > book["late_limit"]
    for name in ("decay_mask", "decay_mask_late"):
        decays = torch.full((64,), pace, requires_grad=True)
        book[name](decays).sum().backward()
        decays_tf = tf.Variable(tf.fill([64], pace))
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(book[f"{name}_tf"](decays_tf))
        slope = tape.gradient(total, decays_tf)
        for found in (decays.grad, slope):
            assert np.isfinite(found).all() == (name == "decay_mask" or fits)


def test_the_libraries_mask_before_exp(book):
    """Their gradients at strong decays are finite, as the story says."""
    tf = book["tf"]
    rows = [book["sines"](1, 64, 1, 4, seed=i) for i in range(3)]
    decays = torch.full((1, 64, 1), -4.0, requires_grad=True)
    decays_tf = tf.Variable(decays.detach().numpy())
    output, _ = book["qwen3_next"].torch_chunk_gated_delta_rule(
        *map(torch.tensor, rows), g=decays, beta=torch.ones(1, 64, 1)
    )
    output.sum().backward()
    with tf.GradientTape() as tape:
        output, _ = book["hub"]._chunk_gated_delta_rule(
            *map(tf.constant, rows), g=decays_tf, beta=tf.ones((1, 64, 1))
        )
        total = tf.reduce_sum(output)
    for found in (decays.grad, tape.gradient(total, decays_tf)):
        assert np.isfinite(found).all()


def test_gradients_of_both_frameworks(book):
    tf = book["tf"]
    leaves = [x.clone().requires_grad_() for x in book["corrections"]]
    output, _ = book["in_chunks"](
        book["delta_chunk"], 4, *leaves, state=book["start"]
    )
    slopes = torch.autograd.grad(output.square().sum(), leaves)
    leaves_tf = [tf.Variable(x) for x in book["corrections_tf"]]
    weights = {n: tf.Variable(w) for n, w in book["weights_tf"].items()}
    ids, rows = book["token_ids"], book["token_ids_tf"]
    with tf.GradientTape(persistent=True) as tape:
        output_tf, _ = book["in_chunks_tf"](
            book["delta_chunk_tf"], 4, *leaves_tf, state=book["start_tf"]
        )
        loss = tf.reduce_sum(output_tf**2)
        guesses, _ = book["qwen35_tf"](rows, weights, book["config"])
        model_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
            rows[:, 1:], guesses[:, :-1]
        )
        model_loss = tf.reduce_mean(model_loss)
    found = tape.gradient(loss, leaves_tf)
    for ours, theirs in zip(slopes, found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    model = book["theirs"]
    params = dict(model.named_parameters())
    theirs = torch.autograd.grad(
        model(ids, labels=ids).loss, list(params.values())
    )
    found = tape.gradient(model_loss, [weights[name] for name in params])
    for one, other in zip(found, theirs, strict=True):
        far = np.abs(tf.convert_to_tensor(one) - other.numpy()).max()
        assert far < 1e-3 * other.abs().max()


def test_parity_by_a_beta_of_two(book):
    bits = np.arange(10) % 3 % 2
    ones = torch.ones(1, 1, 10, 1)
    betas = torch.tensor(book["betas_for_solution"](bits)).float()
    signs, _ = book["in_chunks"](
        book["delta_chunk"],
        4,
        ones,
        ones,
        0 * ones,
        0 * ones[..., 0],
        betas[None, None],
        state=torch.ones(1, 1, 1, 1),
    )
    assert signs.flatten().tolist() == (1 - 2 * (bits.cumsum() % 2)).tolist()


def test_the_layer_is_that_of_keras_hub(book):
    config, name = book["config"], "model.layers.0.linear_attn"
    weights, tf = book["weights"], book["tf"]
    layer = book["hub"].Qwen3_5GatedDeltaNet(24, 2, 6, 4, 5, 4)
    layer.build((None, None, 24))
    own = {
        part.removeprefix(f"{name}."): weights[part].numpy()
        for part in weights
        if part.startswith(name)
    }
    for part in "in_proj_qkv in_proj_z in_proj_b in_proj_a out_proj".split():
        getattr(layer, part).kernel.assign(own[f"{part}.weight"].T)
    layer.conv1d_weight.assign(own["conv1d.weight"][:, 0])
    layer.dt_bias.assign(own["dt_bias"])
    layer.A_log.assign(own["A_log"])
    layer.norm.weights[0].assign(own["norm.weight"])
    x = tf.constant(book["sines"](2, 9, 24))
    theirs = layer(x)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    ours, _ = book["delta_net_tf"](x, book["weights_tf"], name, config)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_the_whole_model_in_many_parts(book):
    """Parts across the chunks of 64, with a state and without."""
    ids = torch.arange(150)[None] ** 2 % 13
    with torch.no_grad():
        whole, _ = book["qwen35"](ids, book["weights"], book["config"])
        theirs = book["theirs"](ids).logits
        parts, _ = book["in_parts"](
            ids, [70, 1, 64, 15], book["weights"], book["config"]
        )
    assert torch.allclose(whole, theirs, atol=2e-3)
    assert torch.allclose(parts, whole, atol=2e-3)


# What the kit says of the whole model


def test_the_kit_finds_nothing_in_qwen35(book, as_module, asked, often):
    from cellbycell.checks import check_model

    def run(weights, token_ids, cache):
        return book["qwen35"](token_ids, weights, book["config"], cache)

    model = as_module(run, book["weights"])
    count = sum(weight.numel() for weight in book["weights"].values())
    report = check_model(model, **asked, reference=book["theirs"], count=count)
    assert not report.failed and not report.errors, report
    assert often | {
        "reference_parity",
        "parameter_count",
        "target_alignment",
    } <= {*report.passed}, report


def test_the_kit_finds_a_state_that_is_dropped(book, as_module, asked, often):
    from cellbycell.checks import check_model

    def run(weights, token_ids, cache):
        if token_ids.shape[1] > 1:  # as the chapter tells
            cache = [(x, 0 * y) for x, y in cache[:3]] + cache[3:]
        return book["qwen35"](token_ids, weights, book["config"], cache)

    report = check_model(as_module(run, book["weights"]), **asked)
    assert [*report.failed] == ["cache_consistency"], report
    assert often - {"cache_consistency"} <= {*report.passed}


def test_transformers_drafts_no_token_for_a_model_with_a_state(book):
    ids = book["token_ids"][:1]
    with pytest.raises(ValueError, match="stateful"):
        book["theirs"].generate(ids, prompt_lookup_num_tokens=2)
