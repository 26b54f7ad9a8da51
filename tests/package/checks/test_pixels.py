"""The kit on models that read pictures, in both frameworks."""

import numpy as np
import pytest

from cellbycell.checks import check_model
from cellbycell.checks.pixels import OF_WORDS
from cellbycell.pictures import draw_pairs, draw_pictures

pytestmark = pytest.mark.xdist_group("frameworks")
PICTURES = draw_pictures(draw_pairs(4, seed=0), seed=0)
MASK = np.arange(16) < np.array([16, 12, 16, 8])[:, None]


class Torch:
    """A small reader of pictures, with mistakes by name."""

    def __new__(cls, mistake="", head=False):
        torch = pytest.importorskip("torch")
        from cellbycell.pytorch import ViT, draw_weights

        class Reader(ViT):
            def forward(self, images, mask=None):
                x = self.embed(images)
                if mistake == "view":
                    flat = images.reshape(len(images), 16, -1)
                    x = torch.cat([x[:, :1], self.embed_patch(flat)], 1)
                    x = x + self.table
                if mistake == "no positions":
                    x = x - self.table
                if mistake == "batch":
                    x = x + x.mean(0)
                if mistake == "dropout":
                    x = torch.nn.functional.dropout(x, 0.5)
                if mask is not None and mistake != "no mask":
                    one = torch.ones(len(mask), 1, dtype=torch.bool)
                    mask = torch.cat([one, mask], 1)[:, None]
                    return self.encoder(x, mask)
                if mistake == "detached":
                    x = torch.cat([x[:, :1], x[:, 1:].detach()], 1)
                x = self.encoder(x)
                return x[:, 0] if head else x

        model = Reader(16, 4, 24)
        draw_weights(model, seed=0)
        return model


def images():
    """Return pictures for PyTorch, colours before height and width."""
    return PICTURES.transpose(0, 3, 1, 2)


def statuses(report):
    """Return {check: its status}."""
    return {result.name: result.status for result in report}


def test_a_right_model_passes_what_makes_sense():
    report = check_model(Torch(), images(), patch=4)
    found = statuses(report)
    assert "failed" not in found.values() and "error" not in found.values()
    for name in (
        "output_shape",
        "batch_invariance",
        "determinism",
        "context_dependence",
        "token_influence",
        "position_dependence",
        "gradient_flow",
        "training_gradients",
        "weights_move",
    ):
        assert found[name] == "passed", str(report)
    for result in report:
        if result.name in OF_WORDS:
            assert result.status == "not run"
            assert result.sentence == OF_WORDS[result.name]
    assert any("4 by 4 in a picture" in note for note in report.notes)


@pytest.mark.parametrize(
    ("mistake", "check"),
    [
        ("no positions", "position_dependence"),
        ("batch", "batch_invariance"),
        ("dropout", "determinism"),
        ("detached", "gradient_flow"),
    ],
)
def test_mistakes_are_found(mistake, check):
    assert (
        statuses(check_model(Torch(mistake), images(), patch=4))[check]
        == "failed"
    )


def test_pads_of_pictures():
    def call(model, pictures, mask):
        return model(pictures, mask)

    asked = dict(patch=4, patch_mask=MASK, call=call)
    right = statuses(check_model(Torch(), images(), **asked))
    assert right["padding_invariance"] == "passed"
    assert "failed" not in right.values()
    wrong = statuses(check_model(Torch("no mask"), images(), **asked))
    assert wrong["padding_invariance"] == "failed"
    none = statuses(check_model(Torch(), images(), patch=4))
    assert none["padding_invariance"] == "not run"


def test_a_small_slope_with_kinks_is_no_alarm():
    """One direction alone is off by 6 %: along it most slopes cancel."""
    torch = pytest.importorskip("torch")
    from cellbycell.pytorch import ViT, draw_weights

    draw_weights(model := ViT(16, 4, 32), seed=0)
    pictures = draw_pictures(draw_pairs(2500, seed=0), seed=0)[:4]
    given = torch.tensor(pictures.transpose(0, 3, 1, 2))
    report = check_model(model, given, patch=4, only="training_gradients")
    assert statuses(report) == {"training_gradients": "passed"}
    assert "taken together" in str(report)


def test_a_model_with_a_head_gets_advice():
    report = check_model(Torch(head=True), images(), patch=4)
    shape = report["output_shape"]
    assert shape.status == "failed" and "without its head" in shape.sentence


def test_a_reference_reads_the_same_pictures():
    report = check_model(Torch(), images(), patch=4, reference=Torch())
    assert statuses(report)["reference_parity"] == "passed"
    report = check_model(Torch(), images(), patch=4, reference=Torch("view"))
    assert statuses(report)["reference_parity"] == "failed"


def test_a_model_of_transformers():
    hf = pytest.importorskip("transformers")
    config = hf.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=32,
        image_size=16,
        patch_size=4,
    )
    model = hf.ViTModel(config, add_pooling_layer=False)
    found = statuses(check_model(model, images(), patch=4))
    assert "failed" not in found.values() and "error" not in found.values()
    assert found["position_dependence"] == "passed"


def test_keras():
    pytest.importorskip("tensorflow")
    from cellbycell.tensorflow import ViTTF, draw_weights_tf

    model = ViTTF(16, 4, 16)
    draw_weights_tf(model, seed=0)
    found = statuses(check_model(model, PICTURES, patch=4))
    assert "failed" not in found.values() and "error" not in found.values()
    assert found["position_dependence"] == found["gradient_flow"] == "passed"
    model.table.assign(np.repeat(model.table[:1], 17, axis=0))  # all equal
    found = statuses(check_model(model, PICTURES, patch=4))
    assert found["position_dependence"] == "failed"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"patch": 5}, "do not fill pictures of 16 by 16"),
        ({"patch": 0}, "the side of a patch"),
        ({"patch": 4, "targets": [[1]]}, "have no targets"),
        ({"patch": 4, "pad_id": 0}, "have no pad_id"),
        ({"patch": 4, "patch_mask": MASK}, "with call="),
        ({"patch_mask": MASK}, "the side of a patch"),
    ],
)
def test_what_does_not_fit(given, says):
    with pytest.raises(ValueError, match=says):
        check_model(Torch(), images(), **given)


def test_ids_are_no_pictures():
    with pytest.raises(ValueError, match="takes pictures"):
        check_model(Torch(), [[1, 2, 3]], patch=4)
