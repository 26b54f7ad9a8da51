"""The decoder: its common part, for what comes after it.

Built and explained in the chapter *The decoder* of the book.
Written by `make package`: change it in the chapter.
"""

from cellbycell.common.multi_head_attention import _projections


def decoder_layer_parameters(d_model, d_ff):
    """Return how many numbers a decoder layer learns."""
    attentions = 8 * d_model**2 + 8 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    return attentions + feed_forward + 6 * d_model


def _attention_pairs(theirs, ours, of):
    """Yield (tensor of nn.MultiheadAttention, tensor of ours) in pairs."""
    for kind in ("weight", "bias"):
        packed = of(getattr(theirs, f"in_proj_{kind}")).chunk(3)
        theirs_all = [*packed, of(getattr(theirs.out_proj, kind))]
        ours_all = [of(getattr(proj, kind)) for proj in _projections(ours)]
        yield from zip(theirs_all, ours_all, strict=True)


def _norm_pairs(theirs, ours, of):
    """Yield the two pairs of a norm."""
    yield of(theirs.weight), of(ours.scale)
    yield of(theirs.bias), of(ours.shift)


def _layer_pairs(theirs, ours, of):
    """Yield the pairs of an encoder layer or a decoder layer."""
    yield from _attention_pairs(theirs.self_attn, ours.attention, of)
    norms = [ours.around_attention.norm, ours.around_feed_forward.norm]
    if hasattr(ours, "cross_attention"):
        both = theirs.multihead_attn, ours.cross_attention
        yield from _attention_pairs(*both, of)
        norms.insert(1, ours.around_cross_attention.norm)
    for number, norm in enumerate(norms, 1):
        yield from _norm_pairs(getattr(theirs, f"norm{number}"), norm, of)
    wide, narrow = ours.feed_forward.widen, ours.feed_forward.narrow
    for linear, own in [(theirs.linear1, wide), (theirs.linear2, narrow)]:
        yield of(linear.weight), of(own.weight)
        yield of(linear.bias), of(own.bias)


def _model_pairs(theirs, ours, of):
    """Yield the pairs of nn.Transformer and our Transformer.

    of: what is taken of each parameter, such as its gradient.
    """
    for side in ("encoder", "decoder"):
        stack, own = getattr(theirs, side), getattr(ours, side)
        for layers in zip(stack.layers, own.layers, strict=True):
            yield from _layer_pairs(*layers, of)
        yield from _norm_pairs(stack.norm, own.norm, of)
