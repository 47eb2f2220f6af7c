// Settings: find one, check the file as it is on disk, and load it.

import { complain, get, post } from "./api.js";
import { coded, el, fill } from "./dom.js";

const byId = (id) => document.getElementById(id);
const said = byId("said");

// Finding

function find() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const body of document.querySelectorAll(".settings tbody")) {
    let here = 0;
    for (const row of body.querySelectorAll("tr[data-key]")) {
      const text = `${row.dataset.key} ${row.textContent}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      here += row.hidden ? 0 : 1;
    }
    body.hidden = here === 0;
    count += here;
  }
  for (const group of document.querySelectorAll(".settings")) {
    group.hidden = !group.querySelector("tbody:not([hidden])");
  }
  byId("found").textContent = words.length ? `${count} found` : "";
}

byId("find").addEventListener("input", find);
byId("search").addEventListener("submit", (event) => event.preventDefault());

// The file

const NOT_SET = "not set";
const disk = byId("disk"), states = JSON.parse(disk.dataset.states);
let shown = "";

/** A value as the file would say it. */
const valueOf = (value) => (value === null || value === "" || value.length === 0 ? NOT_SET
  : typeof value === "string" ? value : JSON.stringify(value));

function problem({ line, path, key, problem: text, hint, severity }) {
  return el("li", {}, el("span", { class: severity === "problem" ? "tag bad" : "tag" }, line ? `line ${line}` : path),
    el("span", { class: "grow" }, key ? el("code", {}, key) : null, key ? ": " : null, coded(`${text}.`),
      hint ? el("span", { class: "hint block" }, coded(hint)) : null));
}

const difference = ({ key, loaded, disk: said, line }) => el("tr", {},
  el("th", { scope: "row" }, el("code", {}, key)), el("td", {}, valueOf(loaded)), el("td", {}, valueOf(said)),
  el("td", { class: "number" }, line ? String(line) : ""));

/** Show how the file is by now. */
function show({ file, problems, differences }) {
  shown = file.state;
  const tag = byId("state");
  tag.textContent = file.state;
  tag.className = file.state === "loaded" ? "tag good" : file.state === "none" ? "tag" : "tag bad";
  byId("state-told").textContent = states[file.state];
  if (byId("problems")) fill(byId("problems"), problems.map(problem));
  byId("changed").hidden = !differences.length;
  fill(byId("differences"), differences.map(difference));
}

show(JSON.parse(disk.dataset.disk));

/** Whoever comes back to this window may have changed the file with another program. */
document.addEventListener("visibilitychange", async () => {
  if (document.hidden || !byId("check")) return;
  const before = shown, found = await get("/api/settings").catch(() => null);
  if (!found) return;
  // What is in force is another by now.
  if (found.file.state === "loaded" && before !== "loaded") location.reload();
  else show(found);
});

// Checking and loading

/** Run what a button is for; the button rests meanwhile. */
async function press(button, work) {
  complain(null);
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    said.textContent = "";
    complain(error);
  } finally {
    button.disabled = false;
  }
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** Look at the file, and at what its agents would say; gives whether it can be loaded. */
async function check() {
  said.textContent = "Checking…";
  const found = await post("/api/settings/check");
  show(found);
  const wrong = found.problems.filter(({ severity }) => severity === "problem").length;
  const odd = found.problems.length - wrong;
  const told = [wrong && plural(wrong, "problem"), odd && plural(odd, "warning")].filter(Boolean).join(", ");
  said.textContent = told ? `${told}.` : "Nothing is wrong with the file.";
  return wrong === 0;
}

byId("check")?.addEventListener("click", ({ currentTarget }) => press(currentTarget, check));
byId("load")?.addEventListener("click", ({ currentTarget }) => press(currentTarget, async () => {
  if (!(await check())) return;
  await post("/api/reload");
  location.reload();
}));
