"""The chapter on a model's own text: each estimate, held to its exact value.

TRL is not installed with the book; `nox --session trl` brings it.
"""

import itertools

import numpy as np
import pytest

from benchmarks import preferences as benchmark
from cellbycell.pytorch import llama_weights

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="module")
def worlds(book):
    """The small world in both frameworks: slope, logs, model, gradient."""
    tf, torch = book["tf"], book["torch"]

    def gradient(model, loss_of):
        loss = loss_of()
        parts = torch.autograd.grad(loss, [*model.parameters()])
        return loss.item(), np.concatenate([p.numpy().ravel() for p in parts])

    def gradient_tf(model, loss_of):
        with tf.GradientTape() as tape:
            loss = loss_of()
        parts = tape.gradient(loss, model.trainable_variables)
        parts = [tf.convert_to_tensor(part).numpy() for part in parts]
        return float(loss), np.concatenate([part.ravel() for part in parts])

    names = "slope", "token_logs", "small", "moved", "group_loss"
    ours = {name: book[name] for name in names}
    theirs = {name: book[f"{name}_tf"] for name in names if name != "moved"}
    theirs["moved"] = book["moved_tf"]
    return [ours | {"gradient": gradient}, theirs | {"gradient": gradient_tf}]


def close(one, other, atol=1e-9):
    return np.allclose(np.asarray(one), np.asarray(other), atol=atol)


def chances(world, rows, name="small"):
    """Return the probability of each text."""
    logs = world["token_logs"](world[name], rows)
    logs = logs.detach() if hasattr(logs, "detach") else logs
    return np.exp(logs.numpy().sum(-1))


# The small world


def test_everything_that_can_be_written_is_listed(book, worlds):
    rows = book["rows"]
    assert len({tuple(row) for row in rows.tolist()}) == len(rows) == 40
    for world in worlds:
        for name in ("small", "moved"):
            q = chances(world, rows, name)
            assert np.isclose(q.sum(), 1) and (q > 0).all()


def test_equation_2_is_the_gradient(book, worlds):
    rows, (torch, tf) = book["rows"], (book["torch"], book["tf"])

    def expected():
        q = worlds[0]["token_logs"](worlds[0]["small"], rows).sum(-1).exp()
        return (q * torch.tensor(book["r"])).sum()

    def expected_tf():
        logs = worlds[1]["token_logs"](worlds[1]["small"], rows)
        q = tf.exp(tf.reduce_sum(logs, -1))
        return tf.reduce_sum(q * book["r"])

    for world, asked in zip(worlds, (expected, expected_tf), strict=True):
        value, found = world["gradient"](world["small"], asked)
        weights = (chances(world, rows) * book["r"])[:, None]
        assert np.isclose(value, book["q"] @ book["r"])
        assert close(found, world["slope"](world["small"], rows, weights))


@pytest.mark.parametrize("size", [2, 3])
def test_all_groups_together_give_the_gradient(book, worlds, size):
    rows, r = book["rows"], book["r"]
    for world in worlds:
        q = chances(world, rows)
        exact = world["slope"](world["small"], rows, (q * r)[:, None])
        weights = book["group_weights"](q, r, size)
        found = world["slope"](world["small"], rows, weights)
        assert close(found, (1 - 1 / size) * exact)
        assert np.linalg.norm(exact) > 1


def all_groups(book, q, size=2):
    """Return rows of all groups, their advantages, and their chances."""
    groups = [*itertools.product(range(len(q)), repeat=size)]
    chosen = np.array(groups)  # (C, size)
    shares = q[chosen].prod(-1)
    advantage = book["advantages"](book["r"][chosen].ravel(), size)
    return chosen.ravel(), advantage * shares.repeat(size) * len(shares)


def test_the_loss_of_all_groups_has_the_gradient(book, worlds):
    rows, r = book["rows"], book["r"]
    kept = book["written"](rows)
    for world in worlds:
        q, model = chances(world, rows), world["small"]
        exact = world["slope"](model, rows, (q * r)[:, None])
        chosen, advantage = all_groups(book, q)
        told = advantage, kept[chosen]
        old = world["token_logs"](model, rows[chosen])
        old = old.detach() if hasattr(old, "detach") else old

        def loss_of(world=world, chosen=chosen, old=old, told=told):
            logs = world["token_logs"](world["small"], rows[chosen])
            return world["group_loss"](logs, old, *told)

        loss, found = world["gradient"](model, loss_of)
        assert close(-2 * found, exact) and abs(loss) < 2


def test_a_baseline_changes_the_noise_alone(book, worlds):
    rows, r = book["rows"], book["r"]
    world = worlds[0]
    q = chances(world, rows)
    slopes = [
        world["slope"](world["small"], rows[i : i + 1], np.ones((1, 1)))
        for i in range(len(rows))
    ]
    squares = np.array([s @ s for s in slopes])
    noise = [q @ ((r - b) ** 2 * squares) for b in (0.0, q @ r)]
    assert noise[1] < 0.9 * noise[0]


def test_exact_steps_end_at_the_best_policy(book):
    import copy

    torch, rows, r = book["torch"], book["rows"], torch_of(book, "r")
    model = copy.deepcopy(book["small"])
    log_p = book["token_logs"](model, rows).sum(-1).detach()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(150):
        log_q = book["token_logs"](model, rows).sum(-1)
        value = (log_q.exp() * (r - 0.5 * (log_q - log_p))).sum()
        optimizer.zero_grad()
        (-value).backward()
        optimizer.step()
    best = 0.5 * torch.logsumexp(log_p + r / 0.5, 0)
    assert 0 <= best - value < 0.01
    found = np.exp(book["token_logs"](model, rows).sum(-1).detach().numpy())
    assert close(found, book["best_policy"](book["q"], book["r"], 0.5), 0.02)


def torch_of(book, name):
    return book["torch"].tensor(book[name])


@pytest.mark.parametrize("name", ["k1", "k2", "k3", "k3 times the ratio"])
def test_what_multiplies_a_kl_is_its_derivative(book, worlds, name):
    torch, rows = book["torch"], book["rows"]
    world, f = worlds[0], book["kls"][name]
    model, log_p = world["moved"], np.log(chances(world, rows))
    q = chances(world, rows, "moved")

    def loss_of():
        log_q = world["token_logs"](model, rows).sum(-1)
        d = log_q - torch.tensor(log_p)
        ratio = (log_q - log_q.detach()).exp()
        k3 = (-d).exp() - 1 + d
        forms = {"k1": d, "k2": d**2 / 2, "k3": k3}
        value = forms.get(name, ratio * k3)
        return (torch.tensor(q) * value).sum()

    weights = (q * f(np.log(q) - log_p))[:, None]
    _, found = world["gradient"](model, loss_of)
    assert close(found, world["slope"](model, rows, weights), 1e-7)


def test_which_kl_each_estimate_follows(book, worlds):
    rows = book["rows"]
    for world in worlds:
        p, q = chances(world, rows), chances(world, rows, "moved")
        d, model = np.log(q / p), world["moved"]

        def pulled(weights, world=world, model=model):
            return world["slope"](model, rows, weights[:, None])

        own, other = pulled(q * d), pulled(-p)
        size = np.linalg.norm(own)
        found = {k: pulled(q * f(d)) for k, f in book["kls"].items()}
        assert np.linalg.norm(found["k1"]) < 1e-8 * size
        assert close(found["k3"], other) and not close(other, own, size / 100)
        for name in ("k2", "k3 times the ratio", "k1 as a reward"):
            assert close(found[name], own, 1e-8 * size)


def test_the_rows_kl_is_the_first_part_of_the_gradient(book, worlds):
    torch, rows = book["torch"], book["rows"]
    world = worlds[0]
    model, teacher = world["moved"], world["small"]
    q = torch.tensor(chances(world, rows, "moved"))
    kept = torch.tensor(book["written"](rows))
    ids = torch.tensor(rows[:, :-1])

    def rows_kl():
        ours = model(ids).log_softmax(-1)
        theirs = teacher(ids).log_softmax(-1).detach()
        each = (ours.exp() * (ours - theirs)).sum(-1)
        return (q[:, None] * each * kept).sum()

    value, first = world["gradient"](model, rows_kl)
    own = world["token_logs"](model, rows).detach().numpy()
    their = world["token_logs"](teacher, rows).detach().numpy()
    q = q.numpy()[:, None]
    assert np.isclose(value, (q * (own - their)).sum())  # of whole texts
    assert close(first, world["slope"](model, rows, q * (own - their)), 1e-7)
    assert close(first, book["here"], 1e-7)
    assert not close(first, book["full"], 0.1)


def test_the_right_gradient_beside_the_mistakes(book, worlds):
    from cellbycell.figures.preferences_wrong import slopes_of_mistakes

    rows, r, p = book["rows"], book["r"], book["q"]
    model = worlds[0]["moved"]
    found = slopes_of_mistakes(model, rows, p, r)["right"]
    q = chances(worlds[0], rows, "moved")
    gain = q * (r - 0.5 * np.log(q / p))
    assert close(found, worlds[0]["slope"](model, rows, gain[:, None]), 1e-7)


# The losses


CLIPPED = [(1.5, 1, 1.2), (1.5, -1, -1.5), (0.5, 1, 0.5), (0.5, -1, -0.8)]


@pytest.mark.parametrize(("ratio", "advantage", "gain"), CLIPPED)
def test_the_clip_by_hand(book, ratio, advantage, gain):
    torch, tf = book["torch"], book["tf"]
    a, kept = np.array([advantage], float), np.ones((1, 1), bool)
    logs = torch.tensor([[np.log(ratio)]])
    loss = book["group_loss"](logs, torch.zeros(1, 1), a, kept)
    loss_tf = book["group_loss_tf"](
        tf.constant([[np.log(ratio)]], tf.float64),
        tf.zeros((1, 1), tf.float64),
        a,
        kept.astype(float),
    )
    assert np.isclose(loss.item(), -gain) and np.isclose(loss_tf, -gain)
    still = book["still_pulls_solution"](np.array([ratio]), a, 0.2)
    assert still.tolist() == [np.isclose(gain, ratio * advantage)]


def test_one_step_a_batch_hides_the_ratio(book):
    rows, torch = book["eight"], book["torch"]
    kept = book["written"](rows, first=2)
    a = book["advantages"](book["rewards_of"](rows, book["known"]), 8)
    model = book["near"]

    def gradients(old):
        found = []
        for loss_of in (book["group_loss"], book["her_loss"]):
            logs = book["token_logs"](model, rows, first=2)
            loss = loss_of(logs, old, a, kept)
            parts = torch.autograd.grad(loss, [*model.parameters()])
            found.append(np.concatenate([p.numpy().ravel() for p in parts]))
        return found

    now = book["token_logs"](model, rows, first=2).detach()
    then = book["token_logs"](book["start"], rows, first=2)
    assert close(*gradients(now))
    one, other = gradients(then)
    assert not close(one, other, 0.01 * np.abs(one).max())


@pytest.mark.parametrize(("rate", "beta"), [(3e-3, 0.1), (1e-3, 0)])
def test_the_rate_or_no_price_alone_goes_less_far(book, rate, beta):
    import copy

    model = copy.deepcopy(book["start"]).requires_grad_(True)
    given = book["start"], book["begun"], book["known"]
    book["practise"](model, *given, steps=40, rate=rate, beta=beta)
    found = book["measure"](model, *book["told"])
    assert found["KL"] < book["hacked"]["KL"] / 2


def test_both_frameworks_learn_alike(book):
    rows, tf = book["eight"], book["tf"]
    kept = book["written"](rows, first=2)
    a = book["advantages"](book["rewards_of"](rows, book["known"]), 8)
    logs = book["token_logs"](book["near"], rows, first=2)
    old = book["token_logs"](book["start"], rows, first=2)
    loss = book["group_loss"](logs, old, a, kept)
    table = book["near"].embedding.weight
    (slope,) = book["torch"].autograd.grad(loss, [table])
    weights = {
        name: w.detach().numpy()
        for name, w in llama_weights(book["near"]).items()
    }
    twin = book["exact_llama_tf"](book["config"], weights)
    with tf.GradientTape() as tape:
        logs_tf = book["token_logs_tf"](twin, rows, first=2)
        loss_tf = book["group_loss_tf"](logs_tf, old.numpy(), a, kept)
    given = tape.gradient(loss_tf, twin.embedding.trainable_variables)
    slope_tf = tf.convert_to_tensor(given[0]).numpy()
    assert np.isclose(loss.item(), float(loss_tf))
    assert close(slope.numpy(), slope_tf) and slope.abs().max() > 0.01


@pytest.mark.parametrize(("beta", "lowest"), [(0.1, True), (np.inf, False)])
def test_all_pairs_are_best_told_apart_by_the_best_policy(book, beta, lowest):
    """Equation (5), each pair as often as it's preferred, at price 0.1."""
    torch, r = book["torch"], torch_of(book, "r")
    best = book["best_policy"](book["q"], book["r"], beta)
    log_q = torch.tensor(np.log(best)).requires_grad_(True)
    margin = 0.1 * (log_q - torch.tensor(np.log(book["q"])))
    margin = margin[:, None] - margin
    chance = torch.sigmoid(r[:, None] - r)
    (-(chance * torch.nn.functional.logsigmoid(margin)).mean()).backward()
    assert (log_q.grad.abs().max() < 1e-9) == lowest


@pytest.mark.parametrize("reverse", [True, False])
def test_a_students_distance_is_one_number_in_both(book, reverse):
    student = {name: w * 0.9 for name, w in book["stored_weights"]().items()}
    found = [
        book[f"row_kl{suffix}"](
            book[f"exact_llama{suffix}"](book["config"], student),
            book[f"start{suffix}"],
            book["eight"],
            reverse,
        )
        for suffix in ("", "_tf")
    ]
    ours, theirs = found[0].item(), float(found[1])
    assert ours > 0.01 and np.isclose(ours, theirs)


def test_the_first_steps_loss_is_the_lengths(book):
    """Each text adds its advantage once a token, and no more."""
    rows, kept = book["eight"], book["written"](book["eight"], first=2)
    a = book["advantages"](book["rewards_of"](rows, book["known"]), 8)
    logs = book["token_logs"](book["start"], rows, first=2)
    loss = book["group_loss"](logs, logs, a, kept).item()
    assert np.isclose(loss, -(a * kept.sum(-1)).mean())


def test_a_pairs_slope_is_the_formula(book):
    torch, tf = book["torch"], book["tf"]
    given = np.array([[-5.0, -30], [-9.0, -28], [-6.0, -31], [-8.0, -35]])
    won = torch.tensor(given[0]).requires_grad_(True)
    others = torch.tensor(given[1:])
    book["preference_loss"](won, *others, beta=0.3).backward()
    formula = book["pair_slope_solution"](*given, 0.3) / 2  # of two pairs
    won_tf = tf.Variable(given[0])
    with tf.GradientTape() as tape:
        loss = book["preference_loss_tf"](won_tf, *given[1:], beta=0.3)
    assert close(won.grad, formula)
    assert close(tape.gradient(loss, won_tf), formula)
    reward = book["reward_of_solution"](book["star"], book["q"], 0.5)
    assert close(reward - reward.min(), book["r"] - book["r"].min())


def test_pads_and_ends_by_hand(book):
    rows = np.array([[0, 5, 6, 0, 0, 0], [0, 5, 6, 7, 8, 9]])
    assert book["written"](rows).sum(-1).tolist() == [3, 5]
    assert book["written"](rows, first=2).sum(-1).tolist() == [2, 4]
    longer = np.pad(rows[:1], ((0, 0), (0, 2)))
    for suffix, model in (("", book["start"]), ("_tf", book["start_tf"])):
        logs = book[f"token_logs{suffix}"]
        sums = [np.asarray(logs(model, x)).sum() for x in (rows[:1], longer)]
        assert np.isclose(*sums)
    cut = np.array([[0, *[1] * 20]])  # no end
    assert book["rewards_of"](cut, set()).tolist() == [0]


def test_the_picture_shows_the_best_policy(book):
    from cellbycell.figures.preferences import show_tilted

    shown = show_tilted(book["names"], book["q"]).data
    for sharp in (0, 2, 10):
        beta = 1 / sharp if sharp else np.inf
        found = book["best_policy"](book["q"], book["r"], beta)
        kl = (found * np.log(found / book["q"])).sum()
        said = f"reward is {found @ book['r']:.2f}, the KL {kl:.2f} nats"
        assert said in shown


# What was trained beforehand


def test_the_teachers_row_is_what_was_stored(book):
    split = book["split_names"](book["read_names"]())
    teacher = benchmark.names_llama()
    found = benchmark.told_of(teacher, teacher, *split)
    assert close(found, book["taught"]["ways"]["teacher"], 5e-3)
    count = sum(w.numel() for w in benchmark.small_student(0).parameters())
    assert count == book["taught"]["weights"]
    assert {*benchmark.WAYS} < {*book["taught"]["ways"]}


@pytest.mark.parametrize("way", [*benchmark.WAYS])
def test_each_way_lowers_what_it_minimises(book, way):
    split = book["split_names"](book["read_names"]())
    teacher, model = benchmark.names_llama(), benchmark.small_student(0)
    given = teacher, way, 20, 0, split[0]
    losses = benchmark.teach_names(model, *given)
    assert np.mean(losses[-5:]) < 0.95 * np.mean(losses[:5])


# TRL, where it is installed


@pytest.fixture
def trl(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return pytest.importorskip("trl", reason="nox --session trl brings it")


@pytest.fixture
def hugging_face(book):
    """Policy and reference as models of Transformers, and a tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from cellbycell.checkpoint import to_transformers

    found = [
        to_transformers(book["config"], llama_weights(book[name]))
        for name in ("near", "start")
    ]
    letters = book["LETTERS"].replace(" ", "_")
    words = Tokenizer(
        models.WordLevel({c: i for i, c in enumerate(letters)}, unk_token=".")
    )
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token=".", eos_token=".", bos_token="."
    )
    return *(m.float().requires_grad_(True) for m in found), tokenizer


def shared(**more):
    quiet = dict(output_dir="out", use_cpu=True, bf16=False, report_to=[])
    return quiet | dict(disable_tqdm=True, gradient_checkpointing=False) | more


@pytest.mark.parametrize("kind", ["sigmoid", "ipo"])
def test_trl_has_the_same_loss_of_pairs(book, trl, hugging_face, kind):
    from datasets import Dataset

    torch = book["torch"]
    policy, reference, tokenizer = hugging_face
    row = {"prompt": "a", "chosen": " b", "rejected": " c"}
    trainer = trl.DPOTrainer(
        policy,
        ref_model=reference,
        args=trl.DPOConfig(**shared(beta=0.1, loss_type=[kind])),
        train_dataset=Dataset.from_list([row]),
        processing_class=tokenizer,
    )
    won, lost = book["won"][:6], book["lost"][:6]
    both = np.concatenate([won, lost])
    kept = book["written"](both, first=2)
    kept = np.concatenate([np.zeros_like(kept[:, :1]), kept], 1)
    seen = kept | (np.arange(both.shape[1]) < 2)
    batch = {
        "input_ids": both,
        "attention_mask": seen.astype(int),
        "completion_mask": kept.astype(int),
    }
    batch = {name: torch.tensor(x) for name, x in batch.items()}
    theirs = trainer.compute_loss(trainer.model, batch)
    logs = [
        book["token_logs"](model, rows, first=2).sum(-1)
        for model in (book["near"], book["start"])
        for rows in (won, lost)
    ]
    ours = book["preference_loss"](*logs, beta=0.1)
    if kind == "ipo":  # alone among these, it takes means over the tokens
        counts = [torch.tensor(kept[i : i + 6].sum(-1)) for i in (0, 6)]
        margin = (logs[0] - logs[2]) / counts[0]
        margin = margin - (logs[1] - logs[3]) / counts[1]
        ours = ((margin - 5) ** 2).mean()
    assert np.isclose(theirs.item(), ours.item(), rtol=1e-4)
    assert abs(ours.item() - np.log(2)) > 0.01
    defaults = trl.DPOConfig(**shared())
    assert (defaults.beta, defaults.loss_type) == (0.1, ["sigmoid"])
    assert defaults.disable_dropout


@pytest.mark.parametrize("kind", ["dr_grpo", "grpo", "dapo"])
def test_trl_has_the_same_loss_of_groups(book, trl, hugging_face, kind):
    from datasets import Dataset

    torch, rows = book["torch"], book["eight"]
    policy, reference, tokenizer = hugging_face
    length = rows.shape[1] - 2
    trainer = trl.GRPOTrainer(
        policy,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=trl.GRPOConfig(
            **shared(loss_type=kind, max_completion_length=length),
            num_generations=2,
            per_device_train_batch_size=8,
        ),
        train_dataset=Dataset.from_list([{"prompt": "a"}] * 8),
        processing_class=tokenizer,
    )
    trainer.beta, trainer.current_gradient_accumulation_steps = 0.04, 1
    trainer.model.eval()
    kept = book["written"](rows, first=2)
    a = book["advantages"](book["rewards_of"](rows, book["known"]), 8)
    logs = book["token_logs"](book["near"], rows, first=2).detach()
    ref = book["token_logs"](book["start"], rows, first=2)
    old = logs - 0.3 * torch.sin(torch.arange(logs.numel())).view_as(logs)
    mask = torch.tensor(kept[:, 1:]).long()
    inputs = {
        "prompt_ids": torch.tensor(rows[:, :2]),
        "prompt_mask": torch.ones(8, 2, dtype=torch.long),
        "completion_ids": torch.tensor(rows[:, 2:]),
        "completion_mask": mask,
        "advantages": torch.tensor(a).float(),
        "old_per_token_logps": old[:, 1:].float(),
        "ref_per_token_logps": ref[:, 1:].float(),
        "num_items_in_batch": mask.sum(),
    }
    theirs = trainer._compute_loss(trainer.model, inputs)
    ratio, d = (logs - old).exp(), logs - ref
    gain = torch.minimum(
        ratio * torch.tensor(a)[:, None],
        ratio.clamp(0.8, 1.2) * torch.tensor(a)[:, None],
    )
    each = 0.04 * ratio * ((-d).exp() - 1 + d) - gain
    each = each * torch.tensor(kept)
    ours = {
        "dr_grpo": each.sum() / (8 * length),
        "grpo": (each.sum(-1) / mask.sum(-1)).mean(),
        "dapo": each.sum() / mask.sum(),
    }[kind]
    assert np.isclose(theirs.item(), ours.item(), rtol=1e-3, atol=1e-6)
    trainer.beta = 0.0  # then equation (4), over a constant
    if kind == "dr_grpo":
        theirs = trainer._compute_loss(trainer.model, inputs)
        ours = book["group_loss"](logs, old, a, kept) / length
        assert np.isclose(theirs.item(), ours.item(), rtol=1e-3, atol=1e-6)


def test_trl_does_by_default_what_the_chapter_says(trl):
    groups = trl.GRPOConfig(**shared())
    assert (groups.beta, groups.scale_rewards) == (0.0, "group")
    assert (groups.loss_type, groups.num_iterations) == ("dapo", 1)
    assert groups.num_generations == 8 and groups.use_bias_correction_kl
    assert not groups.disable_dropout
    taught = trl.DistillationConfig(**shared())
    assert taught.beta == 1.0 and not taught.disable_dropout
    told = trl.GRPOConfig(
        **shared(scale_rewards="none", loss_type="dr_grpo", beta=0.04)
    )
    assert told.scale_rewards == "none"


@pytest.mark.parametrize(("beta", "reverse"), [(1.0, True), (0.0, False)])
def test_trl_has_the_same_distance_to_a_teacher(book, trl, beta, reverse):
    from trl.trainer.distillation_trainer import _chunked_divergence_loss

    torch, rows = book["torch"], book["eight"]
    ids, eye = torch.tensor(rows[:, :-1]), torch.eye(30)
    q, p = (book[name](ids).float() for name in ("near", "start"))
    mask = torch.tensor(book["written"](rows)).long()
    loss, *_ = _chunked_divergence_loss(q, p, eye, eye, mask, beta)
    ours = book["row_kl"](book["near"], book["start"], rows, reverse)
    assert np.isclose(loss.item(), ours.item(), rtol=1e-3)
    assert ours.item() > 0.01
