"""The content security policy: no script runs that a page does not name."""

import re
from functools import partial

import pytest

from tools.settings import HTML, contents

HOME = contents()[0]


@pytest.mark.parametrize("name", [*contents(), "search", "genindex"])
def test_policy_allows_no_script_that_is_not_named(name):
    text = (HTML / f"{name}.html").read_text("utf-8")
    policies = re.findall(
        r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', text
    )
    assert len(policies) == 1
    assert text.index("Content-Security-Policy") < text.index("<script")
    rules = dict(rule.split(" ", 1) for rule in policies[0].split("; "))
    assert rules["default-src"] == rules["base-uri"] == "'none'"
    allowed = rules["script-src"].split()
    plain = [source for source in allowed if "'sha256-" not in source]
    assert set(plain) <= {"'self'", "'unsafe-hashes'"}


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
