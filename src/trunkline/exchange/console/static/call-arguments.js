// What a tool would do, so that people can read it: commands as they are, changes as differences, the rest by name.

import { el } from "./dom.js";
import { compared } from "./line-diff.js";
import { visible } from "./visible.js";

/** From so many lines or characters on, a text is folded. */
const FOLD_LINES = 14, FOLD_CHARS = 1200;

/** What the text before and after a change is called, by different agents. */
const PAIRS = [["old_string", "new_string"], ["old_text", "new_text"], ["oldText", "newText"], ["old", "new"]];
const PLACES = ["file_path", "path", "notebook_path", "directory", "cwd", "url"];
const COMMANDS = ["command", "cmd", "script"];

const isText = (value) => typeof value === "string";
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** The arguments of a call as elements. */
export function shown(args) {
  const left = new Map(Object.entries(args));
  const parts = [];
  for (const name of PLACES.filter((each) => isText(left.get(each)))) {
    parts.push(named(name, el("code", {}, visible(left.get(name)))));
    left.delete(name);
  }
  for (const name of COMMANDS.filter((each) => isText(left.get(each)))) {
    parts.push(folded(left.get(name), "command"));
    left.delete(name);
  }
  const pair = pairIn(args);
  if (pair) {
    parts.push(difference(args[pair[0]] ?? "", args[pair[1]]));
    pair.forEach((name) => left.delete(name));
  }
  for (const [name, value] of left) parts.push(other(name, value));
  return parts.length ? parts : [el("p", { class: "hint" }, "Without arguments.")];
}

function pairIn(args) {
  return PAIRS.find(([old, now]) => isText(args[now]) && (isText(args[old]) || args[old] === null));
}

function other(name, value) {
  if (Array.isArray(value) && value.length && value.every((each) => isObject(each) && pairIn(each))) {
    return el("div", { class: "argument" }, ...value.map((each) => shown(each)));
  }
  if (isText(value) && (value.length > 60 || value.includes("\n"))) {
    return el("div", { class: "argument" }, el("span", { class: "hint" }, visible(name)), folded(value));
  }
  if (value === "") return named(name, "(empty)");
  if (isText(value)) return named(name, el("code", {}, visible(value)));
  const text = JSON.stringify(value, null, 2);
  return text.includes("\n") ? el("div", { class: "argument" }, el("span", { class: "hint" }, visible(name)), folded(text))
    : named(name, el("code", {}, visible(text)));
}

const named = (name, value) => el("p", { class: "argument" }, el("span", { class: "hint" }, visible(name)), " ", value);

// A box that scrolls can be reached by the keyboard.
const block = (kind, ...lines) => el("pre", { class: kind, tabindex: 0 }, ...lines);

function folded(said, kind = "") {
  const text = visible(said);
  const lines = text.split("\n");
  if (lines.length <= FOLD_LINES && text.length <= FOLD_CHARS) return block(kind, text);
  const head = lines.slice(0, FOLD_LINES).join("\n").slice(0, FOLD_CHARS);
  return foldable(block(kind, `${head}…`), block(kind, text), lines.length);
}

/** Short at first; what it says in full is behind a button. */
function foldable(short, whole, lines) {
  const words = lines > 1 ? `Show all ${lines.toLocaleString()} lines` : "Show all of it";
  const place = el("div", { class: "folded" }, short);
  place.append(el("button", {
    class: "quiet small", type: "button", "aria-expanded": "false",
    on: {
      click({ currentTarget: button }) {
        const open = button.getAttribute("aria-expanded") === "true";
        button.setAttribute("aria-expanded", String(!open));
        button.textContent = open ? words : "Show less";
        place.replaceChild(open ? short : whole, place.firstChild);
      },
    },
  }, words));
  return place;
}

const SIGNS = { same: " ", old: "-", new: "+" };

function difference(old, now) {
  const rows = compared(old, now).map(([kind, line]) =>
    el("span", { class: `line ${kind}` }, el("span", { class: "sign" }, SIGNS[kind]), `${visible(line)}\n`));
  if (rows.length <= FOLD_LINES * 2) return block("difference", rows);
  return foldable(block("difference", rows.slice(0, FOLD_LINES * 2).map((row) => row.cloneNode(true))),
    block("difference", rows), rows.length);
}
