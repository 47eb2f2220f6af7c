// Small helpers. Texts always become text nodes: nothing that came from somewhere is ever read as HTML.

export const $ = (selector, root = document) => root.querySelector(selector);

export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// An element: make("p", {class: "meta"}, "text", child).
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

export const short = (address) => (address.length > 12 ? `${address.slice(0, 6)}…${address.slice(-4)}` : address);

export const many = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// Say something in the place that belongs to a form or a button.
export function say(place, text, mood = "") {
  const output = place.matches("output") ? place : $("output", place);
  output.className = mood;
  output.textContent = text;
}

// Say something that must outlive the part of the page that it is about.
export function toast(text, button) {
  $(".toast")?.remove();
  const box = make("div", { class: "toast", role: "status" }, text);
  if (button) {
    const again = make("button", { type: "button" }, button.label);
    again.addEventListener("click", () => { box.remove(); button.press(); });
    box.append(" ", again);
  } else {
    setTimeout(() => box.remove(), 6000);
  }
  document.body.append(box);
}

// Run what a button does: it is disabled meanwhile, and what goes wrong is told beside it.
export async function doing(place, button, work, busy = "Working…") {
  if (button) button.disabled = true;
  say(place, busy);
  try {
    const told = await work();
    say(place, told ?? "", told ? "good" : "");
    return true;
  } catch (error) {
    say(place, error.message || String(error), "bad");
    return false;
  } finally {
    if (button) button.disabled = false;
  }
}

// Call work(values, form) when a form is sent.
export function onSubmit(form, work, busy) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    doing(form, event.submitter ?? $("button:not([type])", form), () => work(values, form), busy);
  });
}

export function onPress(button, place, work, busy) {
  button.addEventListener("click", () => doing(place, button, work, busy));
}

/** Begins a request each time; what is given back then says whether none that began later was answered before. */
export function latest() {
  let begun = 0, answered = 0;
  return () => {
    const mine = ++begun;
    return () => mine >= answered && (answered = mine) > 0;
  };
}
