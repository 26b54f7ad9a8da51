// Fold side roads for a first reading, or open all, over the whole book; open
// the one that a link or a search leads to.
const roads = [...document.querySelectorAll("details.side-road")];
const group = document.querySelector(".reading");
const remembered = "reading";

const openAround = (part) => {
  for (let at = part; at; at = at.parentElement)
    if (at.matches("details")) at.open = true;
};

const follow = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  openAround(target);
  // A link to a side road wants to read it, also one to its former anchor.
  const own = target.closest("section")
    ?.querySelector(":scope > details.side-road");
  if (own) own.open = true;
  target.scrollIntoView();
};

const choose = (everything) => {
  for (const road of roads) road.open = everything;
  for (const button of group.children)
    button.setAttribute(
      "aria-pressed", String((button.value === "everything") === everything));
};

if (group) {
  for (const button of group.children)
    button.addEventListener("click", () => {
      memory.set(remembered, button.value);
      choose(button.value === "everything");
    });
  choose(memory.get(remembered) === "everything");
  follow();
  addEventListener("hashchange", follow);
}
