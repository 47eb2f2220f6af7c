// One thing that happened in a session, as a row of its timeline.

import { coded, el } from "./dom.js";

/** Longer texts are folded. */
const FOLD_CHARS = 360, FOLD_LINES = 6;

/** What kinds of entries are called; those with `bad` are about something that went wrong. */
const KINDS = {
  message: "message", answer: "answer", thinking: "thoughts", tool_asked: "asks for a tool", tool_judged: "policy",
  tool_answered: "decision", tool_started: "tool", tool_finished: "result", tool_cancelled: "cancelled", notice: "notice",
  plan: "plan", failed: "failure", stopped: "stop", end: "end", mode: "mode", grant: "grant", history: "history",
  damage: "damage", act: "session",
};
const BAD = new Set(["failed", "damage"]);

/** A time in milliseconds, as short as it can be said. */
export function lasting(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} d`;
}

/** Kinds of entries whose texts are our own sentences, with what is code in backticks. */
const OURS = new Set(["notice", "failed", "stopped", "end", "mode", "grant", "damage", "act", "tool_cancelled"]);

/** A text, folded if it is long; `set` gives what stands for it. */
export function told(text, set = (part) => part) {
  const isLong = text.length > FOLD_CHARS || text.split("\n", FOLD_LINES + 1).length > FOLD_LINES;
  if (!isLong) return el("div", { class: "text" }, set(text));
  const first = text.split("\n", FOLD_LINES).join("\n").slice(0, FOLD_CHARS);
  return el("details", { class: "long" },
    el("summary", {}, el("span", { class: "text first" }, `${first} …`), el("span", { class: "hint fold" }, "Fold")),
    el("div", { class: "text" }, set(text)));
}

/** A row. `since`: the moment from which its time is counted; `forked` is called to fork the session after it, if it can
 * be; `address` leads to its place in the conversation. */
export function entryRow(entry, since, address, forked = null) {
  const kind = KINDS[entry.kind] ?? entry.kind;
  return el("li", { class: `entry entry-${entry.kind}` },
    el("time", { class: "offset hint", datetime: new Date(entry.at).toISOString(), title: new Date(entry.at).toLocaleString() },
      `+${lasting(entry.at - since)}`),
    el("span", { class: BAD.has(entry.kind) ? "kind bad" : "kind" }, kind, entry.who && el("span", { class: "hint block" }, entry.who)),
    told(entry.text, OURS.has(entry.kind) ? coded : undefined),
    el("span", { class: "marks" },
      forked && el("button", { class: "quiet small fork", type: "button", "aria-label": `Fork after event ${entry.seq}`, on: { click: forked } }, "Fork"),
      address && el("a", { class: "hint", href: `${address}#e${entry.seq}`, "aria-label": `Event ${entry.seq} in the conversation` }, `#${entry.seq}`)));
}
