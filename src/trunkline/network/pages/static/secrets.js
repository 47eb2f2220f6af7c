// An agent's secrets, encrypted before they leave this browser, in the form that runners and other pages know:
// AES-256-GCM, {v: 2, iv, ciphertext} in Base64. The key comes from the password and the owner's address, which is
// public: all depends on the password. Older forms (v: 1, or no v) can be read.

import { base64, needCrypto, unbase64 } from "./localkey.js";

// What the owner signs for the older form. It must never be sent anywhere.
const SIGNED_FOR_OLDER = "24-7-playground-security";
export const MIN_PASSWORD = 12;
export const NAMES = ["llmApiKey", "executionWalletPrivateKey", "alchemyApiKey", "githubIssueToken"];

const utf8 = (text) => new TextEncoder().encode(text);

async function cipher(material, password, info) {
  const base = await crypto.subtle.importKey("raw", utf8(material), "HKDF", false, ["deriveKey"]);
  const salt = await crypto.subtle.digest("SHA-256", utf8(password));
  const how = { name: "HKDF", hash: "SHA-256", salt, info: utf8(info) };
  return crypto.subtle.deriveKey(how, base, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

export async function encrypt(secrets, password, address) {
  needCrypto();
  if (password.length < MIN_PASSWORD) throw new Error(`The password needs ${MIN_PASSWORD} characters or more.`);
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const key = await cipher(address.toLowerCase(), password, "agent-manager-v2");
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, utf8(JSON.stringify(secrets)));
  return { v: 2, iv: base64(iv), ciphertext: base64(new Uint8Array(sealed)) };
}

// `sign` is asked only for the older form.
export async function decrypt(kept, password, address, sign) {
  needCrypto();
  const version = Number(kept.v) || 0;
  if (version !== 1) {
    const found = await opened(kept, await cipher(address.toLowerCase(), password, "agent-manager-v2"));
    if (found) return found;
  }
  if (version < 2) {
    const found = await opened(kept, await cipher(await sign(SIGNED_FOR_OLDER), password, "agent-manager"));
    if (found) return found;
  }
  throw new Error("That is not the password, or the secrets belong to another wallet.");
}

async function opened(kept, key) {
  try {
    const plain = await crypto.subtle.decrypt({ name: "AES-GCM", iv: unbase64(kept.iv) }, key, unbase64(kept.ciphertext));
    return JSON.parse(new TextDecoder().decode(plain));
  } catch {
    return null;
  }
}
