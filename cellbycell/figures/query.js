// Turn the query where it is dragged or put: the sliders follow.
const axes = root.querySelector("[data-part=axes]");
const handle = root.querySelector("[data-part=handle]");
const inputs = root.querySelector("form").elements;
const move = (event) => {
  const {a, e, f} = axes.getScreenCTM();
  const x = (event.clientX - e) / a - 110;
  const y = 118 - (event.clientY - f) / a;
  inputs.angle.value = Math.atan2(y, x) * 180 / Math.PI;
  inputs.norm.value = Math.hypot(x, y) / 36;
  inputs.angle.form.oninput();
};
axes.onclick = move;
handle.onpointerdown = (event) => handle.setPointerCapture(event.pointerId);
handle.onpointermove = (event) =>
  handle.hasPointerCapture(event.pointerId) && move(event);
