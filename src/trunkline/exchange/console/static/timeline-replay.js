// A session once more, as it happened: its timeline, entry by entry, with the pauses that there were between them.

import { el, fill } from "./dom.js";
import { entryRow } from "./timeline-entries.js";

/** The longest pause, in milliseconds: nobody waits for what somebody else has waited for. */
const LONGEST_PAUSE = 2500;
/** Entries that are shown at once. */
const MOST_SHOWN = 200;

const part = (name) => document.getElementById(`replay-${name}`);
const section = document.getElementById("replay"), list = part("list"), place = part("place"), button = part("play");

let entries = [], at = 0, timer = null;

/** Be ready to play these. */
export function ready(found) {
  entries = found;
  place.max = found.length;
  part("open").disabled = !found.length;
}

function show(count) {
  at = Math.max(0, Math.min(count, entries.length));
  place.value = at;
  place.setAttribute("aria-valuetext", `${at} of ${entries.length}`);
  const first = Math.max(0, at - MOST_SHOWN);
  fill(list, first ? el("li", { class: "hint" }, `${first} before that`) : null,
    entries.slice(first, at).map((entry) => entryRow(entry, entries[0].at, null)));
  list.scrollTop = list.scrollHeight;
}

function play() {
  clearTimeout(timer);
  if (at >= entries.length) return pause();
  const gap = at ? Math.max(0, entries[at].at - entries[at - 1].at) : 0;
  const speed = Number(part("speed").value);
  timer = setTimeout(() => { show(at + 1); play(); }, Math.min(gap, LONGEST_PAUSE) / speed);
  button.textContent = "Pause";
}

function pause() {
  clearTimeout(timer);
  timer = null;
  button.textContent = at >= entries.length ? "Again" : "Play";
}

part("open").addEventListener("click", () => {
  section.hidden = false;
  show(0);
  play();
  button.focus();
});
part("close").addEventListener("click", () => {
  pause();
  section.hidden = true;
  part("open").focus();
});
button.addEventListener("click", () => {
  if (timer !== null) return pause();
  if (at >= entries.length) show(0);
  play();
});
place.addEventListener("input", () => { pause(); show(Number(place.value)); });
