"""What libraries.md says of states and experts is what the libraries give."""

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")
CACHES = ("past_key_values", "cache")  # the second since Transformers 5.24


def test_the_query_of_a_delta_rule(check_numbers):
    import tensorflow as tf
    import torch
    from keras_hub.src.models.qwen3_5 import qwen3_5_gated_delta_net as hub
    from transformers.models.qwen3_next import modeling_qwen3_next as theirs

    from cellbycell.pytorch import delta_chunk

    key = np.float32([[[[1, 0, 0, 0]]]])  # (B, T, H, K), or (B, H, T, K)
    value = np.float32([[[[8]]]])
    given = 3 * key, key, value, 0 * key[..., 0], key[..., 0]
    tensors = [*map(torch.tensor, given)]
    here, _ = delta_chunk(*tensors, torch.zeros(1, 1, 4, 1))
    rule = theirs.torch_chunk_gated_delta_rule
    read, _ = rule(*tensors)
    read_unit, _ = rule(*tensors, use_qk_l2norm_in_kernel=True)
    by_hub, _ = hub._chunk_gated_delta_rule(*map(tf.constant, given))
    check_numbers(
        delta_read_here=here.item(),
        delta_read_transformers=read.item(),
        delta_read_transformers_unit=read_unit.item(),
        delta_read_keras_hub=np.asarray(by_hub).item(),
    )


def test_the_layout_of_a_state(check_numbers):
    import torch
    from transformers.models.mamba2 import modeling_mamba2 as mamba2
    from transformers.models.qwen3_next import modeling_qwen3_next as qwen

    key, value = torch.ones(1, 2, 1, 3), torch.ones(1, 2, 1, 5)
    pace = torch.ones(1, 2, 1)  # (B, T, H)
    _, state = qwen.torch_chunk_gated_delta_rule(
        key, key, value, g=-pace, beta=pace, output_final_state=True
    )
    given = value, pace, -torch.ones(1), key, key
    _, scanned = mamba2.mamba2_chunk_scan(
        *given, chunk_size=2, return_final_states=True
    )
    check_numbers(
        state_last_axis_qwen=state.shape[-1],
        state_last_axis_mamba=scanned.shape[-1],
    )


def test_the_two_norms_of_qwen(check_numbers):
    import torch
    from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen

    norm, gated = qwen.Qwen3_5RMSNorm(4), qwen.Qwen3_5RMSNormGated(4)
    check_numbers(
        norm_weight_qwen=norm.weight.detach().unique(),
        norm_weight_qwen_gated=gated.weight.detach().unique(),
    )
    rows = torch.ones(1, 4)
    assert torch.allclose(norm(rows), rows, atol=1e-5)


def test_the_balance_loss(check_numbers):
    import torch
    from keras_hub.src.models.qwen3_moe import qwen3_moe_decoder as hub
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
    from transformers.models.mixtral import modeling_mixtral

    scores = 30 * (torch.eye(8) + torch.eye(8).roll(1, 0))  # even, two each
    loss = modeling_mixtral.load_balancing_loss_func((scores,), 8, top_k=2)
    by_hub = hub.compute_load_balancing_loss(scores.numpy(), 8, 2)
    sizes = dict(vocab_size=13, hidden_size=8, intermediate_size=8)
    sizes |= dict(num_hidden_layers=2, num_attention_heads=2, head_dim=4)
    sizes |= dict(num_key_value_heads=2, num_experts=8, num_experts_per_tok=2)
    config = Qwen3MoeConfig(**sizes, moe_intermediate_size=8)
    model, ids = Qwen3MoeForCausalLM(config).train(), torch.ones(1, 5).long()
    plain, asked = (
        model(ids, labels=ids, output_router_logits=given)
        for given in (None, True)
    )
    alone = torch.nn.functional.cross_entropy(plain.logits[0, :-1], ids[0, 1:])
    added = [
        (found.loss - alone) / (config.router_aux_loss_coef * asked.aux_loss)
        for found in (plain, asked)
    ]
    check_numbers(
        balance_transformers=loss,
        balance_keras_hub=by_hub,
        balance_added_by_default=round(added[0].item(), 2),
        balance_added_if_asked=round(added[1].item(), 2),
    )


def test_the_latents_of_deepseek(check_numbers):
    import torch
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    sizes = dict(vocab_size=13, hidden_size=8, intermediate_size=8)
    sizes |= dict(num_hidden_layers=1, first_k_dense_replace=1)
    sizes |= dict(num_attention_heads=2, num_key_value_heads=2, v_head_dim=4)
    sizes |= dict(q_lora_rank=8, kv_lora_rank=16, qk_nope_head_dim=4)
    sizes |= dict(qk_rope_head_dim=4, rms_norm_eps=0.01)
    model = DeepseekV3ForCausalLM(DeepseekV3Config(**sizes)).eval()
    found = model(torch.ones(1, 5).long(), use_cache=True)
    cache = next(found[name] for name in found if name in CACHES)
    layer, norms = cache.layers[0], model.model.layers[0]
    inner = norms.self_attn
    epsilons = {
        inner.q_a_layernorm.variance_epsilon,
        inner.kv_a_layernorm.variance_epsilon,
    }
    assert layer.keys.shape[:3] == layer.values.shape[:3] == (1, 1, 5)
    check_numbers(
        latent_keys=layer.keys.shape[-1],
        latent_values=layer.values.shape[-1],
        latent_epsilon=epsilons.pop(),
        layer_epsilon_deepseek=norms.input_layernorm.variance_epsilon,
    )
    assert not epsilons
