// The timeline of a session: its turns with their causes, each folded open when somebody wants to know more.

import { complain, get, post, remove } from "./api.js";
import { coded, el, fill, latest, moment } from "./dom.js";
import { isBadEnd, outcomeTag } from "./outcomes.js";
import { entryRow, lasting } from "./timeline-entries.js";
import { ready } from "./timeline-replay.js";
import { whenever } from "./frame.js";
import { show as showRows } from "./rows.js";

const about = document.getElementById("session");
const { id, agent } = about.dataset;
const isGraph = "graph" in about.dataset, isAdmin = "admin" in about.dataset;
const address = `/sessions/${encodeURIComponent(id)}`;
const place = document.getElementById("turns"), state = document.getElementById("timeline-state");

const TOKENS = { input_tokens: "in", output_tokens: "out", cache_read_tokens: "from the cache" };

/** The entries of each turn together, and those between turns. */
function grouped(entries) {
  const groups = [];
  let current = null;
  for (const entry of entries) {
    const goesOn = current && (entry.turn ? current.turn === entry.turn : !current.turn || !current.ended);
    if (!goesOn) groups.push(current = { turn: entry.turn, entries: [], ended: false });
    current.entries.push(entry);
    if (entry.kind === "end") current.ended = true;
  }
  return groups;
}

const used = (usage) => Object.entries(TOKENS)
  .filter(([name]) => usage?.[name] != null)
  .map(([name, words]) => `${usage[name].toLocaleString()} ${words}`).join(", ");

async function make(how, body, button = null) {
  if (button) button.disabled = true;
  try {
    const made = await post(`/api${address}/${how}`, body);
    location.assign(`/sessions/${encodeURIComponent(made.id)}`);
  } catch (error) {
    complain(error);
    if (button) button.disabled = false;
  }
}

function picture(turn) {
  const figure = el("figure", { class: "graph" },
    el("img", {
      src: `/api${address}/turns/${turn}/graph.svg`,
      alt: `The way that turn ${turn} took through the graph of ${agent}: the nodes that ran are numbered in their order, each with its time and what it decided.`,
      on: { error: () => figure.remove() },
    }));
  return figure;
}

function rows(group, since) {
  return group.entries.map((entry) => {
    const body = entry.end === undefined ? {} : { at: entry.end };
    const forked = !isAdmin || !entry.seq ? null : ({ target }) => make("fork", body, target);
    return entryRow(entry, since, entry.seq ? address : null, forked);
  });
}

function turnItem(story, group, isOpen) {
  const isBad = isBadEnd(story.outcome);
  const body = el("div", { class: "turn-body" });
  const build = () => {
    if (body.childElementCount) return;
    fill(body,
      story.outcome !== "success" && el("p", { class: isBad ? "cause bad" : "cause" }, coded(story.cause)),
      isGraph && story.ended_at !== null ? picture(story.turn) : null,
      el("ol", { class: "entries" }, rows(group, story.began_at)));
  };
  const tokens = used(story.usage);
  const details = el("details", { open: isOpen, on: { toggle: () => details.open && build() } },
    el("summary", {},
      outcomeTag(story.outcome),
      el("h2", {}, el("span", { class: "hint" }, `${story.turn} `), story.message || "A message without words"),
      el("span", { class: "hint meta" },
        story.by && el("span", {}, story.by),
        el("span", {}, moment(story.began_at)),
        story.ended_at !== null && el("span", {}, lasting(story.ended_at - story.began_at)),
        tokens && el("span", { title: "Tokens" }, tokens))),
    body);
  if (isOpen) build();
  return el("li", { class: "turn card", id: `turn-${story.turn}` }, details);
}

function betweenItem(group) {
  return el("li", { class: "between" }, el("ol", { class: "entries" }, rows(group, group.entries[0].at)));
}

function show(story) {
  const turns = new Map(story.turns.map((turn) => [turn.turn, turn]));
  story.timeline.forEach((entry, index) => {
    const next = story.timeline.slice(index + 1, index + 20).find((later) => later.seq > entry.seq);
    // The last event before the next entry: a fork there keeps all of this one.
    if (next) entry.end = next.seq - 1;
  });
  const wanted = Number(/^#turn-(\d{1,9})$/.exec(location.hash)?.[1] ?? 0);
  const isFirst = !place.childElementCount, last = story.turns.at(-1)?.turn;
  const items = grouped(story.timeline).map((group) => ({ group, turn: turns.get(group.turn) }));
  showRows(place, items, ({ turn }) => turn?.turn ?? "between", ({ group, turn }, old) => {
    if (!turn) return betweenItem(group);
    const isOpen = old ? old.querySelector("details").open : turn.turn === wanted || (!wanted && turn.turn === last);
    return turnItem(turn, group, isOpen);
  });
  state.textContent = "";
  document.getElementById("timeline-empty").hidden = items.length > 0;
  const leftOut = document.getElementById("timeline-left-out");
  leftOut.hidden = !story.left_out;
  leftOut.textContent = `${story.left_out.toLocaleString()} earlier entries are left out. An export has all of them.`;
  ready(story.timeline);
  if (wanted && isFirst) document.getElementById(`turn-${wanted}`)?.scrollIntoView({ block: "start" });
}

const asked = latest();

async function load() {
  const isNews = asked();
  try {
    const story = await get(`/api${address}/explanation`);
    if (isNews()) show(story);
  } catch (error) {
    if (!isNews()) return;
    state.textContent = "";
    complain(error);
  }
}

load();

// Read again whenever a turn here begins, asks or ends; and when the first news comes: a turn may have begun before it.
let doing = null;
whenever((detail) => {
  const now = JSON.stringify(detail.running.find((each) => each.id === id) ?? "");
  if (now !== doing) load();
  doing = now;
});

document.getElementById("fork")?.addEventListener("click", ({ target }) => make("fork", {}, target));
const handover = document.getElementById("handover");
handover?.addEventListener("submit", (event) => {
  event.preventDefault();
  make("handover", { to: new FormData(handover).get("to") }, handover.querySelector("button"));
});
const removing = document.getElementById("removing");
document.getElementById("remove")?.addEventListener("click", () => removing.showModal());
removing?.addEventListener("close", async () => {
  if (removing.returnValue !== "remove") return;
  try {
    await remove(`/api${address}`);
    location.assign("/sessions");
  } catch (error) {
    complain(error);
  }
});
// A menu closes when somebody goes on elsewhere.
for (const menu of document.querySelectorAll("details.menu")) {
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
