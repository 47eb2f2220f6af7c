// A text with the numbers of its lines beside it, and marks on those that something is wrong with.

import { el, fill } from "./dom.js";

/** Where a line begins in a text; lines count from 1, and one that is not there is the last. */
export function lineStart(text, line) {
  let at = 0;
  for (let count = 1; count < line; count++) {
    const next = text.indexOf("\n", at);
    if (next < 0) break;
    at = next + 1;
  }
  return at;
}

const INDENT = "  ";
const indentOf = (line) => /^ */.exec(line)[0];

/** Makes a text area an editor of YAML: Tab indents, Enter keeps the indentation, Escape lets the next Tab leave.
 * `changed` is called whenever the text is another. */
export function graphEditor(place, changed) {
  const area = place.querySelector("textarea");
  const gutter = place.querySelector(".gutter"), bands = place.querySelector(".bands");
  let marks = new Map(), leaving = false, drawn = 0;

  // Only the lines that can be seen are there: a long text scrolls as a short one does.
  const draw = () => {
    drawn = 0;
    const style = getComputedStyle(area);
    const height = parseFloat(style.lineHeight), top = parseFloat(style.paddingTop) - area.scrollTop;
    const lines = count(area.value);
    const first = Math.max(1, Math.floor(-top / height) + 1);
    const last = Math.min(lines, first + Math.ceil(area.clientHeight / height));
    const numbers = [], shown = [];
    for (let line = first; line <= last; line++) {
      const at = `${top + (line - 1) * height}px`, mark = marks.get(line);
      const number = el("span", { class: mark ? `${mark}-line` : null }, String(line));
      number.style.top = at;
      numbers.push(number);
      if (mark) {
        const band = el("span", { class: `${mark}-line` });
        band.style.top = at;
        shown.push(band);
      }
    }
    gutter.style.width = `${Math.max(3, String(lines).length + 1.4)}ch`;
    fill(gutter, numbers);
    fill(bands, shown);
  };
  const soon = () => { drawn ||= requestAnimationFrame(draw); };

  const insert = (text, from = area.selectionStart, to = area.selectionEnd) => {
    area.setSelectionRange(from, to);
    // The only way that leaves the browser's own undo as it is.
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, from, to, "end");
    soon();
    changed();
  };

  const indent = (back) => {
    const { selectionStart: from, selectionEnd: to, value } = area;
    if (from === to && !back) return insert(INDENT);
    const begin = value.lastIndexOf("\n", from - 1) + 1;
    const before = value.slice(begin, to);
    const after = before.replace(/^.*$/gm, (line) => back ? line.replace(/^ {1,2}/, "") : line && INDENT + line);
    if (after === before) return undefined;
    insert(after, begin, to);
    const first = before.indexOf("\n") < 0 ? before : before.slice(0, before.indexOf("\n"));
    const moved = back ? -Math.min(2, indentOf(first).length) : 2;
    area.setSelectionRange(Math.max(begin, from + (from === begin ? 0 : moved)), begin + after.length);
    return undefined;
  };

  const newLine = () => {
    const { selectionStart: from, value } = area;
    const line = value.slice(value.lastIndexOf("\n", from - 1) + 1, from);
    insert(`\n${indentOf(line)}${/:\s*$/.test(line) ? INDENT : ""}`);
  };

  area.addEventListener("keydown", (event) => {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing && !area.readOnly;
    if (event.key === "Tab" && plain && !leaving) {
      event.preventDefault();
      indent(event.shiftKey);
    } else if (event.key === "Enter" && plain && !event.shiftKey) {
      event.preventDefault();
      newLine();
    }
    if (event.key !== "Shift") leaving = event.key === "Escape";
  });
  area.addEventListener("blur", () => { leaving = false; });
  area.addEventListener("input", () => { soon(); changed(); });
  area.addEventListener("scroll", soon);
  new ResizeObserver(soon).observe(area);

  return {
    get text() { return area.value; },
    /** Show another text; `changed` is not called. */
    set(text) {
      area.value = text;
      area.scrollTop = 0;
      area.setSelectionRange(0, 0);
      soon();
    },
    /** Let people write, or not. */
    open(is) { area.readOnly = !is; },
    /** Mark lines: problems hide warnings. */
    mark(problems) {
      marks = new Map();
      for (const { line, severity } of problems) {
        if (line && marks.get(line) !== "problem") marks.set(line, severity);
      }
      area.setAttribute("aria-invalid", problems.some(({ severity }) => severity === "problem"));
      soon();
    },
    /** Go to a line, and to a column in it. */
    reveal(line, column = 1) {
      const begin = lineStart(area.value, line);
      const end = area.value.indexOf("\n", begin);
      const at = Math.min(begin + column - 1, end < 0 ? area.value.length : end);
      area.focus();
      area.setSelectionRange(at, end < 0 ? area.value.length : end);
      const height = parseFloat(getComputedStyle(area).lineHeight);
      area.scrollTop = Math.max(0, (line - 1) * height - area.clientHeight / 3);
      area.scrollLeft = 0;
      soon();
    },
  };
}

function count(text) {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
