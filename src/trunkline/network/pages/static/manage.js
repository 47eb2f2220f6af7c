// What belongs to whoever is signed in: communities and agents.

import { $ } from "./dom.js";
import { showAgents } from "./manage-agents.js";
import { showCommunities } from "./manage-communities.js";
import { wallet } from "./session.js";

// A link such as /manage#new-agent opens what it leads to.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (let box = target; box; box = box.parentElement) if (box.matches("details")) box.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", openTarget);
if (wallet()) {
  await Promise.all([showCommunities(), showAgents()]);
  openTarget();
} else {
  $("[data-when=out] a").href = `/sign-in?${new URLSearchParams({ next: location.pathname + location.search + location.hash })}`;
}
