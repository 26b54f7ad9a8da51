"""A moving picture on a page: its controls, its parts, its sentence."""

from playwright.sync_api import expect


class Figure:
    """A moving picture on a page."""

    def __init__(self, page, name):
        self.name, self.page = name, page
        self.root = page.locator(f"#{name}-figure")
        self.said = self.root.locator("[data-part=said]")

    def put(self, name, value):
        """Set a control: to a text, a number, or the places of its boxes."""
        inputs = self.root.locator(f"[name={name}]")
        kind = inputs.first.evaluate("input => input.type")
        if kind == "select-one":
            return inputs.select_option(str(value))
        if kind in ("text", "range"):
            return inputs.fill(str(value))
        labels = self.root.locator(f"label:has([name={name}])")
        if kind == "radio":
            return labels.nth(value).click()
        wanted = [0] * value if isinstance(value, bool) else value
        for i in range(inputs.count()):
            if inputs.nth(i).is_checked() != (i in wanted):
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
