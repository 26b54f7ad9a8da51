// The chapter that Colab opens has one framework: the one that is chosen.
const leadToFramework = () => {
  const name = localStorage.getItem("sphinx-design-tab-id-framework");
  if (!["pytorch", "tensorflow"].includes(name)) return;
  for (const link of document.querySelectorAll('a[href*="/blob/editions/"]'))
    link.href = link.href.replace(/editions\/\w+/, `editions/${name}`);
};
// When the tabs have remembered what was chosen.
addEventListener("change", () => setTimeout(leadToFramework));
addEventListener("DOMContentLoaded", () => setTimeout(leadToFramework));
