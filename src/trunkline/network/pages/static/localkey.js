// A key for people without a wallet: made here, kept here, encrypted with a passphrase. It signs as wallets do.

import { keccak_256 } from "./vendor/noble-hashes/sha3.js";
import { getPublicKey, signAsync, utils } from "./vendor/noble-secp256k1/index.js";

const PLACE = "sns_local_key";
// What is recommended for PBKDF2 with SHA-256: half a second for us, and as much for each guess of somebody else.
const ITERATIONS = 600000;
export const MIN_PASSPHRASE = 12;

export const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export function unhex(text) {
  const digits = text.trim().replace(/^0x/i, "");
  if (!/^([0-9a-f]{2})+$/i.test(digits)) throw new Error("That is not hexadecimal.");
  return Uint8Array.from(digits.match(/../g), (pair) => parseInt(pair, 16));
}

export const base64 = (bytes) => btoa(String.fromCharCode(...bytes));

export const unbase64 = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

const utf8 = (text) => new TextEncoder().encode(text);

// WebCrypto is there on https and on this machine only.
export function needCrypto() {
  if (!globalThis.crypto?.subtle) throw new Error("This browser does cryptography on https:// and on localhost only.");
}

// Whether a text is a private key that can sign.
export function isKey(text) {
  try {
    return utils.isValidSecretKey(unhex(text));
  } catch {
    return false;
  }
}

function addressOf(key) {
  const point = getPublicKey(key, false).subarray(1);
  return `0x${hex(keccak_256(point).subarray(-20))}`;
}

async function cipher(passphrase, salt, iterations) {
  const base = await crypto.subtle.importKey("raw", utf8(passphrase), "PBKDF2", false, ["deriveKey"]);
  const how = { name: "PBKDF2", hash: "SHA-256", salt, iterations };
  return crypto.subtle.deriveKey(how, base, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

// The kept key's address; null if there is none.
export function known() {
  try {
    return JSON.parse(localStorage.getItem(PLACE))?.address ?? null;
  } catch {
    return null;
  }
}

export const forget = () => localStorage.removeItem(PLACE);

// Keep a key, a new one unless one is given, and return it unlocked.
export async function create(passphrase, given = "") {
  needCrypto();
  if (passphrase.length < MIN_PASSPHRASE) throw new Error(`The passphrase needs ${MIN_PASSPHRASE} characters or more.`);
  const key = given ? unhex(given) : utils.randomSecretKey();
  if (!utils.isValidSecretKey(key)) throw new Error("That is no private key: 64 hexadecimal digits are needed.");
  const [salt, iv] = [crypto.getRandomValues(new Uint8Array(16)), crypto.getRandomValues(new Uint8Array(12))];
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, await cipher(passphrase, salt, ITERATIONS), key);
  const kept = { v: 1, address: addressOf(key), salt: base64(salt), iv: base64(iv), iterations: ITERATIONS,
    ciphertext: base64(new Uint8Array(sealed)) };
  localStorage.setItem(PLACE, JSON.stringify(kept));
  return signer(key);
}

// Unlock the kept key.
export async function unlock(passphrase) {
  needCrypto();
  const kept = JSON.parse(localStorage.getItem(PLACE));
  const opener = await cipher(passphrase, unbase64(kept.salt), kept.iterations);
  let key;
  try {
    key = await crypto.subtle.decrypt({ name: "AES-GCM", iv: unbase64(kept.iv) }, opener, unbase64(kept.ciphertext));
  } catch {
    throw new Error("That is not the passphrase of this key.");
  }
  return signer(new Uint8Array(key));
}

function signer(key) {
  return {
    address: addressOf(key),
    reveal: () => `0x${hex(key)}`,
    sign: (message) => personalSign(key, message),
  };
}

// EIP-191: what every wallet calls personal_sign.
async function personalSign(key, message) {
  const text = utf8(message);
  const framed = new Uint8Array([...utf8(`\x19Ethereum Signed Message:\n${text.length}`), ...text]);
  const signed = await signAsync(keccak_256(framed), key, { prehash: false, format: "recovered" });
  // The library puts the recovery bit first, Ethereum last.
  return `0x${hex(signed.subarray(1))}${(27 + signed[0]).toString(16)}`;
}
