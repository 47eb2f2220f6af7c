// What the pages about agents share.

import { complain, post } from "./api.js";
import { coded, el, fill } from "./dom.js";

/** In a word, and the class of its tag: nobody says of one that it is well before it was tried. */
const healthOf = ({ healthy, known }) =>
  (!healthy ? ["unwell", "tag bad"] : known ? ["well", "tag good"] : ["not tried yet", "tag"]);

/** The word in its colour. */
export function healthTag(agent) {
  const [word, look] = healthOf(agent);
  return el("span", { class: look }, word);
}

/** Show how an agent does, in the parts of an element that are marked for that. */
export function health(place, agent) {
  const tag = place.querySelector("[data-health]");
  [tag.textContent, tag.className] = healthOf(agent);
  const error = place.querySelector("[data-error]");
  fill(error, agent.healthy ? "" : coded(agent.last_error ?? ""));
  error.hidden = !error.textContent;
  const model = place.querySelector("[data-model]");
  if (agent.capabilities?.model) model.textContent = agent.capabilities.model;
}

/** Begin a session with an agent, and go there. */
export async function write(name) {
  try {
    const made = await post("/api/sessions", { agent: name });
    location.assign(`/sessions/${encodeURIComponent(made.id)}`);
  } catch (error) {
    complain(error);
  }
}
