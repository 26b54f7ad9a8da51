// Light the parts of the diagram at the side whose code is in view.
{
  const parts = [...document.querySelectorAll(".beside [data-words]")].map(
    (part) => [part, new RegExp(
      `(?<![\\w.])(self\\.)?(${part.dataset.words.replaceAll(" ", "|")})\\b`)]);
  const seen = new Set();
  // The middle of the window, where the eyes are.
  const watcher = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes)
      seen[isIntersecting ? "add" : "delete"](target);
    const code = [...seen].map((line) => line.textContent).join("\n");
    for (const [part, words] of parts)
      part.classList.toggle("lit", words.test(code));
  }, { rootMargin: "-20% 0px -35% 0px" });
  if (parts.length)
    for (const line of document.querySelectorAll(".cell_input .line"))
      watcher.observe(line);
}
