// Mark in Contents the section that the reader is in. The theme marks headings
// that come into sight, which a quick scroll, or one upwards, passes by.
const entries = [...document.querySelectorAll("#pst-page-toc-nav .toc-entry")];
const sections = entries.map((entry) => document.getElementById(
  decodeURIComponent(entry.querySelector("a").hash.slice(1))));

const mark = () => {
  const isPassed = (section) => section.checkVisibility()
    && section.getBoundingClientRect().top < innerHeight / 3;
  const here = entries[sections.findLastIndex(isPassed)];
  for (const entry of entries) {
    const link = entry.querySelector("a");
    entry.classList.toggle("active", entry.contains(here ?? null));
    link.classList.toggle("active", entry === here);
    if (entry === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
};

// Once a frame, and after the theme.
let isDue = false;
const markSoon = () => {
  if (!isDue) requestAnimationFrame(() => setTimeout(() => {
    isDue = false;
    mark();
  }));
  isDue = true;
};
if (entries.length) addEventListener("scroll", markSoon, { passive: true });
