"""Twenty models, one decoder: its common part, for what comes after it.

Built and explained in the chapter *Twenty models, one decoder* of the book.
Written by `make package`: change it in the chapter.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """The sizes of a decoder, and its switches; their defaults are Llama's.

    bases and windows have an entry for each layer: the base of the rotation
    or its frequencies, None for no positions; how many keys a query may
    attend to, None for all of the past.
    """

    vocab_size: int
    d_model: int
    num_heads: int
    key_heads: int
    d_head: int
    d_ff: int
    num_experts: int = 0  # in each layer; 0: no mixture
    bases: tuple
    windows: tuple
    epsilon: float
    norms: tuple = ("input_layernorm", None, "post_attention_layernorm", None)
    side_by_side: bool = False  # attention and feed-forward
    centred: bool = False  # LayerNorm without a shift, not RMSNorm
    scale_offset: float = 0.0  # 1.0 if scales are stored as w - 1
    heads_norm: str = "none"  # of queries and keys: "head", "width", "turned"
    pairs: bool = False  # how rotary positions pair columns; else halves
    score_scale: float | None = None  # None: 1 / sqrt(d_head)
    score_cap: float | None = None
    biases: tuple = ()  # projections that have one, such as "q"
    activation: str = "silu"
    experts_asked: int = 0  # that a token is routed to
    to_one: bool = True  # whether their shares sum to one
    embedding_factor: float = 1.0
    residual_factor: float = 1.0
    logit_factor: float = 1.0
    logit_cap: float | None = None
    tied: bool = False  # the embedding's table makes the logits
