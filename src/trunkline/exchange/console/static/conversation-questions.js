// What waits for an answer: always in the window, whatever the reader looks at.

import { complain, get, post } from "./api.js";
import { CATEGORIES } from "./conversation-fold.js";
import { aboutOf, subAgentOf } from "./conversation-tool.js";
import { el } from "./dom.js";
import { visible } from "./visible.js";

/** The longest reason that the exchange takes. */
const LONGEST_REASON = 10_000;
/** How often the row of a question is looked for before an answer, and how long after each other. */
const MOST_TRIES = 20;
const PAUSE_MS = 150;

/** The questions of a session. `show(block)` brings a call into the window, `isSeen(block)` says whether it is there;
 * `tell(text)` says something to the reader; without `mayDecide` they are only listed. */
export function questions({ session, mayDecide, show, isSeen, tell }) {
  const list = document.getElementById("questions");
  const rows = new Map();
  const decided = new Set();
  let ids = new Map();

  const idOf = (block) => ids.get(`${block.turn} ${block.callId}`);

  let asking = null;
  /** The same, at most once a second: rows are behind what is shown. */
  function refreshSoon() {
    asking ??= refresh().catch(complain).finally(() => setTimeout(() => { asking = null; }, 1000));
  }

  async function refresh() {
    const found = await get(`/api/approvals?session=${encodeURIComponent(session)}&state=pending`);
    ids = new Map(found.approvals.map((each) => [`${each.turn} ${each.call_id}`, each.id]));
  }

  async function decide(block, body) {
    try {
      // Rows are behind what is shown: a question that is still in the list has one soon.
      for (let tries = 0; !idOf(block) && tries < MOST_TRIES && (tries === 0 || rows.has(block)); tries += 1) {
        if (tries) await new Promise((done) => setTimeout(done, PAUSE_MS));
        await refresh();
      }
      const id = idOf(block);
      if (!id) return tell("This call no longer needs an answer.");
      decided.add(block);
      await post(`/api/approvals/${encodeURIComponent(id)}`, body);
      complain(null);
    } catch (error) {
      decided.delete(block);
      if (error.status === 409) tell(error.message);
      else complain(error);
    }
  }

  const approve = (block) => decide(block, { decision: "approve" });
  const always = (block) => decide(block, { decision: "approve", scope: "always" });

  /** Ask for a reason first; who has none leaves it empty. */
  function deny(block) {
    const row = rows.get(block);
    if (!row || row.querySelector("form")) return;
    const reason = el("input", {
      autocomplete: "off", maxlength: LONGEST_REASON, "aria-label": "Reason",
      placeholder: "Reason for the agent (optional)",
    });
    const close = () => {
      form.remove();
      row.querySelector(".choices")?.removeAttribute("hidden");
    };
    const form = el("form", { class: "reason", on: {
      submit(event) {
        event.preventDefault();
        decide(block, { decision: "deny", reason: reason.value });
      },
      keydown(event) {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      },
    } }, reason, el("button", { class: "danger small" }, "Deny"),
    el("button", { class: "quiet small", type: "button", on: { click: close } }, "Back"));
    row.querySelector(".choices").hidden = true;
    row.append(form);
    reason.focus();
  }

  const button = (words, key, look, act, title = null) => el("button", {
    class: `small ${look}`, type: "button", title, on: { click: act },
    "aria-keyshortcuts": key === "A" ? "Shift+A" : key,
  }, words, el("kbd", { "aria-hidden": "true" }, key));

  function row(block) {
    return el("li", {},
      el("span", { class: "tag warn" }, visible(block.name)),
      el("button", { class: "question", type: "button", title: "Show all of it", on: { click: () => show(block) } },
        [subAgentOf(block), aboutOf(block) || visible(block.name)].filter(Boolean).join(": ")),
      mayDecide
        ? el("span", { class: "choices" },
          button("Approve", "a", "", () => approve(block)),
          button("Always", "A", "quiet", () => always(block),
            `Approve, and stop asking about ${CATEGORIES[block.category] ?? block.category} in this conversation`),
          button("Deny", "d", "quiet", () => deny(block)))
        : el("span", { class: "hint" }, "Only an approver can answer this."));
  }

  /** Have exactly these in the list, the oldest first. */
  function update(blocks) {
    for (const [block, made] of rows) {
      if (blocks.includes(block)) continue;
      made.remove();
      rows.delete(block);
      if (block.approved !== undefined && !decided.has(block)) {
        tell(`${block.name} was ${block.approved ? "approved" : "denied"}${block.by ? ` by ${block.by}` : ""}.`);
      }
    }
    for (const block of blocks) {
      if (rows.has(block)) continue;
      rows.set(block, row(block));
      list.append(rows.get(block));
    }
    if (blocks.some((block) => !idOf(block))) refreshSoon();
  }

  /** The one that keys are about: nobody decides on what they have not seen. */
  function key(act) {
    const [block] = rows.keys();
    if (!block || !mayDecide) return;
    if (isSeen(block)) act(block);
    else {
      show(block);
      tell("This is the call. Press the key again to decide.");
    }
  }

  let shown = -1;
  /** Show the next of them. */
  function next() {
    const blocks = [...rows.keys()];
    if (!blocks.length) return tell("Nothing is waiting for approval.");
    shown = (shown + 1) % blocks.length;
    show(blocks[shown]);
  }

  return { update, next, keys: { a: () => key(approve), A: () => key(always), d: () => key(deny) } };
}
