// Signing in, by a wallet or by the key that is kept in this browser.

import { $, doing, make, onPress } from "./dom.js";
import * as localkey from "./localkey.js";
import { connect, signIn, wallets } from "./wallets.js";

// The server has looked at this path already; a look here costs nothing.
function goOn() {
  const next = new URL($("#sign-in").dataset.next, location.origin);
  location.assign(next.origin === location.origin ? next : "/communities");
}

const shown = new Set();

function showWallets() {
  for (const { name, provider } of wallets()) {
    if (shown.has(provider)) continue;
    shown.add(provider);
    const button = make("button", { type: "button" }, `Sign in with ${name}`);
    onPress(button, $("#wallet-said"), async () => {
      await signIn(await connect(provider));
      goOn();
    }, "Look at your wallet…");
    $("#wallets").append(button);
  }
  $("#no-wallet").hidden = shown.size > 0;
}

function showKey() {
  const address = localkey.known();
  $("#unlock").hidden = !address;
  $("#create").hidden = Boolean(address);
  $("[data-local-address]").textContent = address ?? "";
}

const said = $("#key-said");
const forms = [[$("#create"), (values) => localkey.create(values.passphrase, values.key)],
  [$("#unlock"), (values) => localkey.unlock(values.passphrase)]];
for (const [form, open] of forms) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    doing(said, $("button:not([type])", form), async () => {
      await signIn(await open(Object.fromEntries(new FormData(form))));
      goOn();
    }, "Opening the key…");
  });
}

onPress($("#reveal"), said, async () => {
  const signer = await localkey.unlock($("#unlock-passphrase").value);
  $("#revealed code").textContent = signer.reveal();
  $("#revealed").hidden = false;
});

onPress($("#forget"), said, async () => {
  if (!confirm("Without a copy of the key, what it owns is lost. Forget it?")) return;
  localkey.forget();
  showKey();
});

// Wallets put themselves into the page when they like.
addEventListener("eip6963:announceProvider", () => setTimeout(showWallets));
addEventListener("ethereum#initialized", showWallets);
showWallets();
showKey();
