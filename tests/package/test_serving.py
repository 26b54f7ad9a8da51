"""Pages and a server: who has which page, and what stands in it."""

import random
from collections import Counter

import numpy as np
import pytest

from cellbycell.common import Pages, Request, Server, SharedPages, likeliest


def ids_in(pages, held, table, length):
    """Return the ids that the slots of a table hold."""
    return [held[slot] for slot in pages.slots(table)[:length]]


@pytest.mark.parametrize("seed", range(30))
def test_pages_hold_what_their_texts_have_read(seed):
    """Random texts come, share, grow and go; no page is lost or mixed."""
    rng = random.Random(seed)
    size = rng.choice([1, 2, 3, 5])
    pages, held, texts = SharedPages(12, size), {}, []
    heads = [rng.choices(range(5), k=6) for _ in range(2)]
    for _ in range(120):
        if texts and rng.random() < 0.3:
            pages.give_back(texts.pop(rng.randrange(len(texts)))[1])
        ids = rng.choice(heads) + rng.choices(range(5), k=rng.randint(1, 6))
        table = pages.known(ids)
        read = len(table) * size
        assert read < len(ids)
        assert ids_in(pages, held, table, read) == ids[:read]
        if not pages.grow(table, len(ids)):
            pages.give_back(table)
            continue
        for slot, new in zip(
            pages.slots(table)[read:], ids[read:], strict=False
        ):
            held[slot] = new
        pages.keep(table, ids, len(ids))
        texts.append((ids, table))
        users = Counter(page for _, table in texts for page in table)
        assert users == +pages.users
        assert sorted([*users, *pages.free]) == list(range(12))
        for ids, table in texts:
            assert ids_in(pages, held, table, len(ids)) == ids
    for _, table in texts:
        pages.give_back(table)
    assert sorted(pages.free) == list(range(12))


def test_a_table_grows_whole_or_not_at_all():
    pages, table = Pages(3, 4), []
    assert not pages.grow(table, 13) and table == []
    assert pages.grow(table, 12) and sorted(table) == [0, 1, 2]
    assert pages.grow(table, 5) and len(table) == 3  # it has room already


def test_of_shared_pages_the_last_user_frees_them():
    pages, first, ids = SharedPages(4, 2), [], [1, 2, 3, 4, 5]
    pages.grow(first, 5)
    pages.keep(first, ids, 5)
    second = pages.known([1, 2, 3, 4, 9])
    assert second == first[:2]
    pages.give_back(first)
    assert not {*second} & {*pages.free}
    pages.give_back(second)
    assert len(pages.free) == 4 and pages.known(ids) == second


def counting(server_of_spans):
    """Return a server whose model writes the number of its last id, plus 1."""

    def read(spans):
        server_of_spans.append(spans)
        return np.eye(50)[[ids[-1] + 1 for ids, _, _ in spans]]

    return read


def test_a_step_reads_no_more_than_its_budget():
    seen = []
    server = Server(counting(seen), Pages(20, 4), 50, budget=5, most=3)
    requests = [Request([1] * n, 4) for n in (12, 3, 7, 1)]
    for request in requests:
        server.submit(request)
    while server.waiting or server.running:
        server.step()
        assert len(server.running) <= 3
    assert max(sum(len(ids) for ids, _, _ in spans) for spans in seen) == 5
    assert [one.ids[-4:] for one in requests] == [[2, 3, 4, 5]] * 4


def test_an_end_stops_a_text_and_a_step_says_what_was_written():
    server = Server(counting([]), Pages(20, 4), 50)
    request = Request([7, 8], 9, end_id=11)
    server.submit(request)
    said = []
    while server.running or server.waiting:
        said += server.step()
    assert said == [(request, new) for new in (9, 10, 11)]
    assert server.step() == [] and request.table == []


def test_the_first_of_equal_logits_is_the_likeliest():
    assert likeliest([[0.0, 2.0, 2.0], [3.0, 1.0, 3.0]]).tolist() == [1, 0]
