"""The chapter on serving: its law, its mistakes, bad input, its door."""

import inspect
import json
import queue
import socket
import textwrap
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

pytestmark = pytest.mark.xdist_group("frameworks")


@pytest.fixture(scope="module")
def tiny(book):
    """Return what keeps_the_law asks, for a small drawn model in PyTorch."""
    import torch

    from cellbycell.common import LlamaConfig
    from cellbycell.pytorch import generate

    sizes = LlamaConfig(
        vocab_size=30,
        num_layers=2,
        d_model=16,
        num_heads=4,
        key_heads=2,
        d_head=4,
        d_ff=32,
    )
    torch.manual_seed(0)
    model = book["Llama"](sizes).requires_grad_(False)
    for weight in model.parameters():
        drawn = torch.randn_like(weight) * (0.5 if weight.ndim > 1 else 0.1)
        weight.data = drawn + (weight.ndim == 1)

    def new_server(
        count, size, pages=book["SharedPages"], by=book["Server"], **settings
    ):
        memory = book["make_memory"](sizes, count * size)
        read = partial(book["read_together"], model, memory)
        return by(read, pages(count, size), 30, **settings)

    def alone(prompt, max_len, choose):
        ids = torch.tensor([prompt])
        return generate(model, ids, max_len, 0, choose=choose)[0].tolist()

    rng = np.random.default_rng(0)
    heads = [rng.integers(1, 30, size=n).tolist() for n in (4, 8, 9)]
    return new_server, alone, book["drawer"], heads


def kept(book, given, seeds, **kinds):
    """Return how many requests keep the law, and how many ask."""
    asked = [book["keeps_the_law"](seed, *given, **kinds) for seed in seeds]
    return tuple(np.sum(asked, axis=0).tolist())


# The law


@pytest.mark.parametrize("part", range(5))
def test_hundreds_of_schedules_keep_the_law(book, tiny, part):
    right, asked = kept(book, tiny, range(1000 + part, 1500 + part, 5))
    assert right == asked > 400


def test_schedules_keep_the_law_in_tensorflow(book):
    right, asked = kept(book, book["ours_tf"], range(10, 34))
    assert right == asked > 100


def test_schedules_have_what_finds_mistakes(book, tiny, monkeypatch):
    """Requests that make room, shared beginnings, users who hang up."""
    counts, left = {"preempted": 0, "shared": 0}, 0
    new_server, *given = tiny
    servers = []

    def noted(**settings):
        servers.append(new_server(**settings))
        return servers[-1]

    for seed in range(50):
        asks, _ = book["schedule"](seed, tiny[-1])
        prompts = [tuple(prompt) for _, prompt, _, _ in asks]
        counts["again"] = counts.get("again", 0) + len(prompts)
        counts["again"] -= len({*prompts})
        left += sum(leaves is not None for *_, leaves in asks)
    kept(book, (noted, *given), range(50))
    for server in servers:
        for name in ("preempted", "shared"):
            counts[name] += server.count[name]
    assert left > 10 and min(counts.values()) > 30


def test_a_memory_that_just_suffices_serves_everybody(book, tiny):
    new_server, alone, _, _ = tiny
    server = new_server(4, 3, budget=2)
    requests = [book["Request"]([5 + i, 7, 9], 10) for i in range(4)]
    texts = book["serve"](server, requests)
    want = [alone([5 + i, 7, 9], 10, book["greedy"]) for i in range(4)]
    for text, ids in zip(texts, want, strict=True):
        assert text[: len(ids)] == ids  # generate ends at 0
    assert server.count["preempted"] > 0


def test_the_favourite_leads_by_more_than_rounding(book):
    """What is stored as a text may not hang on the last digits."""
    torch = book["torch"]
    leads = []
    for ids in book["served"][:20]:
        rows = book["model"](torch.tensor([ids]))[0, 3:-1]
        best = rows.topk(2).values
        leads.append((best[:, 0] - best[:, 1]).min().item())
    assert min(leads) > 1e-4
    leads = []
    for asked, one in zip(book["asked"], book["questions"], strict=True):
        if one in (book["questions"][1], book["questions"][4]):
            rows = book["smol"](torch.tensor([one.ids]))[0]
            best = rows[len(asked) - 1 : -1].topk(2).values
            leads.append((best[:, 0] - best[:, 1]).min().item())
    assert min(leads) > 1e-3


def test_smollm2s_favourites_lead_in_both_kinds_of_pages(book):
    """What *Wrong on purpose* stores hangs on no last digit."""
    rows = [book["tokenizer"].encode(text).ids for text in book["helped"]]
    for kind in book["kinds"]:
        server, leads = book["smol_server"](count=40, pages=kind), []

        def read(spans, read=server.read, leads=leads):
            logits = read(spans)
            best = logits.topk(2).values
            leads.append((best[:, 0] - best[:, 1]).min().item())
            return logits

        server.read = read
        for ids in rows:
            book["serve"](server, [book["Request"]([*ids], 14, book["END"])])
        assert min(leads) > 1e-3


# Bad input, and users who hang up

BAD = {
    "empty": ([], 5),
    "negative": ([1, -1], 5),
    "outside": ([1, 30], 5),
    "no number": ([1, "a"], 5),
    "half": ([1, 2.5], 5),
    "nothing to write": ([1, 2], 0),
    "half an id to write": ([1, 2], 2.5),
    "too long": ([1] * 20, 22),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_refused_and_the_others_go_on(book, tiny, name):
    new_server, alone, _, _ = tiny
    server = new_server(10, 4)
    good = [book["Request"]([3 + i, 8], 8, 0) for i in range(3)]
    for request in good:
        server.submit(request)
        server.step()
        with pytest.raises(ValueError, match="prompt|id|slots"):
            server.submit(book["Request"](*BAD[name]))
    book["serve"](server, [])
    for i, request in enumerate(good):
        assert request.ids == alone([3 + i, 8], 8, book["greedy"])
    assert len(server.pages.free) == 10


def test_a_prompt_of_exactly_all_slots_is_served(book, tiny):
    server = tiny[0](10, 4)
    (ids,) = book["serve"](server, [book["Request"]([1] * 20, 21)])
    assert len(ids) == 41


def test_no_request_is_served_twice(book, tiny):
    server, request = tiny[0](10, 4), book["Request"]([1, 2], 3)
    book["serve"](server, [request])
    with pytest.raises(ValueError, match="is served"):
        server.submit(request)


@pytest.mark.parametrize("step", range(0, 14, 2))
def test_who_hangs_up_at_any_step_disturbs_nobody(book, tiny, step):
    new_server, alone, _, _ = tiny
    server = new_server(6, 3, budget=4)
    requests = [book["Request"]([3 + i, 8, 9], 9, 0) for i in range(4)]
    for request in requests:
        server.submit(request)
    for _ in range(step):
        server.step()
    server.leave(requests[1])
    server.leave(requests[1])  # once more does no harm
    book["serve"](server, [])
    for i, request in enumerate(requests):
        want = alone([3 + i, 8, 9], 9, book["greedy"])
        assert request.ids == (want if i != 1 else want[: len(request.ids)])
    assert len(server.pages.free) == 6


def test_two_best_tokens_are_rarely_close_in_float32_but_in_bfloat16(book):
    """As SmolLM2 answers: how far the best is ahead, and both types' steps."""
    torch = book["torch"]
    close = {10 * 2**-23: 0, 2**-7: 0}  # of a number: ten steps, one step
    for asked, one in zip(book["asked"], book["questions"], strict=True):
        rows = book["smol"](torch.tensor([one.ids]))[0, len(asked) - 1 : -1]
        best = rows.topk(2).values  # (T, 2)
        size = 2 ** best[:, 0].log2().floor()
        for step in close:
            close[step] += (best[:, 0] - best[:, 1] < step * size).sum().item()
    rare, common = close.values()
    assert rare == 0 < common


# The mistakes


def test_the_usual_tests_pass_with_pages_known_by_their_own_ids(book):
    """As *Wrong on purpose* says."""
    names, drawn = book["names"][:6], book["drawn"]
    kinds = {"pages": book["OwnIds"]}
    want = book["served"][:6]
    server = book["new_server"](**kinds)
    assert book["serve"](server, book["requests_for"](names[:1])) == want[:1]
    for _ in range(2):
        assert book["serve"](server, book["requests_for"](names)) == want
    small = book["new_server"](9, **kinds)
    assert book["serve"](small, book["requests_for"](names)) == want
    assert book["serve"](server, drawn(names)) == book["company"][:6]


@pytest.mark.parametrize(
    "kinds", [{"pages": "OwnIds"}, {"pages": "NeverForgets"}]
)
def test_the_law_finds_wrong_pages(book, tiny, kinds):
    kinds = {name: book[kind] for name, kind in kinds.items()}
    right, asked = kept(book, tiny, range(60), **kinds)
    assert right < asked


def test_the_law_finds_a_prompt_that_is_wholly_known(book, tiny):
    bad = 0
    for seed in range(40):
        try:
            right, asked = kept(book, tiny, [seed], pages=book["KnowsAll"])
            bad += right < asked
        except (IndexError, RuntimeError, ValueError):
            bad += 1
    assert bad > 2


def test_only_drawn_texts_show_that_a_text_is_written_again(book, tiny):
    kinds = {"by": book["WritesAgain"]}
    right, asked = kept(book, tiny, range(60), **kinds)
    assert right < asked
    new_server, alone, drawer, heads = tiny
    greedily = new_server, alone, lambda drawn: drawer(None), heads
    right, asked = kept(book, greedily, range(60), **kinds)
    assert right == asked


def test_positions_from_slots_are_right_for_one_alone(book):
    """The mistake in the function itself, by one changed line."""
    source = textwrap.dedent(inspect.getsource(book["read_together"]))
    line = "positions = torch.cat(at)"
    assert source.count(line) == 1
    changed = {**book}
    exec(source.replace(line, "positions = new"), changed)
    for count, same in ((1, True), (6, False)):
        memory = book["make_memory"](book["config"], 256)
        read = partial(changed["read_together"], book["model"], memory)
        server = book["Server"](read, book["Pages"](64, 4), 30)
        names = book["names"][:count]
        texts = book["serve"](server, book["requests_for"](names))
        assert (texts == book["served"][:count]) is same


def test_transformers_has_one_seed_for_a_batch(book):
    """When this fails, mend the sentence of *One seed for all*."""
    settings = book["GenerationConfig"](
        max_new_tokens=8,
        do_sample=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    prompts = [one.ids for one in book["requests_for"](book["names"][:8])]
    texts = []
    for some in (prompts[:1], prompts, prompts):
        batching = book["ContinuousBatchingConfig"](
            page_size=4, num_blocks=64, max_batch_tokens=64, seed=0
        )
        found = book["theirs"].generate_batch(
            some,
            generation_config=settings,
            continuous_batching_config=batching,
            progress_bar=False,
        )
        texts.append(next(iter(found.values())).generated_tokens)
    assert texts[0] != texts[1] == texts[2]


# What the chapter measures


def test_eight_at_once_write_more_than_twice_the_tokens_of_one():
    from benchmarks.serving import measure

    steps = measure(rounds=3, counts=(1, 8))
    assert 8 * steps[1] / steps[8] > 2


def test_sixteen_at_once_write_about_six_times_the_tokens():
    from cellbycell.figures.serving_drawn import FILE

    ratios = json.loads(FILE.read_text("utf-8"))["ratios"]
    assert 5.5 < ratios["16"] < 6.5
    assert [*ratios.values()] == sorted(ratios.values())


# The cache of pages, asked by the kit


def test_the_kit_accepts_a_cache_in_pages(book):
    import torch

    from cellbycell.checks import check_model

    config = book["config"]

    def step(model, ids, cache):
        """Read each token as a span of its own, to get all logits."""
        pages, memory, tables, read = cache or (
            book["Pages"](64, 4),
            book["make_memory"](config, 256),
            [[] for _ in ids],
            0,
        )
        spans = []
        for row, table in zip(ids.tolist(), tables, strict=True):
            assert pages.grow(table, read + len(row))
            slots = pages.slots(table)
            spans += [([i], read + n, slots) for n, i in enumerate(row)]
        logits = book["read_together"](model, memory, spans)
        logits = logits.reshape(*ids.shape, -1)
        return logits, (pages, memory, tables, read + ids.shape[1])

    rows = torch.tensor([[0, 5, 9, 2, 7, 3, 8, 4], [0, 4, 4, 9, 1, 6, 2, 5]])
    report = check_model(
        book["model"], rows, step=step, only="cache_consistency"
    )
    assert "cache_consistency" in report.passed


# A server that listens


def test_two_hundred_clients_get_what_they_get_alone(book):
    server = book["new_server"](count=80)
    listening = book["Listening"](server, book["sampler"])
    port = listening.server_address[1]
    rows = [one.ids for one in book["requests_for"](book["names"])]
    rows = [rows[i % len(rows)] for i in range(200)]

    def hang_up(ids, seed):
        body = json.dumps({"ids": ids, "max_len": 20, "seed": seed}).encode()
        head = f"POST / HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            client.sendall(head.encode() + body)
            return client.recv(20)

    def client(i):
        if i % 10 == 9:
            return hang_up(rows[i], i)
        ids = rows[i] if i % 10 != 5 else [99]
        try:
            return ids + book["ids_from"](port, ids=ids, max_len=20, seed=i)
        except urllib.error.HTTPError as error:
            return error.code

    for body in (b"", b"[1]", b"{}", b'{"ids": 3, "max_len": 2}'):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}", body, 60)
    with ThreadPoolExecutor(200) as pool:
        texts = [*pool.map(client, range(200))]
    for i, text in enumerate(texts):
        if i % 10 == 9:
            assert text.startswith(b"HTTP/1")
        elif i % 10 == 5:
            assert text == 400
        else:
            want = book["alone"](
                book["model"], rows[i], 20, book["sampler"](i)
            )
            assert text == want
    for _ in range(200):
        if not listening.lines:
            break
        time.sleep(0.05)
    listening.shutdown()
    listening.server_close()
    assert not listening.lines and not server.running and not server.waiting
    assert len(server.pages.free) == 80


def test_a_newcomer_waits_for_no_more_than_a_few_steps(book):
    """Though the thread that takes the steps wants its lock back at once."""
    model, config = book["model"], book["config"]
    memory = book["make_memory"](config, 8000)
    read = partial(book["read_together"], model, memory)
    server = book["Server"](read, book["Pages"](2000, 4), 30)
    listening = book["Listening"](server, lambda _: lambda row: np.array([5]))
    port, waited = listening.server_address[1], []
    for _ in range(8):
        long = book["Request"]([1, 2], 600)
        with listening.door, listening.changed:
            server.submit(long)
            listening.lines[long] = queue.SimpleQueue()
            listening.changed.notify()
    for _ in range(40):
        before = server.count["steps"]
        book["ids_from"](port, ids=[1, 2], max_len=1)
        waited.append(server.count["steps"] - before)
    assert server.running
    for request in [*listening.lines]:
        with listening.door, listening.changed:
            server.leave(request)
    listening.shutdown()
    listening.server_close()
    assert sorted(waited)[-3] < 15, waited  # without a door over a hundred
