"""The content security policy: no script runs that a page does not name."""

import re
from functools import partial

from tools.settings import HTML, contents

HOME = contents()[0]


INJECTED = """
<script>window.ran = ["inline"]</script>
<script src="https://elsewhere.example/script.js"></script>
<img src="data:," onerror="window.ran = ['handler']" alt="">
</body>"""


def answer(route, request, **response):
    route.fulfill(**response)


def test_injected_scripts_do_not_run(browser, site):
    """Without the policy they do: the test itself is tested."""
    text = (HTML / f"{HOME}.html").read_text("utf-8")
    bare = re.sub("<meta http-equiv=.Content-Sec.*?>", "", text)
    assert bare != text
    context = browser.new_context()
    context.route(
        "https://elsewhere.example/*",
        partial(answer, body="(window.ran ??= []).push('far')"),
    )
    page, ran = context.new_page(), []
    for body in (text, bare):
        body = body.replace("</body>", INJECTED)
        page.route(
            f"{site}{HOME}.html",
            partial(answer, body=body, content_type="text/html"),
        )
        page.goto(f"{site}{HOME}.html")
        page.wait_for_load_state("networkidle")
        ran.append(page.evaluate("window.ran ?? []"))
        # The page's own scripts run in any case.
        theme = page.locator("html").get_attribute("data-theme")
        assert theme == "light"
    context.close()
    assert ran[0] == [] != ran[1]
