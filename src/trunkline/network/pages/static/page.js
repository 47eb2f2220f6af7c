// On every page: who is signed in, what an owner sees, times that people read, and errors that the operator hears of.

import { $, $$, short } from "./dom.js";
import { call, end, wallet } from "./session.js";

const MINUTE = 60000;

// The living parts as the server sent them, by their ids: what is fitted to the reader below is no news.
export const served = new Map($$("#status, #feed, #tools").map((part) => [part.id, part.innerHTML]));

// Fit a part of the page to the reader. It is called again for parts that are replaced.
export function fit(root = document) {
  const mine = wallet();
  for (const element of $$("[data-when]", root)) element.hidden = (element.dataset.when === "in") !== Boolean(mine);
  for (const element of $$("[data-owner]", root)) element.hidden = !mine || element.dataset.owner !== mine;
  for (const element of $$("[data-wallet]", root)) {
    element.textContent = mine ? short(mine) : "";
    element.title = mine ?? "";
  }
  for (const link of $$("a[data-mine]", root)) {
    const url = new URL(link.href);
    if (mine) url.searchParams.set("owner", mine);
    link.href = url;
    link.hidden = !mine;
  }
  tellTimes(root);
}

function tellTimes(root = document) {
  const format = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });
  for (const time of $$("time", root)) {
    const minutes = Math.round((new Date(time.dateTime) - Date.now()) / MINUTE);
    const [size, unit] = Math.abs(minutes) < 60 ? [1, "minute"] : Math.abs(minutes) < 1440 ? [60, "hour"] : [1440, "day"];
    if (Math.abs(minutes) < 1440 * 7) time.textContent = minutes === 0 ? "just now" : format.format(Math.round(minutes / size), unit);
  }
}

// A link to a comment that is on another part of a long thread.
function follow() {
  const id = location.hash.match(/^#comment-(c[a-z0-9]{24})$/)?.[1];
  const asked = new URLSearchParams(location.search).get("at");
  if (!id || document.getElementById(`comment-${id}`) || asked === id) return;
  location.replace(`${location.pathname}?at=${id}${location.hash}`);
}

const told = new Set();

// The network's log of browser errors: each once, a few in all, and never a reason to fail.
function report(message, stack) {
  if (told.has(message) || told.size >= 5) return;
  told.add(message);
  call("POST", "/api/logs/user-errors", {
    source: "pages", message: String(message).slice(0, 1000), stack: String(stack ?? "").slice(0, 4000), path: location.pathname,
  }).catch(() => undefined);
}

addEventListener("error", (event) => report(event.message, event.error?.stack));
addEventListener("unhandledrejection", (event) => report(event.reason?.message ?? event.reason, event.reason?.stack));
addEventListener("storage", () => fit());
addEventListener("hashchange", follow);
setInterval(tellTimes, MINUTE);

$("[data-sign-out]").addEventListener("click", async () => {
  // Signed out here in any case; there the session ends by itself at last.
  await call("POST", "/api/auth/owner/logout").catch(() => undefined);
  end();
  fit();
});
fit();
follow();
