// Fold side roads for a first reading, or open all, over the whole book; open
// the one that a link or a search leads to.
const roads = [...document.querySelectorAll("details.side-road")];
const remembered = "reading";

const openAround = (part) => {
  for (let at = part; at; at = at.parentElement)
    if (at.matches("details")) at.open = true;
};

const follow = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  openAround(target);
  // A link to a side road wants to read it.
  const own = target.querySelector(":scope > details.side-road");
  if (own) own.open = true;
  target.scrollIntoView();
};

const choose = (everything) => {
  for (const road of roads) road.open = everything;
  for (const button of document.querySelectorAll(".reading button"))
    button.setAttribute(
      "aria-pressed", String((button.value === "everything") === everything));
};

if (roads.length) {
  const group = document.createElement("div");
  group.className = "reading";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "How much to read");
  for (const [value, text] of [
    ["first", "First reading"], ["everything", "Everything"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.value = value;
    button.textContent = text;
    button.addEventListener("click", () => {
      localStorage.setItem(remembered, value);
      choose(value === "everything");
    });
    group.append(button);
  }
  document.querySelector("article h1").after(group);
  choose(localStorage.getItem(remembered) === "everything");
  follow();
  addEventListener("hashchange", follow);
}
