// Mark in Contents the section that the reader is in. The theme marks headings
// that come into sight, which a quick scroll, or one upwards, passes by.
const entries = [...document.querySelectorAll("#pst-page-toc-nav .toc-entry")];
const sections = entries.map((entry) => document.getElementById(
  decodeURIComponent(entry.querySelector("a").hash.slice(1))));

// The bar of a narrow window: the number of the chapter, and the section.
const place = document.querySelector(".place span");
const title = place?.textContent;

const mark = () => {
  // The last section may be too short to come up that far.
  const page = document.documentElement;
  const isEnd = scrollY + innerHeight > page.scrollHeight - 2;
  const isPassed = (section) => section.checkVisibility()
    && (isEnd || section.getBoundingClientRect().top < innerHeight / 3);
  const here = entries[sections.findLastIndex(isPassed)];
  for (const entry of entries) {
    const link = entry.querySelector("a");
    entry.classList.toggle("active", entry.contains(here ?? null));
    link.classList.toggle("active", entry === here);
    if (entry === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (place) place.textContent = here
    ? here.querySelector("a").textContent.trim() : title;
};

// Where a reader was, for the landing page.
const remember = () => {
  const number = document.querySelector(".place")?.firstChild.textContent;
  const link = entries.find((entry) => entry.classList.contains("active"))
    ?.querySelector("a[aria-current]");
  if (number && scrollY > innerHeight) memory.set("place",
    [location.pathname.split("/").at(-1) + (link?.hash ?? ""),
      `${number.trim()} ${title}` + (link ? `: ${link.textContent.trim()}` : "")]);
};

// Once a frame, and after the theme.
let isDue = false;
const markSoon = () => {
  if (!isDue) requestAnimationFrame(() => setTimeout(() => {
    isDue = false;
    mark();
    remember();
  }));
  isDue = true;
};
if (entries.length) addEventListener("scroll", markSoon, { passive: true });
