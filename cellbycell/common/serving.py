"""A thousand requests: its common part, for what comes after it.

Built and explained in the chapter *A thousand requests* of the book.
Written by `make package`: change it in the chapter.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np


class Pages:
    """The pages of a memory: which are free, and how many texts use each.

    count: how many there are; size: the slots of each.
    """

    def __init__(self, count, size):
        self.count, self.size = count, size
        self.free, self.users = deque(range(count)), Counter()

    def grow(self, table, stop):
        """Give a table room for stop tokens, or return False."""
        missing = -(-stop // self.size) - len(table)  # rounded up
        if missing > len(self.free):
            return False
        for _ in range(missing):
            table.append(self.free.popleft())
            self.users[table[-1]] = 1
        return True

    def give_back(self, table):
        """Take a table's pages back; those without a user are free."""
        for page in reversed(table):  # so that a text's end goes first
            self.users[page] -= 1
            if not self.users[page]:
                self.free.append(page)

    def slots(self, table):
        """Return the slots of a table, in the order of its text."""
        return [p * self.size + i for p in table for i in range(self.size)]

    def known(self, ids):
        """Return pages that hold the beginning of ids: none, so far."""
        return []

    def keep(self, table, ids, stop):
        """Note what the pages of a text hold: nothing, so far."""


def likeliest(logits):
    """Return the ids (B,) of the largest logits (B, N), of any framework."""
    return np.asarray(logits).argmax(-1)


@dataclass(eq=False)
class Request:
    """A text to be written on; ids: its prompt, then what is written."""

    ids: list
    max_len: int  # of what is written
    end_id: int | None = None
    choose: object = likeliest  # logits (1, N) to an id (1,)
    read: int = 0  # how many of its ids have keys in memory
    written: int = 0
    table: list = field(default_factory=list)  # its pages


def check_request(request, server):
    """Raise ValueError if a server can't serve a request."""
    ids, vocab_size = request.ids, server.vocab_size
    if not ids or not isinstance(request.max_len, int) or request.max_len < 1:
        raise ValueError("The prompt is empty, or max_len no int above 0.")
    longest = len(ids) + request.max_len - 1  # the last is never read
    room = server.pages.count * server.pages.size
    if not all(isinstance(i, int) and 0 <= i < vocab_size for i in ids):
        raise ValueError(f"An id is not an int in [0, {vocab_size}).")
    if longest > room:
        raise ValueError(f"It could need {longest} slots, and {room} is all.")
    if request.written or request.read or request in server.waiting:
        raise ValueError("This request is served, or has been.")


class Server:
    """Write on many texts together, in steps.

    read: spans to logits, as read_together reads them; pages: of its memory;
    budget: the tokens of a step; most: the requests that run at a time.
    """

    def __init__(self, read, pages, vocab_size, budget=64, most=16):
        self.read, self.pages, self.vocab_size = read, pages, vocab_size
        self.budget, self.most = budget, most
        self.waiting, self.running, self.count = deque(), [], Counter()

    def submit(self, request):
        """Let a request wait. Raises ValueError if it can't be served."""
        check_request(request, self)
        self.waiting.append(request)

    def leave(self, request):
        """Take a request out: it has ended, or its user has hung up."""
        for line in (self.waiting, self.running):
            if request in line:
                line.remove(request)
        self.pages.give_back(request.table)
        request.table, request.read = [], 0

    def join(self):
        """Let the first who waits in, if there is room; return whether."""
        room = len(self.pages.free) * self.pages.size
        full = len(self.running) >= self.most
        if full or not self.waiting or len(self.waiting[0].ids) > room:
            return False
        request = self.waiting.popleft()
        request.table = self.pages.known(request.ids)
        request.read = len(request.table) * self.pages.size
        self.count["shared"] += request.read
        self.running.append(request)
        return True

    def make_room(self):
        """Send the youngest back to wait; what it has written stays."""
        request = self.running[-1]
        self.leave(request)
        self.waiting.appendleft(request)
        self.count["preempted"] += 1

    def plan(self):
        """Return [(request, stop)]: who reads in this step, and how far."""
        plan, left = [], self.budget
        while left and (len(plan) < len(self.running) or self.join()):
            request = self.running[len(plan)]
            stop = min(len(request.ids), request.read + left)
            if self.pages.grow(request.table, stop):
                plan.append((request, stop))
                left -= stop - request.read
            else:
                self.make_room()
        return plan

    def step(self):
        """Read once; return [(request, id)] of what is written."""
        plan, written = self.plan(), []
        if not plan:
            return written
        spans = [
            (one.ids[one.read : stop], one.read, self.pages.slots(one.table))
            for one, stop in plan
        ]
        self.count["steps"] += 1
        self.count["read"] += sum(len(ids) for ids, _, _ in spans)
        for (one, stop), row in zip(plan, self.read(spans), strict=True):
            one.read = stop
            self.pages.keep(one.table, one.ids, stop)
            if stop == len(one.ids):  # all is read: write; else drop the row
                new = int(one.choose(row[None])[0])
                one.ids.append(new)
                one.written += 1
                written.append((one, new))
                if new == one.end_id or one.written == one.max_len:
                    self.leave(one)
        return written


class SharedPages(Pages):
    """Pages that are found again by what they hold."""

    def __init__(self, count, size):
        super().__init__(count, size)
        self.page_of, self.key_of = {}, {}  # of full pages

    def key(self, ids, stop):
        """Return what the keys and values of a page depend on."""
        return tuple(ids[:stop])

    def keep(self, table, ids, stop):
        """Note what the full pages of a text hold, up to stop."""
        for n in range(stop // self.size):
            key = self.key(ids, (n + 1) * self.size)
            if key not in self.page_of and table[n] not in self.key_of:
                self.page_of[key], self.key_of[table[n]] = table[n], key

    def known(self, ids):
        """Return the pages of the beginning of ids; one id is left to read."""
        table = []
        for stop in range(self.size, len(ids), self.size):
            page = self.page_of.get(self.key(ids, stop))
            if page is None:
                break
            if not self.users[page]:
                self.free.remove(page)
            self.users[page] += 1
            table.append(page)
        return table

    def grow(self, table, stop):
        """Give a table room; forget what the new pages held."""
        held = len(table)
        grown = super().grow(table, stop)
        for page in table[held:]:
            self.page_of.pop(self.key_of.pop(page, None), None)
        return grown
