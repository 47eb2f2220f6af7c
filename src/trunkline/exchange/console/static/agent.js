// One agent: how it does, its log as it grows, and a new beginning.

import { health, write } from "./agent-parts.js";
import { complain, get, post } from "./api.js";
import { coded, el, fill } from "./dom.js";
import { whenever } from "./frame.js";

/** How often is looked for new lines, while somebody looks. */
const LOOK_MS = 2000;

const place = document.getElementById("agent");
const name = place.dataset.agent;
const path = `/api/agents/${encodeURIComponent(name)}`;

// What it is.

const LIMITS = { tokens_per_day: "tokens today", usd_per_day: "USD today", turns_per_hour: "turns this hour" };

function budget([limit, { used, limit: most }]) {
  const title = LIMITS[limit] ?? limit.replaceAll("_", " ");
  return el("li", {},
    el("meter", { min: 0, max: most, value: used, high: most * 0.9, "aria-label": title }),
    el("span", { class: "hint" }, `${Number(used.toFixed(2)).toLocaleString()} of ${most.toLocaleString()} ${title}`));
}

async function renew() {
  const agent = await get(path);
  health(place, agent);
  place.querySelector("[data-provider]").textContent = agent.provider ?? "–";
  place.querySelector("[data-model]").textContent = agent.model ?? "–";
  place.querySelector("[data-awake]").textContent = `${agent.awake} sessions, ${agent.busy} at work`;
  const abilities = [...place.querySelectorAll("[data-ability]")];
  abilities.forEach((each) => { each.hidden = !agent.capabilities[each.dataset.ability]; });
  document.getElementById("abilities-empty").hidden = abilities.some((each) => !each.hidden);
  const limits = Object.entries(agent.budget);
  fill(document.getElementById("budget"), limits.map(budget));
  document.getElementById("budget-empty").hidden = limits.length > 0;
}

// Its log.

const lines = document.getElementById("lines");
let shown = "";

function line(each) {
  const when = new Date(each.at);
  return el("li", { class: each.level },
    el("time", { datetime: when.toISOString(), title: when.toLocaleString() }, when.toLocaleTimeString()),
    el("span", { class: "level" }, each.level),
    el("span", { class: "text" }, each.text,
      each.session && [" ", el("a", { class: "hint", href: `/sessions/${encodeURIComponent(each.session)}` }, "session")]));
}

async function look() {
  const found = (await get(`${path}/log`)).lines;
  const now = JSON.stringify(found);
  if (now === shown) return;
  shown = now;
  const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 8;
  fill(lines, found.map(line));
  document.getElementById("lines-empty").hidden = found.length > 0;
  lines.hidden = !found.length;
  if (atEnd) lines.scrollTop = lines.scrollHeight;
}

async function looking() {
  // Nobody sees a page that is hidden.
  if (!document.hidden) await look().catch(complain);
  setTimeout(looking, LOOK_MS);
}

// What can be done with it.

place.querySelector("[data-write]")?.addEventListener("click", () => write(name));

for (const button of place.querySelectorAll("[data-copy]")) {
  const text = button.closest("li").querySelector("pre");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      // Where a page may not do that, it is selected for the keys that may.
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

const told = document.getElementById("restarted");
const again = document.getElementById("restart-now");
const counted = (count) => (count === 1 ? "1 session" : `${count} sessions`);

async function restart(now) {
  try {
    const found = await post(`${path}/restart`, { now });
    const kept = found.kept ? ` ${counted(found.kept)} in use keep what they have until they are at rest.` : "";
    fill(told.firstElementChild, found.healthy
      ? `Restarted: ${counted(found.let_go)} let go of.${kept}` : coded(`It cannot be started: ${found.last_error}`));
    told.hidden = false;
    again.hidden = !found.kept;
    complain(null);
    await Promise.all([renew(), look()]);
  } catch (error) {
    complain(error);
  }
}

document.getElementById("restart")?.addEventListener("click", () => restart(false));
again.addEventListener("click", () => restart(true));

whenever(() => renew().catch(complain));
renew().catch(complain);
looking();
