// On a long page, a field that leaves the entries with all the words typed. An
// entry is a section; on the page of the package it is a name.
const begin = document.querySelector("article > section");
const names = [...begin.querySelectorAll(":scope > section > dl.py")];
const parts = names.length ? names
  : [...begin.querySelectorAll(":scope > section")];
const texts = parts.map((part) => part.textContent.toLowerCase());
const links = [...begin.querySelectorAll(":scope > ul a[href^='#']")];

const box = document.createElement("input");
const left = document.createElement("p");
const label = document.createElement("label");
const bar = document.createElement("div");
box.type = "search";
left.setAttribute("role", "status");
label.append(names.length ? "Find a name: " : "What do you see? ", box);
bar.className = "filter";
bar.append(label, left);
begin.querySelector(":scope > :is(ul, section)").before(bar);

const filter = () => {
  const typed = box.value.toLowerCase().split(/\s+/);
  parts.forEach((part, i) => {
    part.hidden = !typed.every((word) => texts[i].includes(word));
  });
  // The list above the sections has what is left of them.
  for (const link of links)
    link.closest("li").hidden = document.getElementById(link.hash.slice(1)).hidden;
  for (const group of begin.querySelectorAll(":scope > ul > li"))
    group.hidden = !group.querySelector("li:not([hidden])");
  const count = parts.filter((part) => !part.hidden).length;
  left.textContent = box.value.trim()
    ? `${count} of ${parts.length} entries left` : "";
};
box.addEventListener("input", filter);
// Whoever follows a link to what is hidden wants to see it.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("[hidden]")) return;
  box.value = "";
  filter();
  target.scrollIntoView();
});
