(values, part, elements) => {
  const form = elements[0].form;
  part("answers")?.replaceWith(form); // the guesses stand below the numbers
  let guessed = 0, good = 0;
  data.fails.forEach((fails, i) => {
    const guess = values.get(`guess-${i}`);
    if (guess === null) return;
    const lamp = form.children[i].querySelector("b")
      ?? form.children[i].appendChild(make("b"));
    const isRight = fails == (guess == 1);
    lamp.textContent = (isRight ? "✓ yes, it " : "✗ no, it ")
      + (fails ? "fails" : "passes");
    paint(lamp, isRight ? "#d0e1f2" : "#fcb761");
    guessed += 1;
    good += isRight;
  });
  const all = data.fails.length;
  if (guessed < all) return "Does the model with the mistake pass each check? "
    + `${guessed} of ${all} guessed.`;
  return `You are right about ${good} of ${all} checks. ${data.reveal}`;
}
