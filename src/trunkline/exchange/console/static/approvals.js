// The inbox: filled anew whenever something in it has changed, and answered with the mouse or the keyboard.

import { complain, get, post } from "./api.js";
import { card, outcome, settled, waited } from "./approval-card.js";
import * as past from "./approvals-past.js";
import { whenever } from "./frame.js";

/** How many lines about what was decided stay in the inbox. */
const MOST_SETTLED = 5;

const inbox = document.getElementById("inbox");
const list = document.getElementById("pending");
const empty = document.getElementById("pending-empty");
const told = document.getElementById("told");
const filters = document.getElementById("filters");
const keys = document.getElementById("keys");
const decides = "decides" in inbox.dataset;
const title = document.title;

/** The cards by the ids of their approvals, and which of them an answer of ours is on its way for. */
const cards = new Map();
const answering = new Set();
/** Those that were decided, but that what is told of the whole exchange may still have: it was read a moment before. */
const decided = new Set();

// What is shown.

const chosen = () => Object.fromEntries([...new FormData(filters)].filter(([, value]) => value));
const query = () => Object.entries(chosen()).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`).join("");

let turn = 0;
let latest = [];

async function renew(current) {
  const mine = ++turn;
  const count = current.approvals.length;
  document.title = count ? `(${count}) ${title}` : title;
  try {
    const found = query() ? (await get(`/api/approvals?state=pending${query()}`)).approvals : current.approvals;
    if (mine !== turn) return;
    const ids = found.map((each) => each.id).join();
    take(found);
    if (ids !== latest.join()) past.renew();
    latest = found.map((each) => each.id);
  } catch (error) {
    complain(error);
  }
}

function take(found) {
  const waiting = new Set(found.map((each) => each.id));
  for (const [id, { made }] of cards) {
    if (!waiting.has(id) && !answering.has(id)) settle(id, made);
  }
  for (const approval of found) {
    if (!cards.has(approval.id) && !decided.has(approval.id)) {
      const made = card(approval, decides ? { decide, choose: chosenChanged } : {});
      cards.set(approval.id, { made, approval });
      list.append(made);
    }
  }
  changed();
}

function changed() {
  empty.hidden = list.children.length > 0;
  const several = cards.size > 0;
  if (decides) {
    keys.hidden = !several;
    document.getElementById("bulk").hidden = !several;
    chosenChanged();
  }
}

/** Somebody has decided: say who, where the card was. */
async function settle(id, made) {
  const { approval } = cards.get(id);
  cards.delete(id);
  const found = await get(`/api/approvals/${encodeURIComponent(id)}`)
    .catch((error) => (error.status === 404 ? null : { state: "pending" }));
  if (found?.state === "pending") {
    cards.set(id, { made, approval });
    return;
  }
  replace(made, found ?? { ...approval, state: "closed" }, found ? outcome(found) : "Its session was removed.");
}

function replace(made, approval, text) {
  const line = settled(approval, text, dismiss);
  const next = neighbour(made, 1) ?? neighbour(made, -1);
  const had = made.contains(document.activeElement);
  made.replaceWith(line);
  if (had) (next ?? line).focus();
  told.textContent = `${approval.tool}: ${text}`;
  const lines = [...list.querySelectorAll(".settled")];
  lines.slice(0, Math.max(0, lines.length - MOST_SETTLED)).forEach((each) => each.remove());
  changed();
}

function dismiss(line) {
  const next = line.nextElementSibling ?? line.previousElementSibling;
  line.remove();
  next?.focus();
  changed();
}

// Answers.

async function decide(made, decision) {
  const id = made.dataset.id;
  if (answering.has(id)) return;
  answering.add(id);
  lock(made, true);
  try {
    const found = await post(`/api/approvals/${encodeURIComponent(id)}`, decision);
    complain(null);
    decided.add(id);
    cards.delete(id);
    replace(made, found, outcome(found));
  } catch (error) {
    if (error.status === 409 || error.status === 404) {
      // Somebody was faster: that is told where the card is, as if it had been seen a moment earlier.
      decided.add(id);
      if (cards.has(id)) await settle(id, made);
    } else {
      complain(error);
    }
  } finally {
    answering.delete(id);
    lock(made, false);
    past.renew();
  }
}

const lock = (made, on) => made.querySelectorAll("button").forEach((each) => { each.disabled = on; });

const boxes = () => [...list.querySelectorAll(".one-head input")];

function chosenChanged() {
  const all = document.getElementById("all"), some = boxes().filter((box) => box.checked);
  const send = document.getElementById("deny-selected");
  send.disabled = !some.length;
  send.textContent = some.length ? `Deny ${some.length} selected…` : "Deny selected…";
  document.getElementById("bulk-send").textContent = some.length ? `Deny ${some.length}` : "Deny";
  all.checked = some.length > 0 && some.length === boxes().length;
  all.indeterminate = some.length > 0 && !all.checked;
  if (!some.length) document.getElementById("bulk-form").hidden = true;
}

async function denySelected(reason) {
  const ids = boxes().filter((box) => box.checked).map((box) => box.closest("li").dataset.id);
  ids.forEach((id) => answering.add(id));
  try {
    const found = (await post("/api/approvals/deny", { ids, reason })).approvals;
    const failed = found.filter((each) => each.state === "pending");
    complain(failed.length ? new Error(`${failed.length} could not be denied: ${failed[0].error}`) : null);
    for (const { id } of found.filter((each) => each.state !== "pending")) {
      decided.add(id);
      if (cards.has(id)) await settle(id, cards.get(id).made);
    }
  } catch (error) {
    complain(error);
  } finally {
    ids.forEach((id) => answering.delete(id));
    past.renew();
  }
}

// The keyboard.

function neighbour(made, step) {
  const all = [...list.querySelectorAll(".one")];
  return all[all.indexOf(made) + step];
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), select, textarea")) return;
  const made = event.target.closest?.(".one");
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  const scrolls = event.key.startsWith("Arrow") && (!made || event.target.closest("pre"));
  if (step && !scrolls) {
    const next = made ? neighbour(made, step) : list.querySelector(".one");
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    event.preventDefault();
  } else if (made && decides) {
    // Only for the one that has the focus: a key that was meant for something else decides nothing.
    const name = { a: "approve", A: "always", d: "deny" }[event.key];
    const box = event.key === "x" ? made.querySelector(".one-head input") : null;
    if (!name && !box) return;
    (box ?? made.querySelector(`[data-do=${name}]`)).click();
    event.preventDefault();
  }
}

// The beginning.

let overview = null;

function heard(found) {
  const waiting = new Set(found.approvals.map((each) => each.id));
  decided.forEach((id) => waiting.has(id) || decided.delete(id));
  renew(overview = found);
}

document.addEventListener("keydown", key);
setInterval(() => list.querySelectorAll(".waits").forEach((each) => {
  each.textContent = waited(Number(each.dataset.since));
}), 5000);

function filter() {
  const wanted = new URLSearchParams(chosen());
  history.replaceState(null, "", wanted.size ? `?${wanted}` : location.pathname);
  filters.querySelector("[type=reset]").hidden = !wanted.size;
  cards.clear();
  list.replaceChildren();
  latest = [];
  if (overview) renew(overview);
  past.show(query());
}

for (const [name, value] of new URLSearchParams(location.search)) {
  const field = filters.elements.namedItem(name);
  if (field) field.value = value;
}
filters.addEventListener("change", filter);
filters.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
filters.addEventListener("reset", () => setTimeout(filter));
filter();

if (decides) {
  const form = document.getElementById("bulk-form"), reason = document.getElementById("bulk-reason");
  document.getElementById("all").addEventListener("change", ({ target }) => {
    boxes().forEach((box) => { box.checked = target.checked; });
    chosenChanged();
  });
  document.getElementById("deny-selected").addEventListener("click", () => {
    form.hidden = false;
    reason.focus();
  });
  document.getElementById("bulk-cancel").addEventListener("click", () => {
    form.hidden = true;
    document.getElementById("deny-selected").focus();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    form.hidden = true;
    await denySelected(reason.value);
    reason.value = "";
  });
}
whenever(heard);
