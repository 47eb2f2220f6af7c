// A drawing that can be made larger and moved about. It is shown as a picture: nothing in it runs.

import { el, fill } from "./dom.js";

const SMALLEST = 0.2, LARGEST = 3, STEP = 1.25;

/** A place for a drawing, and its buttons. `show(svg, alt)` puts one there, `tell(text)` words in its place, `stale(is)`
 * says whether it is still that of the text. */
export function picture(stage, buttons) {
  const image = el("img", { alt: "", draggable: "false" });
  const size = el("output", {});
  let address = "", scale = 0;

  const button = (text, name, call) =>
    el("button", { type: "button", class: "quiet small", "aria-label": name, title: name, on: { click: call } }, text);
  fill(buttons, size,
    button("−", "Smaller", () => zoom(now() / STEP)),
    button("+", "Larger", () => zoom(now() * STEP)),
    button("Fit", "Fit the drawing into its place", () => zoom(0)));

  const fitting = () => Math.min(1, (stage.clientWidth - 2) / (image.naturalWidth || 1));
  const now = () => scale || fitting();

  const apply = () => {
    if (!image.naturalWidth) return;
    image.style.width = `${Math.floor(image.naturalWidth * now())}px`;
    image.style.height = "auto";
    size.textContent = `${Math.round(now() * 100)} %`;
  };

  /** 0 fits. What is in the middle stays there. */
  function zoom(to) {
    const before = image.clientWidth || 1;
    const x = stage.scrollLeft + stage.clientWidth / 2, y = stage.scrollTop + stage.clientHeight / 2;
    scale = to && Math.min(LARGEST, Math.max(SMALLEST, to));
    apply();
    const grown = image.clientWidth / before;
    stage.scrollTo(x * grown - stage.clientWidth / 2, y * grown - stage.clientHeight / 2);
  }

  image.addEventListener("load", apply);
  new ResizeObserver(() => { if (!scale) apply(); }).observe(stage);

  stage.addEventListener("keydown", (event) => {
    const to = { "+": now() * STEP, "=": now() * STEP, "-": now() / STEP, 0: 0 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(to);
  });
  stage.addEventListener("pointerdown", (event) => {
    // Fingers scroll by themselves.
    if (event.pointerType !== "mouse" || event.button !== 0 || event.target !== image) return;
    const from = { x: event.clientX + stage.scrollLeft, y: event.clientY + stage.scrollTop };
    const move = (moved) => stage.scrollTo(from.x - moved.clientX, from.y - moved.clientY);
    const end = () => {
      stage.classList.remove("drags");
      stage.removeEventListener("pointermove", move);
    };
    stage.classList.add("drags");
    stage.setPointerCapture(event.pointerId);
    stage.addEventListener("pointermove", move);
    stage.addEventListener("pointerup", end, { once: true });
    stage.addEventListener("pointercancel", end, { once: true });
  });

  const forget = () => { if (address) URL.revokeObjectURL(address); };
  return {
    show(svg, alt) {
      forget();
      address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
      image.src = address;
      image.alt = alt;
      fill(stage, image);
      stage.classList.remove("stale");
    },
    tell(text) {
      forget();
      address = "";
      fill(stage, el("p", { class: "empty" }, text));
      size.textContent = "";
    },
    stale(is) { stage.classList.toggle("stale", is); },
  };
}

const MOST_NAMED = 60;

/** A graph in a sentence, for those who do not see it. */
export function inWords({ start, nodes }) {
  const ways = nodes.slice(0, MOST_NAMED).map(({ name, exits }) => {
    const to = [...new Set(exits.map((exit) => exit.to || "the end"))];
    return `${name} leads to ${to.join(" or ")}`;
  });
  const more = nodes.length > MOST_NAMED ? `; and ${nodes.length - MOST_NAMED} more` : "";
  return `A graph of ${nodes.length} ${nodes.length === 1 ? "node" : "nodes"} that begins with ${start}: ${ways.join("; ")}${more}.`;
}
