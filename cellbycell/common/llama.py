"""A Llama, cell by cell: its common part, for what comes after it.

Built and explained in the chapter *A Llama, cell by cell* of the book.
Written by `make package`: change it in the chapter.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """The sizes of a Llama, and three switches.

    base: of the rotation, or a tuple of its frequencies. tied: the last layer
    has the embedding's weights. ValueError: heads that cannot be grouped.
    """

    vocab_size: int
    num_layers: int
    d_model: int
    num_heads: int
    key_heads: int
    d_head: int
    d_ff: int
    base: float | tuple[float, ...] = 10000.0
    epsilon: float = 1e-6
    tied: bool = False

    def __post_init__(self):
        if self.num_heads % self.key_heads or self.d_head % 2:
            raise ValueError(
                f"{self.key_heads} key heads for {self.num_heads} heads, of "
                f"width {self.d_head}: heads have to be a multiple of key "
                "heads, and their width even."
            )


def llama_parts(model):
    """Return the parts of a Llama that have weights, by checkpoint name.

    model: of either framework; each part has one tensor.
    """
    parts = {"model.embed_tokens.weight": model.embedding}
    for number, layer in enumerate(model.layers):
        attention, feed_forward = layer.attention, layer.feed_forward
        for name, part in {
            "input_layernorm": layer.attention_norm,
            "self_attn.q_proj": attention.query_proj,
            "self_attn.k_proj": attention.key_proj,
            "self_attn.v_proj": attention.value_proj,
            "self_attn.o_proj": attention.output_proj,
            "post_attention_layernorm": layer.feed_forward_norm,
            "mlp.gate_proj": feed_forward.gate,
            "mlp.up_proj": feed_forward.up,
            "mlp.down_proj": feed_forward.down,
        }.items():
            parts[f"model.layers.{number}.{name}.weight"] = part
    parts["model.norm.weight"] = model.norm
    if not model.tied:
        parts["lm_head.weight"] = model.linear
    return parts
