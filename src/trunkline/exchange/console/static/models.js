// The models of this machine: pulls as they go on, and what can be done with each model. The list itself is made by the
// server, and fetched anew when something has changed.

import { complain, hear, post, remove } from "./api.js";
import { coded, el, fill, latest } from "./dom.js";

const pulls = document.getElementById("pulls");
const said = document.getElementById("said");
const form = document.getElementById("pull-form");
const mayDo = pulls.dataset.may === "true";

const UNITS = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

/** Bytes for people. */
function size(count) {
  const [unit, of] = UNITS.find(([, each]) => count >= each) ?? ["bytes", 1];
  const number = count / of;
  return `${number < 10 && of > 1 ? number.toFixed(1) : Math.round(number)} ${unit}`;
}

/** Run something for somebody: what goes wrong is told, and what was wrong before is not any more. */
async function trying(work) {
  complain(null);
  try {
    return await work();
  } catch (error) {
    complain(error);
    return null;
  }
}

// Pulls

const STATES = { done: ["tag good", "done"], failed: ["tag bad", "failed"], cancelled: ["tag", "cancelled"] };

function progress(each) {
  const parts = [each.step, each.total ? `${each.percent} %` : "", each.total ? `${size(each.bytes)} of ${size(each.total)}` : "",
    each.bytes_per_second ? `${size(each.bytes_per_second)}/s` : ""];
  return [
    el("progress", { max: 100, value: each.total ? each.percent : null, "aria-label": `Pull of ${each.name}` }),
    el("span", { class: "hint block" }, parts.filter(Boolean).join(" · ")),
  ];
}

function pullRow(each) {
  const [mark, word] = STATES[each.state] ?? ["tag good", "pulling"];
  const running = each.state === "running";
  return el("li", { "data-pull": each.id, "data-state": each.state },
    el("span", { class: mark }, word),
    el("span", { class: "grow" }, el("strong", {}, each.name), running ? progress(each) : null,
      each.error ? el("span", { class: "block" }, coded(each.error)) : null,
      each.note ? el("span", { class: "hint block" }, each.note) : null),
    mayDo && running ? el("button", {
      type: "button", class: "quiet small", "aria-label": `Cancel the pull of ${each.name}`,
      on: { click: () => trying(() => post(`/api/models/pulls/${encodeURIComponent(each.id)}/cancel`)) },
    }, "Cancel") : null,
    mayDo && (each.state === "failed" || each.state === "cancelled") ? el("button", {
      type: "button", class: "quiet small", "aria-label": `Continue the pull of ${each.name}`,
      on: { click: () => pull(each.name) },
    }, "Continue") : null);
}

let ended = null;

function showPulls({ pulls: found }) {
  // A button that has the focus keeps it, although its row is made anew.
  const held = document.activeElement?.closest("[data-pull]")?.dataset.pull;
  fill(pulls, found.map(pullRow));
  if (held) pulls.querySelector(`[data-pull="${held}"] button`)?.focus();
  const over = found.filter((each) => each.state !== "running").map((each) => `${each.id} ${each.state}`).join();
  if (ended !== null && over !== ended) refresh();
  ended = over;
}

const pull = (name) => trying(() => post("/api/models/pull", { name }));

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = document.getElementById("pull-name");
  if (await pull(field.value.trim())) field.value = "";
});

// The list

const asked = latest();

/** Fetch the list anew, as the server makes it. */
async function refresh() {
  const isNews = asked();
  const response = await fetch(location.pathname, { cache: "no-store" }).catch(() => null);
  if (!response?.ok) return;
  const text = await response.text();
  if (!isNews()) return;
  const made = new DOMParser().parseFromString(text, "text/html").getElementById("models");
  document.getElementById("models").replaceWith(document.adoptNode(made));
}

async function measure(id, name, button) {
  button.disabled = true;
  said.textContent = `${name} is being measured…`;
  const found = await trying(() => post(`/api/models/${encodeURIComponent(id)}/measure`));
  said.textContent = found
    ? `${name}: ${found.tokens_per_second} tokens a second, the first after ${found.first_token_ms} ms.` : "";
  button.disabled = false;
  if (found) await refresh();
}

/** Ask once more before something goes for good. */
function confirmRemoval(id, name, button) {
  const before = [...button.parentNode.children];
  const keep = () => { fill(place, before); button.focus(); };
  const place = button.parentNode;
  const sure = el("button", { type: "button", class: "danger small", on: { click: async () => {
    if (await trying(() => remove(`/api/models/${encodeURIComponent(id)}`))) {
      said.textContent = `${name} was removed.`;
      await refresh();
    } else {
      keep();
    }
  } } }, `Remove ${button.dataset.size}`);
  fill(place, sure, el("button", { type: "button", class: "quiet small", on: { click: keep } }, "Keep"));
  sure.focus();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("#models button[data-act]");
  if (!button) return;
  const { id, name } = button.closest("li").dataset;
  if (button.dataset.act === "pull") pull(name);
  if (button.dataset.act === "measure") measure(id, name, button);
  if (button.dataset.act === "remove") confirmRemoval(id, name, button);
});

hear(() => "/api/models/events", { pulls: showPulls });
