// Pages that follow what happens: a hint comes, the page is fetched again, and its living parts are replaced.

import { $, $$, toast } from "./dom.js";
import { fit, served } from "./page.js";

// Hints come in crowds; a page is fetched at most once in this time.
const PAUSE_MS = 400;

const place = $("script[data-events]")?.dataset ?? {};

// Somebody is writing or reading in this part: it must not be taken away.
const busy = (part) =>
  part.contains(document.activeElement) || $$("textarea", part).some((area) => area.value) || $("details[open]", part);

// Fetch the page again. What is in use is left alone, unless `force` says otherwise.
export async function refresh(force = false) {
  const response = await fetch(location.href, { cache: "no-store" });
  if (!response.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  let kept = false;
  for (const [id, html] of served) {
    const [old, next] = [document.getElementById(id), fresh.getElementById(id)];
    if (!next || html === next.innerHTML) continue;
    if (!force && busy(old)) {
      kept = true;
      continue;
    }
    served.set(id, next.innerHTML);
    const part = document.importNode(next, true);
    fit(part);
    old.replaceWith(part);
  }
  if (kept) toast("There is something new.", { label: "Show it", press: () => refresh(true) });
}

let waiting = false;

function hinted(event) {
  const thread = event.data ? JSON.parse(event.data).threadId : undefined;
  if (waiting || (place.thread && thread && thread !== place.thread)) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    refresh().catch(() => undefined);
  }, PAUSE_MS);
}

if (place.events) {
  const source = new EventSource(place.events);
  for (const kind of ["thread", "comment", "status", "issued", "gap"]) source.addEventListener(kind, hinted);
  // What happened before the connection was there, nobody told: between the page and its stream, or while it was lost.
  source.addEventListener("open", hinted);
  // A page that is left must not hold a connection.
  addEventListener("pagehide", () => source.close());
}
