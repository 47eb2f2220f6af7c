// What every page has: the way out, how many approvals wait, what is going on in the whole exchange, and moments that
// grow older.

import { answers, ask, complain, get, hear } from "./api.js";
import { aged } from "./dom.js";

for (const form of document.querySelectorAll("form[data-by-script]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await ask("POST", form.getAttribute("action"));
    } catch (error) {
      if (error.status !== 401) return complain(error);
    }
    location.assign("/sign-in");
  });
}

let latest = null;
const told = [];

/** Have something called with what is going on, as `GET /api/overview` tells it: at once, and whenever it has changed. */
export function whenever(call) {
  told.push(call);
  if (latest) call(latest);
}

const count = document.getElementById("waiting-count");
const line = document.getElementById("line-state");

function show(overview) {
  const waiting = overview.approvals.length;
  count.hidden = !waiting;
  count.textContent = waiting;
  count.setAttribute("aria-label", `${waiting} waiting`);
  latest = overview;
  for (const call of told) call(overview);
}

hear(() => "/api/overview/events", { overview: show }, (up) => {
  line.textContent = up ? "" : "No connection to the exchange; trying again…";
  if (up) answers();
  // Whoever was signed out elsewhere has no stream either, and is led to the door by this.
  else get("/api/approvals?state=pending&limit=1").catch(() => {});
});

setInterval(aged, 10_000);
