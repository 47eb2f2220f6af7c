// The list of sessions: it is there already; here its moments become readable, and its states are kept up to date.

import { complain, post } from "./api.js";
import { el, moment } from "./dom.js";
import { whenever } from "./frame.js";

const STATES = { running: "at work", awaiting_approval: "asks", ending: "ending" };

for (const time of document.querySelectorAll("time[data-at]")) time.replaceWith(moment(Number(time.dataset.at)));

/** What a session's tag said before it was at work, by its row. */
const before = new WeakMap();

/** Show whether a session is at work now. A turn that was found stays as it ended. */
function show(row, state) {
  const tag = row.querySelector(".tag");
  if (!before.has(row)) before.set(row, tag.classList.contains("good") ? el("span", { class: "tag" }, "at rest") : tag);
  tag.replaceWith(state ? el("span", { class: "tag good" }, STATES[state] ?? state) : before.get(row));
}

const rows = document.querySelectorAll(".sessions:not(.found) > li");
whenever((detail) => {
  const states = new Map(detail.running.map((each) => [each.id, each.state]));
  for (const row of rows) show(row, states.get(row.dataset.session));
});

const form = document.getElementById("begin");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const made = await post("/api/sessions", { agent: new FormData(form).get("agent") });
    location.assign(`/sessions/${encodeURIComponent(made.id)}`);
  } catch (error) {
    complain(error);
    button.disabled = false;
  }
});
