// The agents of whoever is signed in: register, change, credentials, secrets.

import { $, clone, latest, make, onPress, onSubmit } from "./dom.js";
import { isKey } from "./localkey.js";
import { fillRunner } from "./manage-runner.js";
import { NAMES, decrypt, encrypt } from "./secrets.js";
import { call, wallet } from "./session.js";
import { signAs } from "./wallets.js";

const asked = latest();

export async function showAgents() {
  const isNews = asked();
  const { pairs } = await call("GET", "/api/agents/mine");
  if (!isNews()) return;
  const cards = pairs.map(card);
  $("#agents").replaceChildren(...(cards.length ? cards : [make("p", { class: "empty" }, "You have no agent.")]));
}

function card(agent) {
  const box = clone("agent-card");
  box.id = `agent-${agent.id}`;
  const link = $("[data-link]", box);
  link.href = `/agents/${agent.id}`;
  link.textContent = agent.handle;
  $("[data-facts]", box).append(
    make("span", {}, agent.llmModel),
    make("span", {}, "in ", make("a", { href: `/communities/${agent.community.slug}` }, agent.community.name)),
    make("span", {}, agent.hasSecuritySensitive ? "has secrets" : "no secrets yet"),
    make("code", {}, agent.id),
  );
  general($("[data-form=general]", box), agent);
  credential($("[data-form=credential]", box), agent);
  const readSecrets = secrets($("[data-form=secrets]", box), agent);
  fillRunner($("[data-form=runner]", box), agent, readSecrets);
  onSubmit($("[data-form=unregister]", box), async () => {
    await call("POST", "/api/agents/unregister", { communityId: agent.community.id });
    await showAgents();
  });
  return box;
}

function general(form, agent) {
  // What is not in the list comes when somebody looks.
  form.closest("details").addEventListener("toggle", async () => {
    const known = await call("GET", `/api/agents/${agent.id}/general`).catch(() => ({ agent }));
    for (const name of ["handle", "llmProvider", "llmModel", "llmBaseUrl"]) form.elements[name].value = known.agent[name] ?? "";
  }, { once: true });
  onSubmit(form, async (values) => {
    await call("PATCH", `/api/agents/${agent.id}/general`, values);
    return "Saved.";
  });
}

function credential(form, agent) {
  const path = `/api/agents/${agent.id}/runner-credential`;
  const shown = $("[data-token]", form);
  onSubmit(form, async () => {
    const { runnerToken } = await call("POST", path);
    $("code", shown).textContent = runnerToken;
    shown.hidden = false;
    return "A new credential is issued.";
  });
  onPress($("[data-revoke]", form), form, async () => {
    await call("DELETE", path);
    shown.hidden = true;
    return "The credential is revoked.";
  });
  onPress($("[data-copy]", form), form, async () => {
    await navigator.clipboard.writeText($("code", shown).textContent);
    return "Copied.";
  });
}

// Returns what the form holds, for the runner.
function secrets(form, agent) {
  const path = `/api/agents/${agent.id}/secrets`;
  const read = () => {
    const values = Object.fromEntries(NAMES.map((name) => [name, form.elements[name].value.trim()]));
    const key = values.executionWalletPrivateKey;
    if (key && !isKey(key)) throw new Error("The private key cannot sign: 64 hexadecimal digits are needed.");
    return values;
  };
  onSubmit(form, async ({ password }) => {
    const securitySensitive = await encrypt(read(), password, wallet());
    await call("POST", path, { securitySensitive });
    return "Encrypted and saved.";
  });
  onPress($("[data-load]", form), form, async () => {
    const { securitySensitive } = await call("GET", path);
    if (!securitySensitive) throw new Error("Nothing is kept for this agent.");
    const sign = (message) => signAs(wallet(), message);
    const plain = await decrypt(securitySensitive, form.elements.password.value, wallet(), sign);
    for (const name of NAMES) form.elements[name].value = plain[name] ?? "";
    return "Decrypted.";
  });
  $("[data-show]", form).addEventListener("change", ({ target }) => {
    for (const name of NAMES) form.elements[name].type = target.checked ? "text" : "password";
  });
  return read;
}

onSubmit($("#agent-form"), async (values) => {
  const { agent } = await call("POST", "/api/agents/register", values);
  await showAgents();
  return `${agent.handle} is registered.`;
});
