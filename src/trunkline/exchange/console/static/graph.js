// One graph: its text, what is wrong with it, its drawing, and whether it is saved.

import { complain, get, post } from "./api.js";
import { coded, el, fill } from "./dom.js";
import { graphEditor } from "./graph-editor.js";
import { inWords, picture } from "./graph-picture.js";
import { tries } from "./graph-try.js";

/** How long somebody may pause while typing. */
const PAUSE_MS = 250;
const NO_FILE = "There is no such file yet. Write a graph here, or take the text of another one, and save it.";

const byId = (id) => document.getElementById(id);
const page = byId("graph");
const base = `/api/graphs/${encodeURIComponent(page.dataset.id)}`;
const save = byId("save"), copy = byId("copy"), state = byId("state"), note = byId("note");

const editor = graphEditor(document.querySelector(".editor"), edited);
const drawing = picture(byId("drawing"), byId("drawing-zoom"));

let saved = "", version = "", writable = false, ending = "\n", nodes = [], wantsSaving = false;

const changed = () => editor.text !== saved;

// What is wrong, and the drawing.

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function tell(found) {
  const verdict = byId("verdict");
  const wrong = found.problems.filter(({ severity }) => severity === "problem").length;
  const odd = found.problems.length - wrong;
  const told = [wrong ? plural(wrong, "problem") : "", odd ? plural(odd, "warning") : ""].filter(Boolean).join(", ");
  verdict.textContent = wrong ? told : [`Fine: ${plural(found.nodes.length, "node")}`, told].filter(Boolean).join("; ");
  verdict.classList.toggle("bad", wrong > 0);
  editor.mark(found.problems);
  fill(byId("problems"), found.problems.map(({ line, column, message, severity }) =>
    el("li", { class: `${severity}-row` },
      el("button", { type: "button", on: { click: () => editor.reveal(line || 1, column || 1) } },
        el("span", { class: "where" }, line ? `line ${line}` : severity), el("span", {}, coded(message))))));
  drawing.stale(wrong > 0);
  byId("stale").hidden = wrong === 0;
  if (wrong) return;
  // It was said of a text that is mended now.
  byId("unsound").hidden = true;
  ({ nodes } = found);
  fill(byId("words"), nodes.map(({ name, type, exits }) =>
    el("li", {}, node(name), ` (${type}): `, exits.map(({ name: exit, to }, index) =>
      [index ? ", " : "", `${exit} to `, to ? node(to) : "the end"]).flat())));
}

const node = (name) => el("button", { type: "button", class: "link", on: { click: () => go(name) } }, name);

function go(name) {
  const line = nodes.find((each) => each.name === name)?.line;
  if (line) editor.reveal(line);
}

let timer = 0, checking = false, again = false;

function edited() {
  tellState();
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE_MS);
}

async function check() {
  again = true;
  if (checking) return;
  checking = true;
  try {
    while (again) {
      again = false;
      const text = editor.text;
      const found = await post(`${base}/check`, { text });
      // Of a text that was replaced meanwhile nothing is told: what is on the page may be about the new one by now.
      if (again || text !== editor.text) continue;
      tell(found);
      if (found.problems.some(({ severity }) => severity === "problem")) continue;
      const { svg } = await post(`${base}/draw`, { text });
      if (text === editor.text) drawing.show(svg, inWords(found));
    }
    complain(null);
  } catch (error) {
    complain(error);
  } finally {
    checking = false;
  }
}

// Whether it is saved.

function tellState(word = changed() ? "changed" : "saved") {
  state.textContent = writable ? (version ? word : "not saved yet") : "read-only";
  state.classList.toggle("bad", word === "changed on disk");
  if (save) save.disabled = !changed() && Boolean(version);
}

function take(found) {
  ending = found.text.includes("\r\n") ? "\r\n" : "\n";
  saved = found.text.replaceAll("\r\n", "\n");
  ({ version, writable } = found);
  editor.set(saved);
  const edits = Boolean(save);
  editor.open(edits && (writable || found.bundled));
  if (edits) {
    save.hidden = !writable;
    copy.hidden = writable;
  }
  fill(note, !edits ? "" : coded(found.why_fixed || (version ? "" : NO_FILE)));
  tell(found);
  if (found.svg) drawing.show(found.svg, inWords(found));
  else drawing.tell("There is nothing to draw until the problems are solved.");
  byId("conflict").hidden = byId("unsound").hidden = true;
  tellState();
}

const load = () => get(base).then(take, complain);

const written = () => editor.text.replaceAll("\n", ending);

async function keep(force = false) {
  if (!writable || (!changed() && version)) return;
  const text = editor.text;
  save.disabled = true;
  // What was said of an earlier one is not true of this one.
  note.textContent = "";
  try {
    const found = await post(base, { text: written(), version, force });
    ({ version } = found);
    saved = text;
    byId("conflict").hidden = byId("unsound").hidden = true;
    complain(null);
    note.textContent = found.renewed.length
      ? `Saved. New conversations of ${found.renewed.join(", ")} use it; those in progress keep the graph that they began with.`
      : "Saved. No agent uses it before its problems are solved.";
    tellState();
  } catch (error) {
    const code = error.members?.error?.code;
    tellState();
    if (code === "changed") disagree(true);
    else if (code === "problems") unsound(error.members);
    else complain(error);
  }
}

function unsound(found) {
  tell(found);
  byId("unsound").hidden = false;
}

function disagree(wasSaving) {
  wantsSaving = wasSaving;
  byId("conflict").hidden = false;
  tellState("changed on disk");
}

async function keepMine() {
  byId("conflict").hidden = true;
  try {
    ({ version } = await get(base));
    tellState();
    if (wantsSaving) await keep();
  } catch (error) {
    complain(error);
  }
}

/** Whoever comes back to this window may have changed the file with another program. */
async function lookAgain() {
  if (document.hidden || !writable) return;
  const found = await get(base).catch(() => null);
  if (!found || found.version === version) return;
  if (changed()) disagree(false);
  else take(found);
}

function saveCopy() {
  const address = URL.createObjectURL(new Blob([written()], { type: "application/yaml" }));
  const name = page.dataset.name;
  el("a", { href: address, download: /\.(ya?ml|json)$/.test(name) ? name : `${name}.yaml` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

if (save) {
  save.addEventListener("click", () => keep());
  copy.addEventListener("click", saveCopy);
  byId("force").addEventListener("click", () => keep(true));
  byId("theirs").addEventListener("click", load);
  byId("mine").addEventListener("click", keepMine);
  document.addEventListener("visibilitychange", lookAgain);
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "s" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault();
      keep();
    }
  });
  addEventListener("beforeunload", (event) => {
    if (writable && changed()) event.preventDefault();
  });
  tries(base, () => editor.text, go);
}
load();
