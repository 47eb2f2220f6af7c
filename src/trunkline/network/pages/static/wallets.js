// Who can sign: wallets in this browser (EIP-1193, announced by EIP-6963 or as window.ethereum), or the key kept here.

import { $, make } from "./dom.js";
import * as localkey from "./localkey.js";
import { begin, call } from "./session.js";

const announced = new Map();

addEventListener("eip6963:announceProvider", ({ detail }) => {
  if (detail?.provider && detail.info?.uuid) announced.set(detail.info.uuid, detail);
});
dispatchEvent(new Event("eip6963:requestProvider"));

// The wallets that are there: their names, and what they are asked through.
export function wallets() {
  const found = [...announced.values()].map(({ info, provider }) => ({ name: String(info.name).slice(0, 40), provider }));
  const old = globalThis.ethereum;
  if (old && !found.some(({ provider }) => provider === old)) {
    found.push({ name: old.isMetaMask ? "MetaMask" : "Browser wallet", provider: old });
  }
  return found;
}

const toHex = (message) => `0x${localkey.hex(new TextEncoder().encode(message))}`;

// Ask a wallet who it is.
export async function connect(provider) {
  try {
    const [address] = await provider.request({ method: "eth_requestAccounts" });
    if (!address) throw new Error("The wallet named no account.");
    const sign = (message) => asked(provider.request({ method: "personal_sign", params: [toHex(message), address] }));
    return { address: address.toLowerCase(), sign };
  } catch (error) {
    throw refused(error);
  }
}

const asked = (promise) => promise.catch((error) => { throw refused(error); });

// 4001 is what wallets say when their owner said no.
const refused = (error) => (error?.code === 4001 ? new Error("You refused in the wallet.") : new Error(error?.message ?? String(error)));

// Sign in with somebody who can sign.
export async function signIn(signer) {
  const { challenge } = await call("POST", "/api/auth/owner/challenge", { walletAddress: signer.address });
  const signature = await signer.sign(challenge.message);
  const answer = await call("POST", "/api/auth/owner/verify", { challengeId: challenge.id, signature });
  begin(answer.token, answer.walletAddress);
}

// Have a text signed by the wallet that is signed in.
export async function signAs(address, message) {
  if (localkey.known() === address) {
    const signer = await localkey.unlock(await askPassphrase());
    return signer.sign(message);
  }
  for (const { provider } of wallets()) {
    const signer = await connect(provider);
    if (signer.address === address) return signer.sign(message);
  }
  throw new Error("The wallet that you signed in with is not in this browser.");
}

function askPassphrase() {
  const input = make("input", { type: "password", name: "passphrase", autocomplete: "current-password", required: "" });
  const form = make("form", { method: "dialog" }, make("label", {}, "Passphrase of your key ", input),
    make("div", { class: "row" }, make("button", { value: "ok" }, "Sign"),
      make("button", { value: "cancel", formnovalidate: "", class: "quiet" }, "Cancel")));
  const dialog = make("dialog", { "aria-label": "Passphrase" }, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => {
      const typed = $("input", dialog).value;
      dialog.remove();
      if (dialog.returnValue === "ok") resolve(typed);
      else reject(new Error("Nothing was signed."));
    });
  });
}
