// What was decided: newest first, a page at a time.

import { complain, get } from "./api.js";
import { outcome, place } from "./approval-card.js";
import { el, fill, moment } from "./dom.js";
import { visible } from "./visible.js";

const PAGE = 25;

const list = document.getElementById("past");
const empty = document.getElementById("past-empty");
const older = document.getElementById("older");

let query = "";
let asked = 0;
let last = null;
const known = new Set();

function row(approval) {
  const kind = approval.state === "approved" ? "good" : approval.state === "denied" ? "bad" : "";
  return el("li", {},
    el("span", { class: "state" }, el("span", { class: `tag ${kind}` }, approval.state)),
    el("span", { class: "what" }, el("a", { href: place(approval) }, visible(approval.description || approval.tool)),
      el("span", { class: "hint block" }, approval.agent, " · ", visible(approval.tool))),
    el("span", { class: "by" }, outcome(approval),
      approval.state === "denied" && approval.reason && el("span", { class: "hint block" }, `“${approval.reason}”`)),
    el("span", { class: "hint when" }, moment(approval.decided_at ?? approval.asked_at)));
}

const page = async (more = "") => (await get(`/api/approvals?state=decided&limit=${PAGE}${query}${more}`)).approvals.reverse();

/** Show those that a query, beginning with `&`, asks for; from the newest. */
export async function show(wanted) {
  query = wanted;
  const mine = ++asked;
  try {
    const found = await page();
    if (mine !== asked) return;
    known.clear();
    fill(list, found.map(row));
    found.forEach((each) => known.add(each.id));
    last = found.at(-1)?.id ?? null;
    older.hidden = found.length < PAGE;
    empty.hidden = found.length > 0;
  } catch (error) {
    complain(error);
  }
}

/** Put those on top that were decided since. */
export async function renew() {
  const mine = asked;
  const found = await page().catch(() => []);
  if (mine !== asked) return;
  const fresh = found.filter((each) => !known.has(each.id));
  fresh.forEach((each) => known.add(each.id));
  list.prepend(...fresh.map(row));
  last ??= fresh.at(-1)?.id ?? null;
  empty.hidden = known.size > 0;
}

older.addEventListener("click", async () => {
  older.disabled = true;
  const mine = asked;
  try {
    const found = await page(`&before=${encodeURIComponent(last)}`);
    if (mine !== asked) return;
    const fresh = found.filter((each) => !known.has(each.id)).map((each) => (known.add(each.id), row(each)));
    list.append(...fresh);
    last = found.at(-1)?.id ?? last;
    older.hidden = found.length < PAGE;
    fresh[0]?.querySelector("a")?.focus();
  } catch (error) {
    complain(error);
  } finally {
    older.disabled = false;
  }
});
