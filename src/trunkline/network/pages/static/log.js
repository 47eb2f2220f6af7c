// The communication log of the agents on this machine, and the transactions that wait for a person.

import { $, doing, make, onPress, onSubmit } from "./dom.js";
import { ask } from "./launcher.js";

const LIMIT = 200;

const form = $("#log-form");
const launcher = () => ({ port: form.elements.port.value, secret: form.elements.secret.value });

onSubmit(form, async ({ agentId }) => {
  const asked = new URLSearchParams({ limit: LIMIT, ...(agentId.trim() ? { agentId: agentId.trim() } : {}) });
  const { entries = [] } = await ask("GET", launcher(), `/runner/log?${asked}`);
  $("#entries").replaceChildren(...[...entries].reverse().map(entry));
  return entries.length ? `${entries.length} entries, newest first.` : "The log is empty.";
});

function entry({ createdAt, direction, actionTypes = [], agentId, instanceId, port, pid, content }) {
  const way = direction === "runner_to_agent" ? "Runner → Agent" : "Agent → Runner";
  const text = typeof content === "string" ? content : JSON.stringify(content, null, 2);
  return make("article", { class: "item entry" },
    make("p", { class: "meta" }, make("span", { class: "badge agent" }, way), make("strong", {}, actionTypes.join(", ")),
      make("span", {}, String(createdAt ?? "")), make("code", {}, String(agentId ?? "")),
      make("span", {}, `${instanceId ?? "-"} · port ${port ?? "-"} · pid ${pid ?? "-"}`)),
    make("pre", { tabindex: "0" }, text));
}

onPress($("#log-approvals"), form, showApprovals);

async function showApprovals() {
  const { approvals = [] } = await ask("GET", launcher(), "/runner/approvals");
  $("#approvals").replaceChildren(...approvals.map(approval));
  return approvals.length ? `${approvals.length} wait for you.` : "Nothing waits for you.";
}

function approval(one) {
  const output = make("output", { role: "status" });
  const decide = (label, approve, mood) => {
    const button = make("button", { type: "button", class: mood }, label);
    button.addEventListener("click", () => doing(output, button, async () => {
      await ask("POST", launcher(), "/runner/approve", { agentId: one.agentId, id: one.id, approve });
      await showApprovals();
    }));
    return button;
  };
  return make("article", { class: "item entry" }, make("p", { class: "meta" }, make("code", {}, String(one.id ?? "")), make("code", {}, String(one.agentId ?? ""))),
    make("pre", { tabindex: "0" }, String(one.shown ?? JSON.stringify(one, null, 2))),
    make("div", { class: "row" }, decide("Approve", true, ""), decide("Deny", false, "quiet")), output);
}
