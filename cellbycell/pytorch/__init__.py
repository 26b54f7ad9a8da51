"""What the chapters build, in PyTorch."""

from cellbycell.pytorch.attention import attend
from cellbycell.pytorch.cache import (
    attend_cached,
    attend_grouped,
    generate,
    greedy,
)
from cellbycell.pytorch.decoder import (
    Decoder,
    DecoderLayer,
    Transformer,
    append_ids,
    draw_model,
    evaluating,
    greedy_decode,
    to_torch_transformer,
)
from cellbycell.pytorch.encoder import (
    AddAndNorm,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    RMSNorm,
    SwiGLU,
    draw_weights,
    normalise,
)
from cellbycell.pytorch.families import (
    asking_heads,
    feed_forward,
    mixture,
    project,
    router_shares,
    run_decoder,
    run_layer,
    scale_rows,
    self_attention,
    soft_cap,
    turn_heads,
)
from cellbycell.pytorch.llama import (
    Llama,
    LlamaAttention,
    LlamaLayer,
    llama_weights,
    load_llama,
)
from cellbycell.pytorch.masks import make_causal_mask
from cellbycell.pytorch.multi_head_attention import (
    MultiHeadAttention,
    merge_heads,
    split_heads,
)
from cellbycell.pytorch.position_similarity import rotation_matrix
from cellbycell.pytorch.positional_encoding import position_table
from cellbycell.pytorch.rotary import (
    cosines_and_sines,
    pairs_to_halves,
    rotary,
    rotary_halves,
)
from cellbycell.pytorch.sampling import (
    filter_logits,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    sampler,
)
from cellbycell.pytorch.tiles import (
    attend_in_tiles,
    attend_with_sum,
    gradients_in_tiles,
    join_attention,
    tile_gradients,
    with_sink,
)
from cellbycell.pytorch.training import smooth_targets, smoothed_loss

__all__ = [
    "AddAndNorm",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "Llama",
    "LlamaAttention",
    "LlamaLayer",
    "MultiHeadAttention",
    "RMSNorm",
    "SwiGLU",
    "Transformer",
    "append_ids",
    "asking_heads",
    "attend",
    "attend_cached",
    "attend_grouped",
    "attend_in_tiles",
    "attend_with_sum",
    "cosines_and_sines",
    "draw_model",
    "draw_weights",
    "evaluating",
    "feed_forward",
    "filter_logits",
    "generate",
    "gradients_in_tiles",
    "greedy",
    "greedy_decode",
    "join_attention",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "llama_weights",
    "load_llama",
    "make_causal_mask",
    "merge_heads",
    "mixture",
    "normalise",
    "pairs_to_halves",
    "position_table",
    "project",
    "rotary",
    "rotary_halves",
    "rotation_matrix",
    "router_shares",
    "run_decoder",
    "run_layer",
    "sampler",
    "scale_rows",
    "self_attention",
    "smooth_targets",
    "smoothed_loss",
    "soft_cap",
    "split_heads",
    "tile_gradients",
    "to_torch_transformer",
    "turn_heads",
    "with_sink",
]
