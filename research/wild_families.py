"""A small model of each family that Transformers registers."""

import torch
import transformers
from transformers.models.auto import modeling_auto

LIMIT = 30e6  # parameters
VOCABULARY, WIDTH, HIDDEN, HEADS, LAYERS, LENGTH = 64, 32, 64, 4, 2, 64
NAMES = {
    VOCABULARY: "vocab_size",
    WIDTH: "hidden_size d_model n_embd embedding_size embed_dim emb_dim dim "
    "word_embed_proj_dim input_embedding_size output_embedding_size "
    "projection_dim attention_hidden_size",
    HIDDEN: "intermediate_size ffn_dim d_inner n_inner d_ff ffn_hidden_size "
    "encoder_ffn_dim decoder_ffn_dim moe_intermediate_size dim_ff "
    "shared_expert_intermediate_size intermediate_size_mlp",
    HEADS: "num_attention_heads n_head n_heads num_heads attention_heads "
    "encoder_attention_heads decoder_attention_heads num_experts "
    "n_routed_experts num_local_experts",
    LAYERS: "num_hidden_layers n_layer n_layers num_layers encoder_layers "
    "decoder_layers num_key_value_heads num_experts_per_tok top_k "
    "moe_topk moe_k",
    LENGTH: "max_position_embeddings n_positions n_ctx max_seq_len seq_length "
    "max_sequence_length",
    8: "head_dim rotary_dim d_kv kv_channels v_head_dim qk_nope_head_dim "
    "qk_rope_head_dim linear_key_head_dim linear_value_head_dim",
    16: "q_lora_rank kv_lora_rank",
}
SIZES = {name: size for size, names in NAMES.items() for name in names.split()}
FAMILIES = sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def make(family):
    """Return a small model of a family of Transformers."""
    kind = transformers.CONFIG_MAPPING[family]
    known = vars(kind())
    sizes = {name: size for name, size in SIZES.items() if name in known}
    sizes |= {"is_decoder": True} if "is_decoder" in known else {}
    if "kv_lora_rank" in known:  # latent attention has keys for each head
        sizes["num_key_value_heads"] = HEADS
    config = kind(**sizes, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    auto = transformers.AutoModelForCausalLM
    with torch.device("meta"):
        count = sum(p.numel() for p in auto.from_config(config).parameters())
    if count > LIMIT:
        raise ValueError(f"{count / 1e6:.0f} million parameters")
    torch.manual_seed(0)
    return auto.from_config(config)
