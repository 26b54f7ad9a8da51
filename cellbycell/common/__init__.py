"""What both frameworks share, in plain Python and NumPy."""

from cellbycell.common.decoder import decoder_layer_parameters
from cellbycell.common.encoder import layer_parameters
from cellbycell.common.families import DecoderConfig
from cellbycell.common.llama import LlamaConfig, llama_parts
from cellbycell.common.masks import largest_change
from cellbycell.common.multi_head_attention import head_width, mask_per_head
from cellbycell.common.position_similarity import frequencies, similarity
from cellbycell.common.rotary import stretched
from cellbycell.common.training import learning_rate

__all__ = [
    "DecoderConfig",
    "LlamaConfig",
    "decoder_layer_parameters",
    "frequencies",
    "head_width",
    "largest_change",
    "layer_parameters",
    "learning_rate",
    "llama_parts",
    "mask_per_head",
    "similarity",
    "stretched",
]
