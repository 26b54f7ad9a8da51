"""What the chapter on Llama says of how the libraries read a folder."""

import json

import pytest

pytestmark = pytest.mark.xdist_group("frameworks")

STRETCH = {"rope_type": "llama3", "factor": 32.0}
STRETCH |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
STRETCH |= {"original_max_position_embeddings": 64}


@pytest.fixture
def folder(tmp_path):
    """A config.json as `transformers` writes it, with a stretched base."""
    pytest.importorskip("keras_hub")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        rms_norm_eps=1e-5,
        num_key_value_heads=4,
        tie_word_embeddings=True,
        rope_parameters={"rope_theta": 5e5, **STRETCH},
    )
    config.save_pretrained(tmp_path)
    return json.loads((tmp_path / "config.json").read_text("utf-8"))


def read_by_keras_hub(config):
    """Return the arguments that KerasHub gives its model for a config."""
    from keras_hub.src.utils.transformers import convert_llama3

    return convert_llama3.convert_backbone_config(config)


def test_keras_hub_ignores_a_stretch_of_version_5(folder):
    import keras_hub

    assert folder["rope_parameters"]["factor"] == 32
    if keras_hub.__version__.startswith("0.29."):  # as in Colab
        # It looks for the base where version 4 of Transformers wrote it, and
        # reads no folder of version 5.
        with pytest.raises(KeyError, match="rope_theta"):
            read_by_keras_hub(folder)
    else:
        read = read_by_keras_hub(folder)
        assert read["rope_max_wavelength"] == 5e5
        assert not any("factor" in name for name in read)


def test_keras_hub_reads_a_stretch_of_version_4(folder):
    del folder["rope_parameters"]
    folder |= {"rope_theta": 5e5, "rope_scaling": STRETCH}
    read = read_by_keras_hub(folder)
    assert read["rope_frequency_adjustment_factor"] == 32
    assert read["rope_max_wavelength"] == 5e5


def test_keras_hub_does_not_read_the_epsilon(folder):
    read = read_by_keras_hub(folder | {"rope_theta": 5e5})
    assert folder["rms_norm_eps"] == 1e-5
    assert read["tie_word_embeddings"]
    assert not any("epsilon" in name for name in read)


def test_transformers_initialises_a_missing_tensor(tmp_path):
    """Nothing fails, and `output_loading_info` says what was missing."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=12,
        hidden_size=8,
        intermediate_size=9,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    model = transformers.LlamaForCausalLM(config)
    weights = model.state_dict()
    name = "model.layers.0.mlp.up_proj.weight"
    kept = {key: value for key, value in weights.items() if key != name}
    model.save_pretrained(tmp_path, state_dict=kept)
    torch.manual_seed(1)
    loaded, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert {*report["missing_keys"]} == {name}
    assert not torch.equal(loaded.get_parameter(name), weights[name])
    assert loaded.get_parameter(name).std() > 0.01


def test_a_mistake_without_a_name_is_refused():
    from cellbycell.figures.llama_mistakes import misread

    with pytest.raises(ValueError, match="none of no mistake, epsilon"):
        misread(None, {}, "a typo")
