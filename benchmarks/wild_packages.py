"""Small causal models of packages, with random weights, by name.

A maker imports its package when it is called. The sizes are those of
`benchmarks.wild`; what a package demands beyond them is said here.
"""

from functools import partial
from importlib import import_module

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 64, 32, 4, 2, 16
SIZES = {
    "num_tokens": VOCABULARY,
    "dim": WIDTH,
    "heads": HEADS,
    "depth": LAYERS,
    "max_seq_len": LENGTH,
    "causal": True,
}


def x_transformers(**options):
    """Return a decoder of x-transformers."""
    package = import_module("x_transformers")
    layers = package.Decoder(dim=WIDTH, depth=LAYERS, heads=HEADS, **options)
    return package.TransformerWrapper(
        num_tokens=VOCABULARY, max_seq_len=LENGTH, attn_layers=layers
    )


def model(package, name, **sizes):
    """Return a model of a package, made from keyword arguments."""
    return getattr(import_module(package), name)(**sizes)


def keras_hub(name, **sizes):
    """Return a backbone of KerasHub, made from keyword arguments."""
    return getattr(import_module("keras_hub").models, name)(
        vocabulary_size=VOCABULARY,
        num_layers=LAYERS,
        intermediate_dim=2 * WIDTH,
        **sizes,
    )


def call_keras(model, ids):
    """Call a backbone of KerasHub on rows without pads."""
    return model({"token_ids": ids, "padding_mask": ids == ids})


def gpt_from_scratch():
    """Return the GPT of LLMs-from-scratch."""
    return import_module("llms_from_scratch.ch04").GPTModel(
        {
            "vocab_size": VOCABULARY,
            "context_length": LENGTH,
            "emb_dim": WIDTH,
            "n_heads": HEADS,
            "n_layers": LAYERS,
            "drop_rate": 0.1,
            "qkv_bias": False,
        }
    )


def llama_from_scratch():
    """Return the Llama of LLMs-from-scratch."""
    return import_module("llms_from_scratch.llama3").Llama3Model(
        {
            "vocab_size": VOCABULARY,
            "context_length": LENGTH,
            "emb_dim": WIDTH,
            "n_heads": HEADS,
            "n_layers": LAYERS,
            "hidden_dim": 2 * WIDTH,
            "n_kv_groups": 2,
            "rope_base": 10_000.0,
            "dtype": import_module("torch").float32,
            "rope_freq": None,
        }
    )


HEAD = {"num_heads": HEADS, "hidden_dim": WIDTH}
PLACES = {"max_sequence_length": LENGTH}
GROUPS = {"num_query_heads": HEADS, "num_key_value_heads": 2}
GEMMA = {**GROUPS, "hidden_dim": WIDTH, "head_dim": 8}
PACKAGES = {
    "x-transformers": x_transformers,
    "x-transformers, rotary_pos_emb": partial(
        x_transformers, rotary_pos_emb=True
    ),
    "x-transformers, alibi_pos_bias": partial(
        x_transformers, alibi_pos_bias=True
    ),
    "x-transformers, rel_pos_bias": partial(x_transformers, rel_pos_bias=True),
    "x-transformers, use_rmsnorm": partial(x_transformers, use_rmsnorm=True),
    "x-transformers, ff_glu": partial(x_transformers, ff_glu=True),
    "x-transformers, shift_tokens": partial(x_transformers, shift_tokens=1),
    "x-transformers, attn_kv_heads": partial(x_transformers, attn_kv_heads=2),
    "x-transformers, attn_qk_norm": partial(x_transformers, attn_qk_norm=True),
    "x-transformers, attn_pre_talking_heads": partial(
        x_transformers, attn_pre_talking_heads=True
    ),
    "local-attention": partial(
        model,
        "local_attention",
        "LocalTransformer",
        local_attn_window_size=4,
        **SIZES,
    ),
    "linear-attention-transformer": partial(
        model,
        "linear_attention_transformer",
        "LinearAttentionTransformerLM",
        blindspot_size=1,
        **SIZES,
    ),
    "sinkhorn-transformer": partial(
        model,
        "sinkhorn_transformer",
        "SinkhornTransformerLM",
        bucket_size=4,
        **SIZES,
    ),
    "simple-hierarchical-transformer": partial(
        model,
        "simple_hierarchical_transformer",
        "HierarchicalTransformer",
        seq_len=LENGTH,
        num_tokens=VOCABULARY,
        dim=WIDTH,
        depth=LAYERS,
        heads=HEADS,
    ),
    "h-transformer-1d": partial(
        model, "h_transformer_1d", "HTransformer1D", block_size=4, **SIZES
    ),
    "memory-efficient-attention-pytorch": partial(
        model,
        "memory_efficient_attention_pytorch.transformer",
        "Transformer",
        use_flash_attn=False,
        **SIZES,
    ),
    "memory-efficient-attention-pytorch, use_flash_attn": partial(
        model,
        "memory_efficient_attention_pytorch.transformer",
        "Transformer",
        **SIZES,
    ),
    "llms-from-scratch, GPTModel": gpt_from_scratch,
    "llms-from-scratch, Llama3Model": llama_from_scratch,
    "performer-pytorch": partial(
        model, "performer_pytorch", "PerformerLM", dim_head=8, **SIZES
    ),
    "routing-transformer": partial(
        model,
        "routing_transformer",
        "RoutingTransformerLM",
        window_size=4,
        **SIZES,
    ),
    "reformer-pytorch": partial(
        model, "reformer_pytorch", "ReformerLM", bucket_size=4, **SIZES
    ),
    "keras-hub, GPT2Backbone": partial(
        keras_hub, "GPT2Backbone", **HEAD, **PLACES
    ),
    "keras-hub, OPTBackbone": partial(
        keras_hub, "OPTBackbone", **HEAD, **PLACES
    ),
    "keras-hub, GPTNeoXBackbone": partial(
        keras_hub, "GPTNeoXBackbone", **HEAD, **PLACES
    ),
    "keras-hub, BloomBackbone": partial(keras_hub, "BloomBackbone", **HEAD),
    "keras-hub, LlamaBackbone": partial(
        keras_hub, "LlamaBackbone", hidden_dim=WIDTH, **GROUPS
    ),
    "keras-hub, MistralBackbone": partial(
        keras_hub,
        "MistralBackbone",
        hidden_dim=WIDTH,
        sliding_window=8,
        **GROUPS,
    ),
    "keras-hub, QwenBackbone": partial(
        keras_hub, "QwenBackbone", hidden_dim=WIDTH, **GROUPS
    ),
    "keras-hub, GemmaBackbone": partial(keras_hub, "GemmaBackbone", **GEMMA),
}
