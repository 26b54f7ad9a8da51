"""The chapter that looks inside SmolLM2: other prompts, other seeds."""

import json

import numpy as np
import pytest

from benchmarks import inside as states
from cellbycell.figures import inside as pictures

pytestmark = pytest.mark.xdist_group("frameworks")
CAPITALS = {
    "Austria": "Vienna",
    "Canada": "Ottawa",
    "Chile": "Santiago",
    "Cuba": "Havana",
    "Egypt": "Cairo",
    "Hungary": "Budapest",
    "Ireland": "Dublin",
    "Kenya": "Nairobi",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
}


@pytest.fixture(scope="module")
def others(book):
    """Return the streams of ten other countries, and their capitals' ids."""
    encode, torch = book["tokenizer"].encode, book["torch"]
    prompts = [f"The capital of {name} is the city of" for name in CAPITALS]
    ids = torch.tensor([encode(prompt).ids for prompt in prompts])
    logits, streams, _ = book["look_inside"](book["model"], ids)
    capitals = [encode(f" {word}").ids[0] for word in CAPITALS.values()]
    capitals = torch.tensor(capitals)
    assert (logits[:, -1].argmax(-1) == capitals).all()
    return streams, capitals


def test_ten_other_countries_cross_in_the_same_layer(book, others):
    streams, capitals = others
    for place, early in ((3, True), (7, False)):
        for layer in (4, 18, 23, 24, 27):
            found = book["patched"](book["model"], streams, place, layer)
            follow = (found == capitals.roll(-1)).sum()
            assert follow >= 9 if (layer < 24) == early else follow <= 1


def test_in_another_sentence_the_same_head_is_the_loudest(book, others):
    streams, capitals = others
    model, counts = book["model"], []
    for head in range(9):
        hook = book["at_last"]([head], 9, book["next_ones"])
        with book["hooked"]([(book["projection"], hook)]):
            x = book["rest"](model, streams[23], 23)[:, -1]
        found = book["lens"](model, x).argmax(-1)
        counts.append(int((found == capitals.roll(-1)).sum()))
    assert np.argmax(counts) == 4 and counts[4] > 2 * sorted(counts)[-2]


def test_the_same_heads_copy_other_tokens(book):
    torch, model = book["torch"], book["model"]
    for seed, length in ((1, 40), (2, 30)):
        drawn = np.random.default_rng(seed).integers(20, 49152, (2, length))
        ids = torch.tensor(np.concatenate([drawn, drawn], 1))
        _, _, weights = book["look_inside"](model, ids)
        back = np.arange(length + 1, 2 * length - 1)
        score = torch.stack(
            [w[..., back, back - length + 1].mean((0, -1)) for w in weights]
        )
        best = score.flatten().argsort(descending=True)[:5].tolist()
        assert len({divmod(i, 9) for i in best} & {*book["heads"]}) >= 4


def test_any_first_token_is_the_sink(book):
    torch = book["torch"]
    for first in (123, 5000):
        ids = book["text_ids"].clone()
        ids[0, 0] = first
        _, streams, weights = book["look_inside"](book["model"], ids)
        assert streams[12][0, 0].abs().argmax() == 507
        assert streams[12][0, 0, 507] > 20000
        assert torch.stack(weights)[12:, 0, :, 20:, 0].mean() > 0.4


def test_hooks_are_gone_after_an_error(book):
    model, torch = book["model"], book["torch"]
    ids = torch.tensor([[5, 6, 7]])
    before = model(ids)

    def fails(*given):
        raise KeyError

    for name, part in (("", model.norm), ("_tf", book["model_tf"].norm)):
        with pytest.raises(KeyError):
            with book[f"hooked{name}"]([(part, fails)]):
                (book[f"model{name}"])(
                    ids if not name else book["tf"].constant([[5, 6, 7]])
                )
    assert torch.equal(before, model(ids))
    assert "call" not in vars(book["model_tf"].norm)


def test_the_pictures_show_what_the_model_computes():
    stored, now = json.loads(pictures.FILE.read_text("utf-8")), states.states()
    assert stored["tokens"] == now["tokens"]
    for old, new in zip(stored["early"], now["early"], strict=True):
        assert old["prompt"] == new["prompt"]
        for one, other in zip(old["layers"], new["layers"], strict=True):
            gap = np.subtract(one["shares"], other["shares"])
            assert np.abs(gap).max() < 0.011
            assert abs(np.log(one["rank"] / other["rank"])) < 0.01
            if one["shares"][0] > one["shares"][1]:
                assert one["words"][0] == other["words"][0]
    gap = np.subtract(stored["weights"], now["weights"])
    assert np.abs(gap).max() <= 1


def test_the_pictures_say_what_is_there():
    shown = pictures.show_early().data
    assert "Paris comes first" in shown
    assert "about 3,000 are before Paris" in shown
    said = "Layer 18, head 6, when words come again: mostly on what came after"
    assert said in pictures.show_heads().data


def test_of_26_countries_two_in_three_follow_the_head(book):
    encode, torch = book["tokenizer"].encode, book["torch"]
    more = "Denmark Finland Belgium Korea Mexico Israel"
    names = [*book["countries"], *CAPITALS, *more.split()]
    ids = torch.tensor([encode(f"The capital of {x} is").ids for x in names])
    logits, streams, _ = book["look_inside"](book["model"], ids)
    said = logits[:, -1].argmax(-1)
    hook = book["at_last"]([4], 9, book["next_ones"])
    with book["hooked"]([(book["projection"], hook)]):
        x = book["rest"](book["model"], streams[23], 23)[:, -1]
    found = book["lens"](book["model"], x).argmax(-1)
    share = (found == said.roll(-1)).float().mean()
    assert len(names) == 26 and 0.55 < share < 0.8
