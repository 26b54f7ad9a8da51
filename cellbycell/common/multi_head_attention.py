"""Multi-head attention: its common part, for what comes after it.

Built and explained in the chapter *Multi-head attention* of the book.
Written by `make package`: change it in the chapter.
"""


def head_width(d_model, num_heads):
    """Return d_model / num_heads, the width of a head, a whole number.

    Raises ValueError, with the numbers that fit, if num_heads does not.
    """
    whole = [h for h in range(1, d_model + 1) if d_model % h == 0]
    if num_heads not in whole:
        raise ValueError(
            f"d_model={d_model} cannot be divided among {num_heads} heads; "
            f"num_heads may be one of {whole}."
        )
    return d_model // num_heads


def layer_projections(layer):
    """Return a layer's four projections: query, key, value, output."""
    first = [layer.query_proj, layer.key_proj, layer.value_proj]
    return [*first, layer.output_proj]


def mask_per_head(attention_mask):
    """Give a (B, T, S) mask an axis for the heads; leave others alone."""
    if attention_mask is None or len(attention_mask.shape) != 3:
        return attention_mask
    return attention_mask[:, None]  # (B, 1, T, S)
