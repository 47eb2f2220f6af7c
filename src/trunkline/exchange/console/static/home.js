// The first page: filled anew whenever something in the overview has changed.

import { complain, post } from "./api.js";
import { coded, el, moment } from "./dom.js";
import { healthTag } from "./agent-parts.js";
import { whenever } from "./frame.js";
import { outcomeTag } from "./outcomes.js";
import { show } from "./rows.js";
import { visible } from "./visible.js";

const place = (id) => document.getElementById(`${id}-list`);

// Whoever may not do something is not offered it.
const decides = "decides" in place("waiting").dataset, writes = "writes" in place("agent").dataset;

function list(id, items, rowOf, keyOf) {
  show(place(id), items, keyOf, rowOf);
  const empty = document.getElementById(`${id}-empty`);
  if (empty) empty.hidden = items.length > 0;
}

const conversation = (session, text) => el("a", { href: `/sessions/${encodeURIComponent(session)}` }, text);

function approval(each) {
  return el("li", {},
    el("span", { class: "tag" }, visible(each.tool)),
    el("span", { class: "grow" }, conversation(each.session, visible(each.description || each.tool))),
    el("span", { class: "hint" }, each.agent, " · ", moment(each.asked_at)),
    decides && el("a", { class: "button small", href: "/approvals" }, "Decide"));
}

function failure(each) {
  return el("li", {},
    outcomeTag(each.outcome),
    el("span", { class: "grow" }, conversation(each.session, each.message || "A message without words"),
      el("span", { class: "hint block" }, coded(each.cause))),
    el("span", { class: "hint" }, each.agent, " · ", moment(each.ended_at)));
}

const STATES = { running: "at work", awaiting_approval: "asks", ending: "ending" };

function running(each) {
  return el("li", {},
    el("span", { class: "tag good" }, STATES[each.state] ?? each.state),
    el("span", { class: "grow" }, conversation(each.id, each.message || each.id)),
    el("span", { class: "hint" }, each.agent, " · ", each.by));
}

const LIMITS = { tokens_per_day: "tokens today", usd_per_day: "USD today", turns_per_hour: "turns this hour" };

function agent(each) {
  const budgets = Object.entries(each.budget).map(([name, { used, limit }]) =>
    el("span", { class: "hint block" },
      el("meter", { min: 0, max: limit, value: used, high: limit * 0.9, "aria-label": LIMITS[name] ?? name }), " ",
      `${Number(used.toFixed(2)).toLocaleString()} of ${limit.toLocaleString()} ${LIMITS[name] ?? name}`));
  return el("li", {},
    healthTag(each),
    el("span", { class: "grow" },
      el("a", { href: `/agents/${encodeURIComponent(each.name)}` }, each.name),
      el("span", { class: "hint block" }, each.healthy ? each.description : coded(each.last_error ?? "")), budgets),
    writes && el("button", { class: "quiet small", type: "button", on: { click: () => begin(each.name) } }, "Write to it"));
}

async function begin(name) {
  try {
    const made = await post("/api/sessions", { agent: name });
    location.assign(`/sessions/${encodeURIComponent(made.id)}`);
  } catch (error) {
    complain(error);
  }
}

const waiting = (each) => ("tool" in each ? approval(each) : failure(each));

whenever((detail) => {
  list("waiting", [...detail.approvals, ...detail.failed], waiting, (each) => each.id ?? `${each.session} ${each.turn}`);
  list("running", detail.running, running, (each) => each.id);
  list("agent", detail.agents, agent, (each) => each.name);
});
