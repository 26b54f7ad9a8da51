"""What a first visit asks for, and how heavy it is."""

import gzip

import pytest

from tools.settings import chapters

MOST_REQUESTS = 20
PACKED = ("font", "image/png", "image/webp")  # gzip gains nothing on these


@pytest.mark.parametrize(
    ("name", "most"), [("book/index", 150), *((c, 250) for c in chapters())]
)
def test_a_page_is_light(browser, site, name, most):
    page, found = browser.new_context().new_page(), {}
    page.on("response", lambda answer: found.setdefault(answer.url, answer))
    page.goto(f"{site}{name}.html")
    asked = {url: one for url, one in found.items() if "favicon" not in url}

    def weight(answer):
        kind = answer.headers.get("content-type", "")
        body = answer.body()
        return len(body if kind.startswith(PACKED) else gzip.compress(body))

    kilobytes = sum(map(weight, asked.values())) / 1000
    page.context.close()
    assert len(asked) <= MOST_REQUESTS, sorted(asked)
    assert kilobytes <= most
