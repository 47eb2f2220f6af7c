// Settings: find one, check the file as it is on disk, and load it.

import { complain, post } from "./api.js";
import { el, fill } from "./dom.js";

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

// Checking and loading

function problem(each) {
  const place = each.line ? `line ${each.line}` : each.path;
  return el("li", {}, el("span", { class: "tag bad" }, place),
    el("span", { class: "grow" }, each.key ? el("code", {}, each.key) : null, each.key ? ": " : null, each.problem, ".",
      each.hint ? el("span", { class: "hint block" }, each.hint) : null));
}

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

async function check() {
  const { problems } = await post("/api/settings/check");
  fill(byId("problems"), problems.map(problem));
  const count = problems.length;
  said.textContent = count ? `${count} ${count === 1 ? "problem" : "problems"}.` : "Nothing is wrong with the file.";
  return count === 0;
}

byId("check")?.addEventListener("click", ({ currentTarget }) => press(currentTarget, check));
byId("load")?.addEventListener("click", ({ currentTarget }) => press(currentTarget, async () => {
  if (!(await check())) return;
  await post("/api/reload");
  location.reload();
}));
