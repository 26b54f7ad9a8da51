// Make what scrolls a stop of the Tab key also where the theme, which measures
// once, sees nothing yet: unfolded, in a tab that is chosen, in a window that is
// made narrower.
const scrollers = "pre, .cell_output > .output, .pst-scrollable-table-container";

const sizes = new ResizeObserver((entries) => {
  const boxes = new Set(entries.map(({ target }) => target.closest(scrollers)));
  const measured = [...boxes].map((box) => [
    box,
    box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight,
  ]);
  for (const [box, scrolls] of measured)
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
});

for (const box of document.querySelectorAll(scrollers))
  for (const part of [box, ...box.querySelectorAll(":scope > :is(div, table)")])
    sizes.observe(part);
