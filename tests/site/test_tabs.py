"""PyTorch or TensorFlow: the tabs, and the choice that the site keeps."""

import pytest

from tools.chromium import load
from tools.settings import chapters

CHAPTER = chapters()[0]
FRAMEWORKS = ["PyTorch", "TensorFlow"]


def assert_all_show(page, framework):
    shown = page.locator(".sd-tab-label").evaluate_all("""all => all.map(e =>
        [e.textContent.trim(), !!e.nextElementSibling.offsetParent])""")
    assert shown == [[name, name == framework] for name, _ in shown] != []


def test_choice_holds_on_every_page_and_is_kept(visit, site):
    page = visit(CHAPTER)
    page.locator(".sd-tab-label:text-is('TensorFlow'):visible").last.click()
    assert_all_show(page, "TensorFlow")
    for chapter in chapters():
        load(page, f"{site}{chapter}.html")
        assert_all_show(page, "TensorFlow")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_address_chooses_the_framework(visit, framework):
    page = visit(CHAPTER, f"?framework={framework.lower()}")
    assert_all_show(page, framework)


def test_keyboard_chooses_the_framework(visit):
    page = visit(CHAPTER)
    first = page.locator(".sd-tab-set > input").first
    while not first.evaluate("e => e === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert_all_show(page, "TensorFlow")
    page.keyboard.press("ArrowLeft")
    assert_all_show(page, "PyTorch")


def test_colab_opens_the_framework_that_is_chosen(visit):
    page = visit(chapters()[0])
    page.evaluate("""() => {
        const link = document.createElement("a");
        link.href = "https://colab.example/blob/editions/pytorch/x.ipynb";
        link.id = "colab";
        document.body.append(link);
    }""")
    for name in ("TensorFlow", "PyTorch"):
        page.locator(".sd-tab-label", has_text=name).first.click()
        page.locator(f'#colab[href*="editions/{name.lower()}/"]').wait_for(
            state="attached"
        )
