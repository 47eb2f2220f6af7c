// What stands above a conversation: who else watches, the mode, and what can be done with all of it.

import { complain, get, post, remove } from "./api.js";
import { el, fill } from "./dom.js";

/** How often is asked who watches, at least and at most, in milliseconds. */
const OFTEN = 2000, SELDOM = 10_000;

/** Shows who watches a session, from now on; `look()` asks soon, because something has happened. */
export function watchers(session, person) {
  const place = document.getElementById("watchers");
  let asked = 0, soon = 0;
  async function ask() {
    asked = Date.now();
    const found = await get(`/api/sessions/${encodeURIComponent(session)}/watchers`).catch(() => null);
    if (found) show(found.watchers);
  }
  function show(all) {
    // One of them is this page.
    const own = all.findIndex((each) => each.who === person && each.wire === "console");
    const others = all.filter((_, index) => index !== own);
    const named = others.map(({ who, wire }) => el("span", { class: "tag" }, `${who || "somebody"} · ${wire}`));
    fill(place, named.length ? named : "only you");
  }
  const look = () => {
    soon ||= setTimeout(() => { soon = 0; ask(); }, Math.max(0, asked + OFTEN - Date.now()));
  };
  setInterval(look, SELDOM);
  return { look };
}

/** The mode of a session: shown, and changed by those who may. */
export function modeField(session) {
  const field = document.getElementById("mode");
  let known = field.value;
  field.addEventListener("change", async () => {
    try {
      await post(`/api/sessions/${encodeURIComponent(session)}/mode`, { mode: field.value });
      complain(null);
    } catch (error) {
      field.value = known;
      complain(error);
    }
  });
  return (mode) => { if (mode) known = field.value = mode; };
}

/** A new session that begins as this one did, up to an event or to the end; goes there. */
export async function fork(session, at) {
  try {
    const made = await post(`/api/sessions/${encodeURIComponent(session)}/fork`, at === undefined ? {} : { at });
    location.assign(`/sessions/${encodeURIComponent(made.id)}`);
  } catch (error) {
    complain(error);
  }
}

/** Let those who may fork all of it, or remove it once they have said so twice; `over()` is called then. */
export function ends(session, over) {
  const dialog = document.getElementById("removing");
  if (!dialog) return;
  document.getElementById("fork").addEventListener("click", () => fork(session));
  document.getElementById("remove").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "remove") return;
    dialog.returnValue = "";
    try {
      await remove(`/api/sessions/${encodeURIComponent(session)}`);
      over();
      location.assign("/sessions");
    } catch (error) {
      complain(error);
    }
  });
}
