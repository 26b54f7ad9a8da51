"""The checks of *Images are tokens, too* carry weights between models."""

from operator import attrgetter

# The parts of a layer that have weights, in one order.
_OURS = (
    "around_attention.norm", "attention.query_proj", "attention.key_proj",
    "attention.value_proj", "attention.output_proj",
    "around_feed_forward.norm", "feed_forward.widen", "feed_forward.narrow",
)  # fmt: skip
_VIT = (
    "layernorm_before", "attention.q_proj", "attention.k_proj",
    "attention.v_proj", "attention.o_proj",
    "layernorm_after", "mlp.fc1", "mlp.fc2",
)  # fmt: skip
_CLIP = (
    "layer_norm1", "self_attn.q_proj", "self_attn.k_proj",
    "self_attn.v_proj", "self_attn.out_proj",
    "layer_norm2", "mlp.fc1", "mlp.fc2",
)  # fmt: skip
_KERAS = (
    "layer_norm_1", "mha._query_dense", "mha._key_dense",
    "mha._value_dense", "mha._output_dense",
    "layer_norm_2", "mlp.dense_1", "mlp.dense_2",
)  # fmt: skip


def _parts(layers, names=_OURS):
    return [part for layer in layers for part in attrgetter(*names)(layer)]


def _copy(ours, theirs):
    """Copy the weights of some parts into ours."""
    for one, other in zip(ours, theirs, strict=True):
        for new, old in zip(one.parameters(), other.parameters(), strict=True):
            new.data.copy_(old.data.reshape(new.shape))


def carry_vit(ours, theirs):
    """Give our ViT the weights of a `ViTModel`.

    Parameters
    ----------
    ours
        A ViT of PyTorch.
    theirs
        The model of `transformers`, of the same sizes.
    """
    embeddings = theirs.embeddings
    _copy(
        [ours.embed_patch, *_parts(ours.encoder.layers), ours.encoder.norm],
        [embeddings.patch_embeddings.projection]
        + [*_parts(theirs.layers, _VIT), theirs.layernorm],
    )
    ours.class_token.data = embeddings.cls_token.data.clone()
    ours.table.data = embeddings.position_embeddings.data[0].clone()


def carry_vit_tf(ours, theirs):
    """Give our ViT the weights of a `ViTBackbone`.

    Parameters
    ----------
    ours
        A ViT of TensorFlow.
    theirs
        The model of KerasHub, of the same sizes.
    """
    embedding = theirs.get_layer("vit_patching_and_embedding")
    encoder = theirs.get_layer("vit_encoder")
    for one, other in zip(
        [ours.embed_patch, *_parts(ours.encoder.layers), ours.encoder.norm],
        [embedding.patch_embedding]
        + [*_parts(encoder.encoder_layers, _KERAS), encoder.layer_norm],
        strict=True,
    ):
        old = zip(one.get_weights(), other.get_weights(), strict=True)
        one.set_weights([values.reshape(w.shape) for w, values in old])
    ours.class_token.assign(embedding.class_token)
    ours.table.assign(embedding.position_embedding.embeddings)


def normed(vit, norm):
    """Let a ViT normalise its row of tokens, as CLIP's does.

    Parameters
    ----------
    vit
        A ViT of PyTorch, which is changed.
    norm
        A layer norm of its width.

    Returns
    -------
    torch.nn.Module
        The same ViT.
    """
    embed, vit.norm = vit.embed, norm
    vit.embed = lambda images: norm(embed(images))
    return vit


def quick_gelu(x):
    """Return what CLIP has for GELU.

    Parameters
    ----------
    x
        A tensor of PyTorch.

    Returns
    -------
    torch.Tensor
        Of the same shape.
    """
    return x * (1.702 * x).sigmoid()


def carry_clip(ours, theirs):
    """Give our CLIP the weights of a `CLIPModel`.

    Parameters
    ----------
    ours
        A CLIP of PyTorch, its ViT `normed`.
    theirs
        The model of `transformers`, of the same sizes.
    """
    image, text = theirs.vision_model, theirs.text_model
    words = ours.text.encoder.encoder
    _copy(
        _parts([*ours.image.encoder.layers, *words.layers]),
        _parts([*image.encoder.layers, *text.encoder.layers], _CLIP),
    )
    _copy(
        [ours.image.norm, ours.image.encoder.norm, words.norm]
        + [ours.text.embedding, ours.image_proj, ours.text_proj],
        [image.pre_layrnorm, image.post_layernorm, text.final_layer_norm]
        + [text.embeddings.token_embedding, theirs.visual_projection]
        + [theirs.text_projection],
    )
    conv = image.embeddings.patch_embedding.weight.data
    ours.image.embed_patch.weight.data.copy_(conv.flatten(1))  # (D, C)
    ours.image.embed_patch.bias.data.zero_()
    first = image.embeddings.class_embedding.data.clone()
    ours.image.class_token.data = first[None, None]
    for own, other in ((ours.image, image), (ours.text, text)):
        table = other.embeddings.position_embedding.weight.data
        own.table.data = table.clone()
    ours.log_scale.data = theirs.logit_scale.data.clone()


def _to_twins(parts_tf, parts):
    for part_tf, part in zip(parts_tf, parts, strict=True):
        own = [w.detach().numpy().T for w in part.parameters()]
        part_tf.set_weights(own)


def vit_to_twin(vit_tf, vit, turned=True):
    """Give a ViT in TensorFlow the weights of its twin.

    Parameters
    ----------
    vit_tf, vit
        Of TensorFlow and of PyTorch, of the same sizes.
    turned
        Whether the matrix of patches is put in order for colours that come
        last.
    """
    _to_twins(*[
        [one.embed_patch, *_parts(one.encoder.layers), one.encoder.norm]
        for one in (vit_tf, vit)
    ])  # fmt: skip
    if turned:
        weight = vit.embed_patch.weight.detach()  # (D, C)
        weight = weight.unflatten(1, (3, vit.size, vit.size))
        weight = weight.permute(2, 3, 1, 0).flatten(0, 2)  # (C, D)
        vit_tf.embed_patch.kernel.assign(weight)
    vit_tf.class_token.assign(vit.class_token.detach())
    vit_tf.table.assign(vit.table.detach())


def clip_to_twin(clip_tf, clip):
    """Give a CLIP in TensorFlow the weights of its twin.

    Parameters
    ----------
    clip_tf, clip
        Of TensorFlow and of PyTorch, of the same sizes.
    """
    vit_to_twin(clip_tf.image, clip.image)
    _to_twins(*[
        _parts(one.text.encoder.encoder.layers)
        + [one.text.encoder.encoder.norm, one.image_proj, one.text_proj]
        for one in (clip_tf, clip)
    ])  # fmt: skip
    words = clip.text.embedding.weight.detach()  # (N, D)
    clip_tf.text.embedding.embeddings.assign(words)
    clip_tf.text.table.assign(clip.text.table.detach())
    clip_tf.log_scale.assign(clip.log_scale.detach())
