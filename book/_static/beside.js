// Light the parts of the diagram at the side whose code is in view.
const parts = [...document.querySelectorAll(".beside [data-words]")].map(
  (part) => [part, new RegExp(
    `(?<![\\w.])(self\\.|x\\.)?(${part.dataset.words.replaceAll(" ", "|")})\\b`)]);
const seen = new Set();
const light = () => {
  const code = [...seen].map((line) => line.textContent).join("\n");
  for (const [part, words] of parts)
    part.classList.toggle("lit", words.test(code));
};
// The middle of the window, where the eyes are.
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries)
    seen[isIntersecting ? "add" : "delete"](target);
  light();
}, { rootMargin: "-30% 0px -45% 0px" });
if (parts.length)
  for (const line of document.querySelectorAll(".cell_input .line"))
    watcher.observe(line);
