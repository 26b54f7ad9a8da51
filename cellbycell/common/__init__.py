"""What both frameworks share, in plain Python and NumPy."""

from cellbycell.common.decoder import (
    attention_pairs,
    decoder_layer_parameters,
    layer_pairs,
    model_pairs,
    norm_pairs,
)
from cellbycell.common.encoder import layer_parameters
from cellbycell.common.llama import (
    as_float32,
    checked_weights,
    llama_parts,
    llama_sizes,
    llama_turns,
    present,
    read_checkpoint,
    read_json,
    read_safetensors,
)
from cellbycell.common.masks import largest_change
from cellbycell.common.multi_head_attention import (
    head_width,
    mask_per_head,
    projections,
)
from cellbycell.common.position_similarity import (
    frequencies,
    peak_bytes,
    similarity,
)
from cellbycell.common.positional_encoding import smallest_sets
from cellbycell.common.rotary import stretched
from cellbycell.common.training import learning_rate

__all__ = [
    "as_float32",
    "attention_pairs",
    "checked_weights",
    "decoder_layer_parameters",
    "frequencies",
    "head_width",
    "largest_change",
    "layer_pairs",
    "layer_parameters",
    "learning_rate",
    "llama_parts",
    "llama_sizes",
    "llama_turns",
    "mask_per_head",
    "model_pairs",
    "norm_pairs",
    "peak_bytes",
    "present",
    "projections",
    "read_checkpoint",
    "read_json",
    "read_safetensors",
    "similarity",
    "smallest_sets",
    "stretched",
]
