// One approval in the inbox: what is asked, and the ways to answer it; and the line that takes its place.

import { shown } from "./call-arguments.js";
import { el } from "./dom.js";
import { visible } from "./visible.js";

const KINDS = { info: "look-up", edit: "files", exec: "command", mcp: "server tool" };

/** Where an approval belongs in its conversation: one that waits is at its end. */
export function place({ session, state, turn }) {
  const path = `/sessions/${encodeURIComponent(session)}`;
  return state === "pending" ? path : `${path}/timeline#turn-${turn}`;
}

/** Wires as people call them. */
const WIRES = {
  acp: "an editor", agentproc: "a chat bridge", chat: "a terminal", cluster: "another node", console: "the console",
  http: "the HTTP API", jsonstream: "a JSON stream host", mcp: "an MCP host", openai: "an OpenAI client",
  tryll: "a Tryll client",
};
export const wireName = (wire) => WIRES[wire] ?? wire;

/** Who decided it and from where, in words. */
export function outcome(approval) {
  if (approval.state === "closed") return approval.reason || "The call ended before anybody answered.";
  const who = approval.decided_by ? ` by ${approval.decided_by}` : "";
  const from = approval.wire ? ` from ${wireName(approval.wire)}` : "";
  return `${approval.state === "approved" ? "Approved" : "Denied"}${who}${from}`;
}

/** How long something waits, as `2 min`. */
export function waited(since, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - since) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
}

/** The card of an approval. `decide` is called with the card and a decision, `choose` when it was selected or not;
 * without them it can only be read. */
export function card(approval, { decide, choose } = {}) {
  const label = `asked-${approval.id}`;
  const box = decide && el("input", { type: "checkbox", "aria-label": `Select ${visible(approval.tool)}`, on: { change: choose } });
  const when = new Date(approval.asked_at);
  const made = el("li", { class: "card one", tabindex: -1, "data-id": approval.id, "aria-labelledby": label },
    el("div", { class: "one-head" },
      box,
      el("h3", { id: label }, visible(approval.tool)),
      el("span", { class: "tag" }, KINDS[approval.category] ?? approval.category),
      el("a", { class: "hint", href: `/agents/${encodeURIComponent(approval.agent)}` }, approval.agent),
      el("span", { class: "hint" }, "waits ", el("time", {
        class: "waits", datetime: when.toISOString(), title: when.toLocaleString(), "data-since": approval.asked_at,
      }, waited(approval.asked_at))),
      el("a", { class: "hint end", href: place(approval) }, "In its conversation")),
    approval.description && approval.description !== approval.tool && el("p", {}, visible(approval.description)),
    shown(approval.args));
  if (decide) made.append(answers(made, label, decide));
  return made;
}

function answers(made, label, decide) {
  const button = (name, text, title, kind, click) => el("button", {
    type: "button", "data-do": name, title, class: kind, "aria-describedby": label, on: { click },
  }, text);
  const reason = el("input", { maxlength: 10000, autocomplete: "off", "aria-label": "Why not? The agent is told." , placeholder: "Why not? The agent is told." });
  const form = el("form", { class: "reason", hidden: true, on: {
    submit(event) {
      event.preventDefault();
      decide(made, { decision: "deny", reason: reason.value });
    },
    keydown(event) {
      if (event.key !== "Escape") return;
      form.hidden = true;
      made.focus();
    },
  } }, reason, el("button", { class: "danger", "data-do": "deny-now" }, "Deny"));
  const ask = () => {
    form.hidden = false;
    reason.focus();
  };
  const row = el("div", { class: "answers" },
    button("approve", "Approve", "Let it be done (a)", "", () => decide(made, { decision: "approve" })),
    button("always", "Always", "This, and later calls of its kind in this conversation (A)", "quiet",
      () => decide(made, { decision: "approve", scope: "always" })),
    button("deny", "Deny…", "Do not let it be done (d)", "quiet", ask));
  return el("div", {}, row, form);
}

/** What takes a card's place when it is decided. */
export function settled(approval, text, dismiss) {
  const line = el("li", { class: "settled", tabindex: -1 },
    el("span", { class: `tag ${approval.state === "approved" ? "good" : approval.state === "denied" ? "bad" : ""}` },
      approval.state),
    el("span", { class: "grow" }, el("a", { href: place(approval) }, visible(approval.description || approval.tool)),
      el("span", { class: "hint block" }, text)),
    el("button", { class: "quiet small", type: "button", "aria-label": `Dismiss: ${text}`, on: { click: () => dismiss(line) } }, "Dismiss"));
  return line;
}
