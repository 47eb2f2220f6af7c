// Markdown as elements: what agents write in it, and nothing else. All that is not known here stays text.

import { el } from "./dom.js";

/** Deeper than this, lists and quotes stay text. */
const DEEPEST = 8;
/** So many marks are looked at to find the one that ends another: a text may consist of nothing else. */
const MOST_LOOKS = 50;
const ADDRESS = /^(?:https?:\/\/|mailto:)\S+$/i;
const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)/;
const CELLS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;

/** What shows a text that may grow: `update(text)` makes only those parts anew that have changed. */
export function markdownView() {
  const element = el("div", { class: "prose" });
  let known = [];
  const update = (text) => {
    const parts = partsOf(text.split("\n"));
    let same = 0;
    while (same < Math.min(known.length, parts.length) && known[same] === parts[same].source) same++;
    while (element.children.length > same) element.lastChild.remove();
    element.append(...parts.slice(same).map((part) => part.make(0)));
    known = parts.map((part) => part.source);
  };
  return { element, update };
}

/** A text as elements. */
export function markdown(text, depth = 0) {
  return partsOf(text.split("\n")).map((part) => part.make(depth));
}

/** The parts of a text, one after the other: `source`, and what makes an element of it. */
function partsOf(lines) {
  const parts = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at++;
      continue;
    }
    const [end, make] = partAt(lines, at);
    parts.push({ own: lines.slice(at, end), make, marks: HEADING.exec(lines[at])?.[1].length ?? 0 });
    at = end;
  }
  // The page has a first heading of its own; whatever an agent begins with comes next, and no level is left out.
  const levels = [...new Set(parts.map((part) => part.marks))].filter(Boolean).sort();
  return parts.map(({ own, make, marks }) => {
    const level = Math.min(2 + levels.indexOf(marks), 6);
    return { source: `${level} ${own.join("\n")}`, make: (depth) => make(own, depth, level) };
  });
}

function partAt(lines, at) {
  for (const read of PARTS) {
    const found = read(lines, at);
    if (found) return found;
  }
  throw new Error("a paragraph is always one");
}

/** Each gives the line after a part that begins here and what makes it of its lines, or nothing. */
const PARTS = [fence, heading, rule, quote, list, table, paragraph];

function fence(lines, at) {
  const found = FENCE.exec(lines[at]);
  if (!found) return null;
  const [, , marks] = found;
  let end = at + 1;
  while (end < lines.length && !isFenceEnd(lines[end], marks)) end++;
  return [Math.min(end + 1, lines.length), fenced];
}

function isFenceEnd(line, marks) {
  const text = line.trim();
  return text.length >= marks.length && text === marks[0].repeat(text.length);
}

function fenced(lines) {
  const [, indent, marks, language] = FENCE.exec(lines[0]);
  const isClosed = lines.length > 1 && isFenceEnd(lines.at(-1), marks);
  const own = lines.slice(1, isClosed ? -1 : undefined);
  return codeBox(own.map((line) => line.replace(new RegExp(`^ {0,${indent.length}}`), "")).join("\n"), language);
}

/** Code with its language, and a button that copies it. */
export function codeBox(text, language = "") {
  const copy = el("button", { class: "quiet small", type: "button", on: { click: () => copied(copy, text) } }, "Copy");
  return el("figure", { class: "code" },
    el("figcaption", {}, el("span", {}, language || "code"), copy),
    el("pre", { tabindex: 0 }, el("code", {}, text)));
}

async function copied(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

function heading(lines, at) {
  return HEADING.test(lines[at]) ? [at + 1, ([line], _, level) => {
    let text = HEADING.exec(line)[2].trimEnd();
    while (text.endsWith("#")) text = text.slice(0, -1);
    return el(`h${level}`, {}, inline(text.trimEnd()));
  }] : null;
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? [at + 1, () => el("hr")] : null;
}

function quote(lines, at) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  return end > at ? [end, (own, depth) => el("blockquote", {},
    deeper(own.map((line) => line.replace(QUOTE, "")), depth))] : null;
}

function deeper(lines, depth) {
  return depth < DEEPEST ? markdown(lines.join("\n"), depth + 1) : [el("p", {}, lines.join("\n"))];
}

const indentOf = (line) => /^[ \t]*/.exec(line)[0].replaceAll("\t", "    ").length;
const isOrdered = (line) => /^[ \t]*\d/.test(line);

function list(lines, at) {
  if (!ITEM.test(lines[at]) || RULE.test(lines[at])) return null;
  const base = indentOf(lines[at]);
  const ordered = isOrdered(lines[at]);
  let end = at + 1;
  for (; end < lines.length; end++) {
    const line = lines[end];
    if (!line.trim()) {
      // An empty line ends a list, unless it goes on behind it.
      let next = end + 1;
      while (next < lines.length && !lines[next].trim()) next++;
      if (next === lines.length || (indentOf(lines[next]) <= base && !ITEM.test(lines[next]))) break;
      if (indentOf(lines[next]) <= base && isOrdered(lines[next]) !== ordered) break;
    } else if (ITEM.test(line) && indentOf(line) <= base + 1) {
      if (isOrdered(line) !== ordered || RULE.test(line)) break;
    } else if (indentOf(line) <= base && [QUOTE, HEADING, FENCE, RULE].some((kind) => kind.test(line))) {
      break;
    }
  }
  return [end, (own, depth) => items(own, base, ordered, depth)];
}

function items(lines, base, ordered, depth) {
  const found = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && indentOf(line) <= base + 1) found.push({ lines: [line.slice(item[0].length)], mark: item[2] });
    else found.at(-1).lines.push(line);
  }
  const start = ordered ? parseInt(found[0].mark, 10) : 1;
  return el(ordered ? "ol" : "ul", { start: start === 1 ? null : start }, found.map((each) => item(each.lines, depth)));
}

function item([first, ...rest], depth) {
  const least = Math.min(...rest.filter((line) => line.trim()).map(indentOf));
  const inner = rest.map((line) => line.replaceAll("\t", "    ").slice(Number.isFinite(least) ? least : 0));
  const task = /^\[([ xX])\][ \t]+/.exec(first);
  const text = task ? `${task[1] === " " ? "☐" : "☑"} ${first.slice(task[0].length)}` : first;
  const made = deeper([text, ...inner], depth);
  // A line is no paragraph.
  const [head, ...others] = made;
  return el("li", {}, head?.tagName === "P" ? [...head.childNodes] : head, others);
}

function table(lines, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length || !CELLS.test(lines[at + 1].trim())) return null;
  if (!lines[at + 1].includes("-") || cells(lines[at]).length !== cells(lines[at + 1]).length) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end++;
  return [end, (own) => {
    const sides = cells(own[1]).map((each) => each.endsWith(":") ? "number" : null);
    const row = (line, name) => el("tr", {},
      cells(line).slice(0, sides.length).map((text, place) => el(name, { class: sides[place] }, inline(text))));
    return el("div", { class: "scrolling", tabindex: 0, role: "group", "aria-label": "Table" }, el("table", {},
      el("thead", {}, row(own[0], "th")), el("tbody", {}, own.slice(2).map((line) => row(line, "td")))));
  }];
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.replaceAll("\\|", "\0").split("|").map((each) => each.trim().replaceAll("\0", "|"));
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() &&
    !PARTS.slice(0, -1).some((read) => read !== list && read(lines, end)) && !isListHere(lines[end])) end++;
  return [end, (own) => el("p", {}, inline(own.map((line) => line.trim()).join("\n")))];
}

/** A number in the middle of a text begins a list only if it is a one. */
const isListHere = (line) => ITEM.test(line) && !(isOrdered(line) && !/^[ \t]*1[.)]/.test(line));

// Within a line.

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];

/** The text of a line as elements and strings. */
export function inline(text, depth = 0) {
  const made = [];
  const closed = new Map();
  let plain = "";
  const put = (...parts) => {
    if (plain) made.push(...broken(plain));
    plain = "";
    made.push(...parts);
  };
  /** The place of what ends something. What was not found once, is not looked for again. */
  const end = (mark, from) => {
    if (closed.get(mark) === -1) return -1;
    const found = text.indexOf(mark, from);
    closed.set(mark, found);
    return found;
  };
  for (let at = 0; at < text.length;) {
    const found = depth < DEEPEST && (code(text, at, end) ?? link(text, at, end, depth) ?? bare(text, at)
      ?? marked(text, at, end, depth));
    if (found) {
      put(found.made);
      at = found.end;
    } else if (text[at] === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
    } else {
      plain += text[at++];
    }
  }
  put();
  return made;
}

const broken = (text) => text.split("\n").flatMap((line, place) => place ? [el("br"), line] : [line]);

function code(text, at, end) {
  if (text[at] !== "`") return null;
  let size = 1;
  while (text[at + size] === "`") size++;
  const mark = "`".repeat(size);
  let close = end(mark, at + size), looks = 0;
  while (close >= 0 && looks++ < MOST_LOOKS && text[close + size] === "`") {
    while (text[close] === "`") close++;
    close = text.indexOf(mark, close);
  }
  if (close < 0 || looks > MOST_LOOKS) return { made: mark, end: at + size };
  const inner = text.slice(at + size, close);
  const isPadded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim();
  return { made: el("code", {}, isPadded ? inner.slice(1, -1) : inner), end: close + size };
}

function link(text, at, end, depth) {
  const isImage = text[at] === "!" && text[at + 1] === "[";
  if (text[at] !== "[" && !isImage) return null;
  const middle = end("](", at);
  const close = middle < 0 ? -1 : end(")", middle);
  if (close < 0) return null;
  const label = text.slice(at + (isImage ? 2 : 1), middle);
  // Behind it may be a title, which nobody needs.
  const address = text.slice(middle + 2, close).trim().split(/\s/, 1)[0].replace(/^<(.*)>$/, "$1");
  if (label.includes("\n\n") || label.includes("[") || !ADDRESS.test(address)) return null;
  return { made: anchor(address, inline(label || address, depth + 1)), end: close + 1 };
}

function anchor(address, children) {
  return el("a", { href: address, rel: "nofollow noopener noreferrer", target: "_blank" }, children);
}

function bare(text, at) {
  if (text[at] !== "h" && text[at] !== "H") return null;
  if (at && /[\p{L}\p{N}]/u.test(text[at - 1])) return null;
  const found = /^https?:\/\/[^\s<>"'`\\^{|}]+/i.exec(text.slice(at, at + 2000));
  if (!found) return null;
  let address = found[0].replace(/[.,;:!?*_~]+$/, "");
  if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
  return /^https?:\/\/[^/]/i.test(address) ? { made: anchor(address, [address]), end: at + address.length } : null;
}

/** Whether a mark ends what the same one began: `snake_case` is one word, and two stars are not twice one. */
function isEnd(text, at, mark) {
  if (/\s/.test(text[at - 1]) || (mark.length === 1 && text[at + 1] === mark)) return false;
  return mark[0] !== "_" || !/[\p{L}\p{N}]/u.test(text[at + mark.length] ?? "");
}

function marked(text, at, end, depth) {
  for (const [mark, name] of MARKS) {
    if (!text.startsWith(mark, at) || /\s/.test(text[at + mark.length] ?? " ")) continue;
    const isInWord = mark[0] === "_" && at && /[\p{L}\p{N}]/u.test(text[at - 1]);
    if (isInWord) return null;
    let close = end(mark, at + mark.length + 1), looks = 0;
    while (close >= 0 && looks++ < MOST_LOOKS && !isEnd(text, close, mark)) {
      close = text.indexOf(mark, close + (text[close + 1] === mark ? 2 : 1));
    }
    if (close < 0 || looks > MOST_LOOKS) continue;
    return { made: el(name, {}, inline(text.slice(at + mark.length, close), depth + 1)), end: close + mark.length };
  }
  return null;
}
