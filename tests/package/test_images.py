"""Weights of pictures are carried between models of the same sizes alone."""

import pytest

from cellbycell.figures.images_carried import carry_vit, vit_to_twin

pytestmark = pytest.mark.xdist_group("frameworks")


def test_a_layer_too_many_is_no_twin():
    pytest.importorskip("tensorflow")
    hf = pytest.importorskip("transformers")
    from cellbycell.pytorch import ViT
    from cellbycell.tensorflow import ViTTF

    small = dict(hidden_size=8, num_attention_heads=4, intermediate_size=16)
    small |= dict(image_size=8, patch_size=4, num_hidden_layers=2)
    theirs = hf.ViTModel(hf.ViTConfig(**small), add_pooling_layer=False)
    for layers in (1, 3):
        with pytest.raises(ValueError, match=r"zip\(\)"):
            carry_vit(ViT(4, 4, 8, layers), theirs)
        with pytest.raises(ValueError, match=r"zip\(\)"):
            vit_to_twin(ViTTF(4, 4, 8, layers), ViT(4, 4, 8, 2))
