"""What the chapters build, in TensorFlow."""

from cellbycell.tensorflow.attention import attend_tf
from cellbycell.tensorflow.cache import (
    attend_cached_tf,
    attend_grouped_tf,
    generate_tf,
    greedy_tf,
)
from cellbycell.tensorflow.decoder import (
    DecoderLayerTF,
    DecoderTF,
    TransformerTF,
    append_ids_tf,
    draw_model_tf,
    evaluating_tf,
    greedy_decode_tf,
)
from cellbycell.tensorflow.encoder import (
    AddAndNormTF,
    EncoderLayerTF,
    EncoderTF,
    FeedForwardTF,
    LayerNormTF,
    RMSNormTF,
    SwiGLUTF,
    draw_weights_tf,
    normalise_tf,
)
from cellbycell.tensorflow.families import (
    asking_heads_tf,
    feed_forward_tf,
    mixture_tf,
    project_tf,
    router_shares_tf,
    run_decoder_tf,
    run_layer_tf,
    scale_rows_tf,
    self_attention_tf,
    soft_cap_tf,
    turn_heads_tf,
)
from cellbycell.tensorflow.llama import (
    LlamaAttentionTF,
    LlamaLayerTF,
    LlamaTF,
    llama_weights_tf,
    load_llama_tf,
)
from cellbycell.tensorflow.masks import make_causal_mask_tf
from cellbycell.tensorflow.multi_head_attention import (
    MultiHeadAttentionTF,
    merge_heads_tf,
    split_heads_tf,
    to_keras_layer,
)
from cellbycell.tensorflow.position_similarity import rotation_matrix_tf
from cellbycell.tensorflow.positional_encoding import position_table_tf
from cellbycell.tensorflow.rotary import (
    cosines_and_sines_tf,
    pairs_to_halves_tf,
    rotary_halves_tf,
    rotary_tf,
)
from cellbycell.tensorflow.sampling import (
    filter_logits_tf,
    keep_min_p_tf,
    keep_top_k_tf,
    keep_top_p_tf,
    sampler_tf,
)
from cellbycell.tensorflow.tiles import (
    attend_in_tiles_tf,
    attend_with_sum_tf,
    gradients_in_tiles_tf,
    join_attention_tf,
    tile_gradients_tf,
    with_sink_tf,
)
from cellbycell.tensorflow.training import smooth_targets_tf, smoothed_loss_tf

__all__ = [
    "AddAndNormTF",
    "DecoderLayerTF",
    "DecoderTF",
    "EncoderLayerTF",
    "EncoderTF",
    "FeedForwardTF",
    "LayerNormTF",
    "LlamaAttentionTF",
    "LlamaLayerTF",
    "LlamaTF",
    "MultiHeadAttentionTF",
    "RMSNormTF",
    "SwiGLUTF",
    "TransformerTF",
    "append_ids_tf",
    "asking_heads_tf",
    "attend_cached_tf",
    "attend_grouped_tf",
    "attend_in_tiles_tf",
    "attend_tf",
    "attend_with_sum_tf",
    "cosines_and_sines_tf",
    "draw_model_tf",
    "draw_weights_tf",
    "evaluating_tf",
    "feed_forward_tf",
    "filter_logits_tf",
    "generate_tf",
    "gradients_in_tiles_tf",
    "greedy_decode_tf",
    "greedy_tf",
    "join_attention_tf",
    "keep_min_p_tf",
    "keep_top_k_tf",
    "keep_top_p_tf",
    "llama_weights_tf",
    "load_llama_tf",
    "make_causal_mask_tf",
    "merge_heads_tf",
    "mixture_tf",
    "normalise_tf",
    "pairs_to_halves_tf",
    "position_table_tf",
    "project_tf",
    "rotary_halves_tf",
    "rotary_tf",
    "rotation_matrix_tf",
    "router_shares_tf",
    "run_decoder_tf",
    "run_layer_tf",
    "sampler_tf",
    "scale_rows_tf",
    "self_attention_tf",
    "smooth_targets_tf",
    "smoothed_loss_tf",
    "soft_cap_tf",
    "split_heads_tf",
    "tile_gradients_tf",
    "to_keras_layer",
    "turn_heads_tf",
    "with_sink_tf",
]
