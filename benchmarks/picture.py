"""Draw the README's first picture: a published model talks.

    python -m benchmarks.picture

It asks SmolLM2, as *One evening* does, and lets Chromium draw its answer with
the five likeliest tokens at each step.
"""

from html import escape
from pathlib import Path

from playwright.sync_api import sync_playwright

from cellbycell.smol import talk
from tools import chromium

PICTURE = Path(__file__).parents[1] / "book/_static/talk.png"
QUESTION = "What is the capital of France?"
STYLE = """
body { margin: 0; padding: 24px; background: #fff; color: #1d2433;
  font: 17px "Liberation Sans", sans-serif }
.asked { display: inline-block; padding: 8px 16px; border-radius: 16px;
  background: #e3eaf5 }
.answer { display: flex; gap: 10px; margin: 18px 0 0; padding: 0 }
.answer > li { flex: 1; list-style: none }
b { display: block; padding: 6px 0; border-radius: 6px; background: #2b4c7e;
  color: #fff; text-align: center }
p { position: relative; margin: 5px 0 0; padding: 3px 6px; color: #1d2433;
  font-size: 14px }
p::before { position: absolute; inset: 0 auto 0 0; width: var(--share);
  border-radius: 3px; background: #c9d8ee; content: "" }
i { font-style: normal }
p span { position: relative; display: flex; justify-content: space-between }
"""


def picture(said):
    """Return the picture as HTML; said: what `talk` returns."""
    steps = ""
    for token, likely in said:
        bars = "".join(
            f'<p style="--share:{share:.0%}"><span>{shown(text)}'
            f"<i>{share:.0%}</i></span></p>".replace(">0%", ">")
            for text, share in likely.items()
        )
        steps += f"<li><b>{shown(token)}</b>{bars}</li>"
    return (
        f'<style>{STYLE}</style><div class="asked">{QUESTION}</div>'
        f'<ul class="answer">{steps}</ul>'
    )


def shown(token):
    """Return a token so that a line end and the end of a turn are seen."""
    named = {"<|im_end|>": "end", "\n": "⏎"}
    return escape(named.get(token, token.strip() or "␣"))[:10]


def main():
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright, chromium.find_chromium())
        view = {"width": 960, "height": 290}
        page = browser.new_page(viewport=view, device_scale_factor=2)
        page.set_content(picture(talk(QUESTION)))
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
