// A tool call as a card: what it is about, whether it was allowed and by whom, what it prints, what came of it.

import { shown } from "./call-arguments.js";
import { diffView, rowsOfDiff, rowsOfTexts } from "./diff.js";
import { el, fill } from "./dom.js";
import { markdownView } from "./markdown.js";
import { visible } from "./visible.js";

const STATES = {
  asked: ["waiting for approval", "warn"],
  approved: ["approved", "good"],
  denied: ["denied", "bad"],
  running: ["running", "good"],
  done: ["done", ""],
  failed: ["failed", "bad"],
  cancelled: ["stopped", ""],
};

/** What the text before and after a change is called. */
const PAIRS = [["old_string", "new_string"], ["old_text", "new_text"], ["oldText", "newText"]];
/** What says best what a call is about. */
const ABOUT = ["command", "file_path", "notebook_path", "path", "pattern", "query", "url", "description", "prompt"];
const PATHS = ["file_path", "notebook_path", "path"];
/** The longest of that in one line. */
const LONGEST_ABOUT = 300;
const PICTURES = [["iVBOR", "image/png"], ["/9j/", "image/jpeg"], ["R0lGOD", "image/gif"], ["UklGR", "image/webp"]];

const BASE64 = /^[A-Za-z0-9+/\s]+=*\s*$/;

const isText = (value) => typeof value === "string";

/** What a call is about, in one line. */
export function aboutOf(block) {
  const found = ABOUT.map((name) => block.args?.[name]).find((value) => isText(value) && value.trim());
  const text = found ?? block.title ?? block.description ?? "";
  return visible((text || block.description || "").replace(/\s+/g, " ").trim().slice(0, LONGEST_ABOUT));
}

/** Which sub-agent made a call, as its task is called; empty for others. Several of them work at once. */
export function subAgentOf(block) {
  const tasks = block.parent?.args?.tasks;
  const names = Array.isArray(tasks) ? tasks.map((task) => task?.name).filter(isText) : [];
  const found = names.find((name) => name && block.description?.startsWith(`${name}: `));
  return visible((found ?? "").slice(0, LONGEST_ABOUT));
}

/** A card for a block; `grown` is called before its height changes by what a reader does. */
export function toolCard(block, grown) {
  const tag = el("span", { class: "tag" }), who = block.parent && el("span", { class: "hint who" });
  const name = el("strong", {}), about = el("code", { class: "about" }), time = el("span", { class: "hint" });
  const parts = {
    why: el("div"), args: el("div"), live: el("div"), inner: el("div", { class: "inner" }), result: el("div"),
  };
  const body = el("div", { class: "card-body" }, Object.values(parts));
  const card = el("details", { class: "tool-card" },
    el("summary", {}, who, name, about, time, tag), body);
  const made = {};
  const inner = new Map();

  card.querySelector("summary").addEventListener("click", () => {
    grown();
    block.ui.open = !card.open;
  });

  /** Make a part anew only if what it shows has changed: people select in it. */
  const part = (key, what, make) => {
    if (made[key] === what) return;
    made[key] = what;
    fill(parts[key], make());
  };

  const update = () => {
    const [word, look] = STATES[block.state];
    tag.textContent = word;
    tag.className = `tag ${look}`;
    card.dataset.state = block.state;
    name.textContent = visible(block.name || "call");
    if (who) who.textContent = subAgentOf(block);
    about.textContent = aboutOf(block);
    time.textContent = took(block);
    card.open = block.ui.open ?? isOpenAtFirst(block);
    part("why", whyOf(block), () => whyOf(block).map((each) => el("p", { class: "hint" }, each)));
    // What was changed says more than what was to be.
    const isChanged = block.state === "done" && block.type === "diff";
    part("args", isChanged || block.changes || block.args, () => isChanged ? [] : argsOf(block, grown));
    part("live", block.over ? "" : block.lines.length + (block.dropped ?? 0), () => liveOf(block));
    part("result", block.over && block.ended, () => block.over ? resultOf(block, grown) : []);
    for (const child of block.children ?? []) {
      if (!inner.has(child)) {
        const view = toolCard(child, grown);
        inner.set(child, view);
        parts.inner.append(view.element);
      }
      inner.get(child).update();
    }
  };
  update();
  return { element: card, update };
}

function isOpenAtFirst(block) {
  if (!block.over || block.children) return true;
  if (block.state === "done") {
    return block.type !== "text" || block.category === "exec" || Boolean(block.changes?.length);
  }
  return true;
}

/** A time in seconds, as people say it. */
export function durationOf(seconds) {
  return seconds < 60 ? `${seconds.toFixed(1)} s` : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** How long a call ran, if that is worth telling. */
function took({ started, ended }) {
  return started && ended && ended - started >= 100 ? durationOf((ended - started) / 1000) : "";
}

/** A list that is the same object as long as it says the same. */
function whyOf(block) {
  const found = [];
  const description = visible(block.description ?? "");
  if (description && description !== aboutOf(block)) found.push(description);
  if (block.why) found.push(visible(`Why it asks: ${block.why}`));
  if (block.outside) found.push("It reaches beyond the workspace.");
  if (block.approved !== undefined) {
    found.push(`${block.approved ? "Approved" : "Denied"}${block.by ? ` by ${block.by}` : ""}.`);
  }
  if (block.reason) found.push(`Reason: ${block.reason}`);
  const before = block.ui.why;
  if (before && before.length === found.length && before.every((each, place) => each === found[place])) return before;
  block.ui.why = found;
  return found;
}

function argsOf(block, grown) {
  const changes = (block.changes ?? []).map((each) => changed(each.path, each.old ?? "", each.new, grown));
  const args = block.args ?? {};
  if (changes.length) return changes;
  const pair = PAIRS.find(([old, now]) => isText(args[old]) && isText(args[now]));
  const path = PATHS.map((each) => args[each]).find(isText);
  if (pair) {
    const rest = without(args, [...pair, ...PATHS]);
    return [changed(path, args[pair[0]], args[pair[1]], grown), rest];
  }
  if (isText(args.plan)) {
    const view = markdownView();
    view.update(visible(args.plan));
    return [view.element, without(args, ["plan"])];
  }
  if (path && isText(args.content)) {
    return [changed(path, "", args.content, grown), without(args, [...PATHS, "content"])];
  }
  return Object.keys(args).length ? shown(args) : [];
}

function without(args, names) {
  const rest = Object.fromEntries(Object.entries(args).filter(([name]) => !names.includes(name)));
  return Object.keys(rest).length ? shown(rest) : null;
}

function changed(path, old, now, grown) {
  const head = path && el("p", { class: "path" }, el("code", {}, visible(path)));
  return el("div", {}, head, diffView(rowsOfTexts(old, now), grown));
}

const box = (label, text, name = "") =>
  el("pre", { class: `output ${name}`, tabindex: 0, role: "group", "aria-label": label }, text);

function liveOf(block) {
  if (block.over || !block.lines.length) return [];
  const head = block.dropped ? `[${block.dropped} more lines]\n` : "";
  const made = box("Live output", head + block.lines.join("\n"), "live");
  // The newest lines are below.
  requestAnimationFrame(() => { made.scrollTop = made.scrollHeight; });
  return [made];
}

function resultOf(block, grown) {
  if (!block.output) return [];
  if (block.type === "image" && BASE64.test(block.output)) {
    const kind = PICTURES.find(([start]) => block.output.startsWith(start))?.[1] ?? "image/png";
    const src = `data:${kind};base64,${block.output}`;
    return [el("img", { class: "picture", src, alt: `Picture from ${block.name}` })];
  }
  if (block.type === "diff") return [diffView(rowsOfDiff(block.output), grown)];
  return [box(block.state === "failed" ? "Error output" : "Output", block.output,
    block.state === "failed" ? "bad" : "")];
}
