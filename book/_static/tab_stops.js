// The theme makes what scrolls a stop of the Tab key when a page is loaded or
// resized. Unfolding a part and choosing a tab show more that may scroll.
for (const event of ["load", "toggle", "change"])
  addEventListener(event, () => dispatchEvent(new Event("resize")), true);
