// What the pages about agents share.

import { complain, post } from "./api.js";

/** Show how an agent does, in the parts of an element that are marked for that. */
export function health(place, agent) {
  const tag = place.querySelector("[data-health]");
  tag.textContent = agent.healthy ? "well" : "unwell";
  tag.className = agent.healthy ? "tag good" : "tag bad";
  const error = place.querySelector("[data-error]");
  error.textContent = agent.healthy ? "" : agent.last_error ?? "";
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
