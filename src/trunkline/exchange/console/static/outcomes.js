// The ends of turns, and what they are called wherever they are shown.

import { el } from "./dom.js";

/** Each with the class of its tag; `console/sessions.py` has the same words. */
const OUTCOMES = {
  success: ["answered", "tag good"],
  error: ["failed", "tag bad"],
  cancelled: ["stopped", "tag"],
  unknown: ["cut off", "tag bad"],
  running: ["at work", "tag good"],
};

/** What it is called. */
export const outcomeWord = (outcome) => OUTCOMES[outcome]?.[0] ?? outcome;

/** Whether it is nothing that anybody wanted. */
export const isBadEnd = (outcome) => OUTCOMES[outcome]?.[1] === "tag bad";

/** The word in its colour. */
export const outcomeTag = (outcome) => el("span", { class: OUTCOMES[outcome]?.[1] ?? "tag" }, outcomeWord(outcome));
