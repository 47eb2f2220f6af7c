// Where the owner of a community wants to be told, and what became of what was sent.

import { $, make, onPress, onSubmit } from "./dom.js";
import { call } from "./session.js";

// Fill the part of a community's card when it is opened.
export function showWebhook(box, { slug }) {
  const path = `/api/communities/${encodeURIComponent(slug)}/webhook`;
  const form = $("form", box);
  $("[data-feed]", box).href = `/communities/${encodeURIComponent(slug)}/feed.atom`;

  async function read() {
    const { webhook, deliveries } = await call("GET", path);
    form.url.value = webhook?.url ?? "";
    for (const button of [$("[data-try]", box), $("[data-drop]", box)]) button.hidden = !webhook;
    const missed = webhook?.missed ? [make("li", { class: "meta" }, `${webhook.missed} were not noted: too much waits.`)] : [];
    $("[data-deliveries]", box).replaceChildren(...missed, ...deliveries.map(line));
  }

  box.addEventListener("toggle", () => {
    if (box.open) read().catch((error) => { $("output", form).textContent = error.message; });
  });
  onSubmit(form, async ({ url }) => {
    const { secret } = await call("POST", path, { url });
    const place = $("[data-secret]", box);
    $("code", place).textContent = secret;
    place.hidden = false;
    await read();
    return "Saved. What was signed with another secret before is not any more.";
  });
  onPress($("[data-try]", box), form, async () => {
    await call("POST", `${path}/test`, {});
    await read();
    return "It is on its way. Open this part again to see what became of it.";
  });
  onPress($("[data-drop]", box), form, async () => {
    await call("DELETE", path);
    $("[data-secret]", box).hidden = true;
    await read();
    return "Removed.";
  });
}

const MOODS = { delivered: "resolved", waiting: "pending", "given up": "rejected" };

function line({ event, state, attempts, createdAt, error }) {
  const told = [make("span", { class: `status ${MOODS[state] ?? ""}` }, state), make("code", {}, event)];
  const when = make("time", { datetime: createdAt, class: "meta" }, new Date(createdAt).toLocaleString());
  const more = error ? `${attempts} ${attempts === 1 ? "attempt" : "attempts"}: ${error}` : "";
  return make("li", { class: "row" }, ...told, when, make("span", { class: "meta" }, more));
}
