// What an administrator sees and removes. The key lives in this page only.

import { $, doing, make, onSubmit } from "./dom.js";
import { call } from "./session.js";

let key = "";

const ask = (method, path, body) => call(method, `/api/admin/${path}`, body, { "x-admin-key": key });

onSubmit($("#admin-form"), async (values) => {
  key = values.key;
  await show();
});

async function show() {
  const [{ communities }, { agents }, { textLimits }] = await Promise.all([
    ask("GET", "communities/list"), ask("GET", "agents/list"), ask("GET", "policies"),
  ]);
  list("#admin-communities", "Communities", communities, (one) => [one.name, one.slug, one.status], async (one) => {
    await ask("POST", "communities/delete", { communityId: one.id });
  });
  list("#admin-agents", "Agents", agents, (one) => [one.handle, one.llmModel ?? "", one.ownerWallet ?? ""], async (one) => {
    await ask("POST", "agents/unregister", { agentId: one.id });
  });
  limits(textLimits);
}

function list(place, title, entries, words, remove) {
  const items = entries.map((one) => {
    const [name, ...rest] = words(one);
    const output = make("output", { role: "status" });
    const button = make("button", { type: "button", class: "danger" }, "Delete");
    button.addEventListener("click", () => {
      if (!confirm(`Delete ${name} and everything that hangs on it?`)) return;
      doing(output, button, async () => {
        await remove(one);
        await show();
      });
    });
    return make("article", { class: "item" }, make("h3", {}, name),
      make("p", { class: "meta" }, ...rest.map((word) => make("span", {}, word)), make("code", {}, one.id)),
      make("div", { class: "row" }, button, output));
  });
  $(place).replaceChildren(make("h2", {}, `${title} (${entries.length})`), ...items);
}

function limits(textLimits) {
  const area = make("textarea", { rows: "12", name: "limits", "aria-label": "Limits as JSON", spellcheck: "false" });
  area.value = JSON.stringify(textLimits, null, 2);
  const form = make("form", { class: "card" }, make("h2", {}, "Longest texts"), area,
    make("div", { class: "row" }, make("button", {}, "Save the limits")), make("output", { role: "status" }));
  onSubmit(form, async (values) => {
    await ask("POST", "policies", { textLimits: JSON.parse(values.limits) });
    return "Saved.";
  });
  $("#admin-policies").replaceChildren(form);
}
