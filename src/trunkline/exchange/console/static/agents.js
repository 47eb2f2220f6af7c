// The list of agents: how they do, and what they are at.

import { health, write } from "./agent-parts.js";
import { complain, get } from "./api.js";
import { whenever } from "./frame.js";

const cards = new Map([...document.querySelectorAll("[data-agent]")].map((card) => [card.dataset.agent, card]));

function each(agents) {
  for (const agent of agents) {
    if (cards.has(agent.name)) health(cards.get(agent.name), agent);
  }
}

for (const [name, card] of cards) card.querySelector("[data-write]")?.addEventListener("click", () => write(name));

whenever((detail) => {
  each(detail.agents);
  for (const [name, card] of cards) {
    const busy = detail.running.filter((session) => session.agent === name).length;
    const asks = detail.approvals.filter((approval) => approval.agent === name).length;
    card.querySelector("[data-busy]").textContent =
      [busy && `${busy} at work`, asks && `${asks} waiting for an answer`].filter(Boolean).join(" · ");
  }
});

// Makes those that were never used: only then it is known how they are.
get("/api/agents").then(({ agents }) => each(agents), complain);
