// Changes of files: unified diffs as tools give them, or two texts; side by side, or one below the other.

import { el, fill } from "./dom.js";
import { compared } from "./line-diff.js";
import { visible } from "./visible.js";

/** Lines that are the same, around a change. */
const AROUND = 3;
/** Rows that are shown at first: whoever wants to see more says so. */
const MOST_ROWS = 300;
const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/;
/** Where the choice is kept: it is one of the reader, not of a change. */
const CHOICE = "trunkline-diff";

/** The rows of a unified diff: `kind` is `file`, `hunk`, `same`, `old`, `new` or `note`. */
export function rowsOfDiff(text) {
  const rows = [];
  let before = 0, after = 0, isInside = false;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [before, after, isInside] = [Number(hunk[1]), Number(hunk[2]), true];
      rows.push({ kind: "hunk", text: hunk[3].trim() });
    } else if (line.startsWith("--- ") || line.startsWith("+++ ") && !isInside) {
      isInside = false;
      if (line.startsWith("+++ ")) rows.push({ kind: "file", text: line.slice(4).replace(/^b\//, "") });
    } else if (isInside && line[0] === "-") {
      rows.push({ kind: "old", before: before++, text: line.slice(1) });
    } else if (isInside && line[0] === "+") {
      rows.push({ kind: "new", after: after++, text: line.slice(1) });
    } else if (isInside && (line[0] === " " || line === "")) {
      rows.push({ kind: "same", before: before++, after: after++, text: line.slice(1) });
    } else if (line) {
      rows.push({ kind: "note", text: line });
    }
  }
  return rows;
}

/** The rows of a change from one text to another, with a few of the lines around it. */
export function rowsOfTexts(old, now) {
  let before = 1, after = 1;
  const all = compared(old, now).map(([kind, text]) => ({
    kind, text: visible(text),
    ...(kind === "new" ? {} : { before: before++ }), ...(kind === "old" ? {} : { after: after++ }),
  }));
  const rows = [];
  let skipped = false;
  all.forEach((row, place) => {
    const near = all.slice(Math.max(0, place - AROUND), place + AROUND + 1);
    if (row.kind !== "same" || near.some((each) => each.kind !== "same")) {
      if (skipped) rows.push({ kind: "hunk", text: "" });
      skipped = false;
      rows.push(row);
    } else {
      skipped = true;
    }
  });
  return rows;
}

/** How many lines came and went. */
export function countOf(rows) {
  const count = (kind) => rows.filter((row) => row.kind === kind).length;
  return { added: count("new"), removed: count("old") };
}

/** Rows as an element, with a choice of how; `grown` is called before its height changes. */
export function diffView(rows, grown = () => {}) {
  const place = el("div", { class: "diff-place", tabindex: 0, role: "group", "aria-label": "Changes" });
  const { added, removed } = countOf(rows);
  let isWhole = rows.length <= MOST_ROWS;
  const draw = () => {
    const seen = isWhole ? rows : rows.slice(0, MOST_ROWS);
    fill(place, isBeside() ? beside(seen) : below(seen));
    choice.textContent = isBeside() ? "Unified" : "Side by side";
  };
  const choice = el("button", { class: "quiet small", type: "button", on: { click() {
    grown();
    localStorage.setItem(CHOICE, isBeside() ? "below" : "beside");
    draw();
  } } });
  const more = !isWhole && el("button", { class: "quiet small", type: "button", on: { click() {
    grown();
    isWhole = true;
    more.remove();
    draw();
  } } }, `Show all ${rows.length.toLocaleString()} lines`);
  draw();
  return el("div", { class: "diff" },
    el("div", { class: "diff-head" },
      el("span", { class: "hint" }, `${added} added, ${removed} removed`), choice), place, more);
}

const isBeside = () => localStorage.getItem(CHOICE) === "beside";

const SIGNS = { same: " ", old: "−", new: "+" };

const cell = (name, text) => el("td", { class: name }, text ?? "");
const across = (row, width) => el("tr", { class: row.kind }, el("td", { colspan: width },
  row.kind === "hunk" ? `⋯ ${row.text}` : row.text));

function below(rows) {
  return el("table", { class: "lines" }, el("tbody", {}, rows.map((row) => row.kind in SIGNS
    ? el("tr", { class: row.kind }, cell("at", row.before), cell("at", row.after), cell("sign", SIGNS[row.kind]),
      cell("text", row.text))
    : across(row, 4))));
}

function beside(rows) {
  const made = [];
  for (let at = 0; at < rows.length;) {
    const row = rows[at];
    if (row.kind !== "old" && row.kind !== "new") {
      made.push(row.kind === "same" ? both(row, row) : across(row, 4));
      at++;
      continue;
    }
    const old = run(rows, at, "old");
    const now = run(rows, at + old.length, "new");
    for (let place = 0; place < Math.max(old.length, now.length); place++) made.push(both(old[place], now[place]));
    at += old.length + now.length;
  }
  const widths = [0, 1].flatMap(() => [el("col", { class: "at" }), el("col")]);
  return el("table", { class: "lines beside" }, el("colgroup", {}, widths), el("tbody", {}, made));
}

function run(rows, from, kind) {
  let end = from;
  while (rows[end]?.kind === kind) end++;
  return rows.slice(from, end);
}

function both(old, now) {
  const half = (row, number) => [cell(`at ${row ? row.kind : "none"}`, number),
    cell(`text ${row ? row.kind : "none"}`, row?.text)];
  return el("tr", {}, half(old, old?.before), half(now, now?.after));
}
