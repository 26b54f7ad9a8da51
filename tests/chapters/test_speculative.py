"""The chapter on speculative decoding: the libraries' law."""

import numpy as np
import pytest
import torch

from benchmarks import drafts

pytestmark = pytest.mark.xdist_group("frameworks")


# The law of Transformers, and of KerasHub


def test_transformers_judges_with_the_same_law(book, monkeypatch):
    """Each proposal: where it stops accepting, and what it draws then."""
    from transformers.generation.utils import _speculative_sampling

    p, q = (torch.tensor(x.astype(float)) for x in (book["p"], book["q"]))
    drawn_from = []

    def multinomial(probs, num_samples):
        drawn_from.append(probs.flatten())
        return torch.zeros(1, 1, dtype=torch.long)

    monkeypatch.setattr(torch, "multinomial", multinomial)
    new_logits = torch.stack([p, p]).log()[None]
    for token in range(4):
        accept = float(book["accept"][token])
        for uniform, kept in ((accept - 1e-6, 1), (accept + 1e-6, 0)):
            if uniform > 1:
                continue
            monkeypatch.setattr(
                torch, "rand_like", lambda x, u=uniform: torch.full_like(x, u)
            )
            ids = torch.tensor([[0, token]])
            _, found = _speculative_sampling(
                ids, q.log()[None, None], 1, new_logits
            )
            wanted = p if kept else torch.tensor(book["rest"].astype(float))
            assert int(found) == kept
            assert torch.allclose(drawn_from[-1], wanted)


@pytest.mark.parametrize("temperature", [0.7, 1.5])
def test_transformers_gives_the_draft_its_temperature_twice(book, temperature):
    """When this fails, mend the sentence of *In your code*."""
    target, draft, dot = book["target"], book["draft"], book["dot"]

    def cooler(ids, cache):
        logits, cache = draft(ids, cache)
        return logits / temperature, cache

    texts = {}
    for name, each in {"once": draft, "twice": cooler}.items():
        texts[name] = []
        for seed in range(10):
            torch.manual_seed(seed)
            ids, _ = book["speculate"](
                target,
                each,
                dot,
                20,
                end_id=0,
                rng=book["of_torch"],
                temperature=temperature,
            )
            texts[name].append(ids.tolist())
    theirs = []
    for seed in range(10):
        torch.manual_seed(seed)
        ids, _ = book["with_draft"](
            book["their_target"],
            book["their_draft"],
            dot,
            20,
            do_sample=True,
            top_k=0,
            temperature=temperature,
            eos_token_id=0,
        )
        theirs.append(ids.tolist())
    assert theirs == texts["twice"] != texts["once"]


def test_keras_hub_proposes_the_likeliest_and_divides_by_the_softmax(book):
    """When this fails, mend *Wrong on purpose*: it says that it is so."""
    import tensorflow as tf
    from keras_hub.samplers import RandomSampler, SpeculativeSampler

    hub = SpeculativeSampler(
        num_speculative_tokens=1, base_sampler=RandomSampler(), seed=0
    )

    def run_loop(cond, body, model=None, loop_vars=None, **_):
        while bool(cond(*loop_vars)):
            loop_vars = body(*loop_vars)
        return loop_vars

    def row(probs):
        logits = tf.math.log(tf.constant(probs[None], tf.float32))
        return lambda prompt, cache, index: (logits, None, cache)

    hub.run_loop = run_loop
    drawn = [
        int(
            hub(
                row(book["fp"]),
                tf.zeros((1, 2), tf.int32),
                index=1,
                mask=tf.constant([[True, False]]),
                draft_next=row(book["fq"]),
            )[0, 1]
        )
        for _ in range(150)
    ]
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    assert np.allclose(shares, [1 / 3, 2 / 3, 0, 0], atol=0.15)
    assert not shares[2:].any()


# What the chapter shows with one seed


def test_rounding_changes_no_round(book, monkeypatch):
    """Another machine trains a draft that differs by some thousandths."""
    gaps = []

    def draw(probs, rng):
        race = np.log(
            np.maximum(probs, 1e-30) / rng.exponential(size=len(probs))
        )
        best = np.sort(race)[-2:]
        gaps.append(best[1] - best[0])
        return int(race.argmax())

    def judge(drafted, p, q, rng):
        uniform = rng.random(len(drafted))
        for i, token in enumerate(drafted):
            ratio = p[i][token] / q[i][token]
            if ratio < 1:
                gaps.append(abs(np.log(uniform[i] / ratio)))
            if uniform[i] >= ratio:
                rest = book["residual"](p[i], q[i])
                return [*drafted[:i], draw(rest, rng)]
        return [*drafted, draw(p[-1], rng)]

    given = book["speculate"].__globals__
    monkeypatch.setitem(given, "draw", draw)
    monkeypatch.setitem(given, "judge", judge)
    names = []
    for seed in SEEDS:
        ids, rounds = book["speculate"](
            book["target"], book["draft"], book["dot"], 20, 4, 0, seed
        )
        names.append(book["in_rounds"](book["letters_of"](ids), rounds))
    assert names == book["names"]
    assert min(gaps) > 0.03


def test_rounds_bring_as_much_as_predicted(book):
    """The formula takes one alpha for all positions."""
    kept = []
    for seed in range(60):
        _, rounds = book["speculate"](
            book["target"], book["draft"], book["dot"], 20, 4, 0, seed
        )
        kept += [accepted for drafted, accepted in rounds if drafted == 4]
    wanted = book["tokens_a_call"](book["shared"], 4)
    assert len(kept) > 150 and abs(1 + np.mean(kept) - wanted) < 0.3


@pytest.mark.parametrize("name", drafts.PROMPTS)
def test_the_table_has_the_counts_of_each_text(book, name):
    """The ratio is that of one run; the counts are the same everywhere."""
    _, rounds = drafts.by_lookup(drafts.PROMPTS[name])
    guessed, right = (sum(counts) for counts in zip(*rounds, strict=True))
    row = book["measured"][name]
    found = row["calls"], row["guessed"], row["right"]
    assert found == (len(rounds), guessed, right)


def test_a_certain_guess_keeps_the_law_of_smollm2(book):
    """Sampled, too: the guess of the text, or a draw without it."""
    logits = book["smol"](book["copy_ids"])[0, -1].double()
    p = logits.softmax(-1).numpy()
    for token in (int(p.argmax()), int(p.argsort()[-2]), int(p.argmin())):
        certain = np.eye(1, len(p), token)[0]
        law, share = book["law_of"](p, certain, certain)
        assert abs(law - p).max() < 1e-9 and np.isclose(share, p[token])


@pytest.mark.parametrize("level", [0.0, 0.5, 3.0])
def test_rows_of_a_batch_are_those_alone(book, level):
    torch.manual_seed(0)
    starts = torch.randint(1, 27, (5, 4))
    starts[:, 0] = 0
    guess = book["drafts"][level]

    def after(text, count):
        ids = torch.tensor([text])
        return book["generate"](guess, ids, count)[0, -count:].tolist()

    with torch.no_grad():
        found, stood, _ = book["write_rows"](
            lambda *given: book["read_rows"](book["target"], *given),
            after,
            starts.tolist(),
            12,
            count=4,
        )
    alone = book["generate"](book["target"], starts, 12)
    assert found == alone.tolist()
    assert level or all(row == [4] * 5 for row in stood)


SEEDS = (63, 166, 211, 215, 255, 265)
