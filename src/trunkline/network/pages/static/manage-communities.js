// The communities of whoever is signed in: register, describe, add contracts, ban, close.

import { $, $$, clone, latest, make, many, onPress, onSubmit, short } from "./dom.js";
import { showWebhook } from "./manage-webhook.js";
import { call, wallet } from "./session.js";

const asked = latest();

// Fill the list, and return when it is there.
export async function showCommunities() {
  const isNews = asked();
  const whose = `walletAddress=${wallet()}`;
  const [owned, bans] = await Promise.all([
    call("GET", `/api/communities/owned?${whose}`), call("GET", `/api/communities/bans/owned?${whose}`),
  ]);
  if (!isNews()) return;
  const banned = new Map(bans.communities.map((one) => [one.id, one.bannedAgents]));
  owned.communities.forEach(offer);
  const cards = owned.communities.map((one) => card(one, banned.get(one.id) ?? []));
  $("#communities").replaceChildren(...(cards.length ? cards : [make("p", { class: "empty" }, "You own no community.")]));
}

// An agent can join what is open, and that may have changed since the page was made.
function offer({ id, name, status }) {
  const choice = $("#a-community");
  const option = [...choice.options].find(({ value }) => value === id);
  if (status !== "ACTIVE") option?.remove();
  else if (!option) choice.append(new Option(name, id));
}

function card(community, bans) {
  const box = clone("community-card");
  const closed = community.status !== "ACTIVE";
  box.id = `community-${community.id}`;
  const link = $("[data-link]", box);
  link.href = `/communities/${community.slug}`;
  link.textContent = community.name;
  $("[data-closed]", box).hidden = !closed;
  $("[data-facts]", box).textContent = `${many(community.contracts.length, "contract")}, ${many(bans.length, "ban")}`;
  $("[name=description]", box).value = community.description ?? "";
  $("[name=githubRepositoryUrl]", box).value = community.githubRepositoryUrl ?? "";
  $("[data-fields]", box).append(contractFields(false));
  $("[data-contracts]", box).append(...community.contracts.map((contract) => contractLine(community, contract)));
  $("[data-bans]", box).append(...bans.map((ban) => banLine(community, ban)));
  const change = (values) => call("POST", "/api/contracts/update", { communityId: community.id, ...values });
  onSubmit($("[data-form=description]", box), async ({ description, githubRepositoryUrl }) => {
    const { updated } = await change({ action: "UPDATE_DESCRIPTION", description, githubRepositoryUrl });
    return updated ? "Saved." : "Nothing was different.";
  });
  onSubmit($("[data-form=contract]", box), async (values, form) => {
    await change({ action: "ADD_CONTRACT", ...readContract($("fieldset", form)) });
    await showCommunities();
  });
  onSubmit($("[data-form=ban]", box), async ({ ownerWallet }) => {
    await ban(community, ownerWallet, "BAN");
  });
  onSubmit($("[data-form=close]", box), async ({ confirmName }) => {
    await call("POST", "/api/communities/close", { communityId: community.id, confirmName });
    await showCommunities();
  });
  showWebhook($("[data-webhook]", box), community);
  if (closed) for (const form of $$("[data-form]:not([data-form=ban])", box)) form.closest("details").hidden = true;
  return box;
}

async function ban(community, ownerWallet, action) {
  await call("POST", "/api/communities/bans", { communityId: community.id, ownerWallet, action });
  await showCommunities();
}

function contractLine(community, contract) {
  const button = make("button", { type: "button", class: "quiet" }, "Remove");
  const output = make("output", { role: "status" });
  onPress(button, output, async () => {
    await call("POST", "/api/contracts/update", {
      communityId: community.id, action: "REMOVE_CONTRACT", contractId: contract.id,
    });
    await showCommunities();
  });
  return make("li", { class: "row" }, make("strong", {}, contract.name), make("code", { class: "address" }, contract.address), button, output);
}

function banLine(community, { ownerWallet, handle }) {
  const button = make("button", { type: "button", class: "quiet" }, "Lift the ban");
  const output = make("output", { role: "status" });
  onPress(button, output, () => ban(community, ownerWallet, "UNBAN"));
  return make("li", { class: "row" }, make("span", {}, handle ?? "without a name"), make("code", { title: ownerWallet }, short(ownerWallet)), button, output);
}

function contractFields(removable = true) {
  const fields = clone("contract-fields");
  const button = $("[data-remove]", fields);
  if (removable) button.addEventListener("click", () => fields.remove());
  else button.remove();
  return fields;
}

function readContract(fields) {
  const value = (name) => $(`[name=${name}]`, fields).value.trim();
  const contract = { name: value("name"), address: value("address") };
  return value("abi") ? { ...contract, abi: readAbi(value("abi"), contract.address) } : contract;
}

function readAbi(text, address) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(`The ABI of ${address} is not JSON.`);
  }
  // Build tools write the ABI into a larger file.
  const abi = Array.isArray(found) ? found : found?.abi;
  if (!Array.isArray(abi)) throw new Error(`The JSON for ${address} is no ABI: it is no array, and has no array "abi" in it.`);
  return abi;
}

const contracts = $("#c-contracts");
contracts.append(contractFields(false));
$("#c-add").addEventListener("click", () => contracts.append(contractFields()));

onSubmit($("#community-form"), async ({ serviceName, description, githubRepositoryUrl }, form) => {
  const listed = $$(".contract-fields", contracts).map(readContract);
  const { community } = await call("POST", "/api/contracts/register", {
    serviceName, description, githubRepositoryUrl, chain: "Sepolia", contracts: listed,
  });
  form.reset();
  contracts.replaceChildren(contractFields(false));
  await showCommunities();
  return `${community.name} is registered.`;
});
