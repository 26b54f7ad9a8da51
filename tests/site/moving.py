"""The moving pictures: their chapters, their states, and how to ask one.

What a state shows is computed in shown_parts.py and shown_models.py with the
functions of the chapter: its sentence, and the text or the path of each part.
"""

from inspect import signature

from playwright.sync_api import expect

PICTURES = {}  # name -> a function: a chapter's variables, a state -> shown


def shows(chapter, states):
    """Say of a function what a picture shows, and in which states to ask.

    states: what the controls say, in the order in which the function takes
    it. The first state is that of the start.
    """

    def keep(function):
        _, *controls = signature(function).parameters
        named = [dict(zip(controls, s, strict=True)) for s in states]
        function.chapter, function.states = chapter, named
        PICTURES[function.__name__] = function
        return function

    return keep


class Figure:
    """A moving picture on a page."""

    def __init__(self, page, name):
        self.name, self.page = name, page
        self.root = page.locator(f"#{name}-figure")
        self.said = self.root.locator("[data-part=said]")

    def put(self, name, value):
        """Set a control: to a text, a number, or the places of its boxes."""
        inputs = self.root.locator(f"input[name={name}]")
        kind = inputs.first.get_attribute("type")
        if kind in ("text", "range"):
            return inputs.fill(str(value))
        labels = self.root.locator(f"label:has([name={name}])")
        if kind == "radio":
            return labels.nth(value).click()
        for i in range(inputs.count()):
            if inputs.nth(i).is_checked() != (i in value):
                labels.nth(i).click()

    def parts(self):
        """Return the text or the path of each part that is to be seen."""
        return self.root.evaluate(
            """root => {
            const image = root.querySelector("img");
            const drawn = image ? new DOMParser().parseFromString(
              decodeURIComponent(image.src.split("svg+xml,")[1]),
              "image/svg+xml").querySelectorAll("[data-part]") : [];
            const parts = {};
            for (const part of [...root.querySelectorAll("[data-part]"),
                                ...drawn])
              if (!part.hidden) parts[part.dataset.part] =
                part.getAttribute("d") ?? part.textContent;
            for (const other of ["said", "table", "axes"])
              delete parts[other];
            return parts; }"""
        )

    def assert_shows(self, said, parts):
        """Fail unless it shows this sentence and these parts."""
        parts.pop("axes", None)
        expect(self.said).to_have_text(said)
        assert self.parts() == parts


def drive(figure, book, states):
    """Put a picture into states, offline, and compare what it then shows."""
    figure.page.context.set_offline(True)
    try:
        for state in states:
            for control, value in state.items():
                figure.put(control, value)
            figure.assert_shows(*PICTURES[figure.name](book, **state))
    finally:
        figure.page.context.set_offline(False)
