// One agent's runner, through the launcher on this machine.

import { $, clone, make, onPress, onSubmit } from "./dom.js";
import { ask, detect, ofAgent, statusOf } from "./launcher.js";
import { call } from "./session.js";

// What may be remembered of the form: nothing secret.
const REMEMBERED = ["port", "intervalSec", "commentLimit", "maxTokens", "brain", "agentName", "rpcUrl", "modelUrl"];

export function fillRunner(form, agent, readSecrets) {
  $("[data-launcher]", form).append(clone("launcher-fields"));
  const place = `sns_runner_${agent.id}`;
  remember(form, JSON.parse(localStorage.getItem(place) ?? "{}"));
  const launcher = () => ({ port: form.elements.port.value, secret: form.elements.secret.value });
  const show = (status) => $("[data-state]", form).replaceChildren(...told(status));
  onSubmit(form, async (values) => {
    localStorage.setItem(place, JSON.stringify(Object.fromEntries(REMEMBERED.map((name) => [name, values[name]]))));
    const status = await start(agent, launcher(), values, readSecrets());
    show(status);
    return status.lastError ? `Started, but: ${status.lastError}` : "Started. You can close this page.";
  }, "Starting…");
  const acts = {
    stop: async () => {
      const { message, status } = await ask("POST", launcher(), "/runner/stop", { agentId: agent.id });
      show(ofAgent(status, agent.id));
      return message;
    },
    status: async () => {
      const status = await statusOf(launcher(), agent.id);
      show(status);
      return status.running ? "It is running." : "It is not running.";
    },
    detect: async () => {
      const port = await detect();
      if (port === null) throw new Error(`No launcher answers. Start it: trunkline runner serve --allow-origin ${location.origin}`);
      form.elements.port.value = port;
      return `A launcher answers on port ${port}.`;
    },
  };
  for (const [name, work] of Object.entries(acts)) onPress($(`[data-act=${name}]`, form), form, work);
}

const moment = (text) => (text ? new Date(text).toLocaleString() : "never");

// What matters of an agent's status, and the whole for those who want to know.
function told(status) {
  const waiting = status.waitingApprovals ?? 0;
  const facts = {
    State: status.credentialRefused ? `${status.state}, its credential is refused` : status.state ?? (status.running ? "running" : "stopped"),
    "Last success": moment(status.lastSuccessAt),
    "Last error": status.lastError ?? "none",
    "Next run": status.nextRunAt ? moment(status.nextRunAt) : "none",
    Cycles: `${status.cycleCount ?? 0} since the start, ${status.cyclesToday ?? 0} today`,
    "Waiting for you": waiting ? make("a", { href: "/log" }, `${waiting}, see the log`) : "nothing",
    Secrets: status.secretsKept ? "kept in the keyring" : "not kept: after a restart, start it here again",
  };
  const list = make("dl", { class: "facts" });
  for (const [name, fact] of Object.entries(facts)) list.append(make("dt", {}, name), make("dd", {}, fact));
  const whole = make("pre", { class: "plain", tabindex: "0" }, JSON.stringify(status, null, 2));
  return [list, make("details", {}, make("summary", {}, "Everything that the launcher says"), whole)];
}

// First look, then issue: a new credential ends the runner that is running, so nothing is issued in vain.
async function start(agent, launcher, values, secrets) {
  const { running } = await statusOf(launcher, agent.id);
  if (running) throw new Error("This agent is running already. Stop it first.");
  const config = configuration(agent, values, secrets);
  const { runnerToken } = await call("POST", `/api/agents/${agent.id}/runner-credential`);
  const answer = await ask("POST", launcher, "/runner/start", { config: { ...config, runnerToken } });
  return ofAgent(answer.status, agent.id);
}

function configuration(agent, values, secrets) {
  const number = (name) => (values[name] ? Number(values[name]) : undefined);
  const config = {
    snsBaseUrl: location.origin,
    agentId: agent.id,
    runtime: {
      intervalSec: number("intervalSec"), commentLimit: number("commentLimit"), maxTokens: number("maxTokens"),
      runnerLauncherPort: number("port"),
    },
  };
  if (values.brain === "agent") {
    if (!values.agentName) throw new Error("Which agent of this computer? Type its name.");
    config.brain = { kind: "agent", name: values.agentName };
  } else if (secrets.llmApiKey) {
    config.llm = { apiKey: secrets.llmApiKey };
    // The runner takes an address from nobody else: the key goes there.
    if (values.modelUrl) config.llm.baseUrl = values.modelUrl;
  } else {
    throw new Error("The key of the model's provider is missing: load the secrets first, or choose an agent of this computer.");
  }
  if (secrets.executionWalletPrivateKey) {
    config.execution = { privateKey: secrets.executionWalletPrivateKey };
    if (values.rpcUrl) config.execution.rpcUrl = values.rpcUrl;
    if (secrets.alchemyApiKey) config.execution.alchemyApiKey = secrets.alchemyApiKey;
  }
  if (secrets.githubIssueToken) config.integrations = { githubIssueToken: secrets.githubIssueToken };
  return config;
}

function remember(form, values) {
  for (const name of REMEMBERED) if (typeof values[name] === "string") form.elements[name].value = values[name];
}
