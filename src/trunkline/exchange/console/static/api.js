// How pages talk to the exchange: by its HTTP API, with what shows that they are its own.

import { coded, fill } from "./dom.js";

const forgery = document.querySelector('meta[name="trunkline-page"]')?.content ?? "";

/** What went wrong with a request, in words for people; `status` 0: nobody answered. */
export class ApiProblem extends Error {
  constructor(status, message, members = {}) {
    super(message);
    this.status = status;
    this.members = members;
  }
}

/** Ask for something; gives the JSON object of the answer. Throws an `ApiProblem`. */
export const ask = (method, path, body) => (body === undefined
  ? request(method, path) : request(method, path, JSON.stringify(body), "application/json"));

/** Send a file; gives the JSON object of the answer. */
export const upload = (path, file) => request("POST", path, file, file.type || "application/octet-stream");

async function request(method, path, body, type) {
  let response;
  try {
    const headers = { "X-Trunkline-Page": forgery, ...(type ? { "Content-Type": type } : {}) };
    response = await fetch(path, { method, headers, body, cache: "no-store" });
  } catch {
    throw new ApiProblem(0, "The exchange does not answer. Is it running?");
  }
  if (response.status === 401) {
    location.assign(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new ApiProblem(response.status, found.error?.message ?? `The exchange answered ${response.status}.`, found);
  }
  return found;
}

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const remove = (path) => ask("DELETE", path);

/** Hear a stream of Server-Sent Events for as long as the page is there, whatever happens to the exchange.
 *
 * `address` gives the address each time it is opened: where to go on is in it. `heard` maps names of events to what is
 * called with their data and number; `state` is told whether the line is up. Returns what ends it.
 */
export function hear(address, heard, state = () => {}) {
  let source = null, timer, waits = 0;
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const open = () => {
    source = new EventSource(address());
    source.onopen = () => { waits = 0; state(true); };
    source.onerror = () => {
      // A browser gives up after some refusals: we do not.
      close();
      state(false);
      timer = setTimeout(open, Math.min(250 * 2 ** waits++, 5000));
    };
    for (const [name, take] of Object.entries(heard)) {
      source.addEventListener(name, (event) => take(JSON.parse(event.data), Number(event.lastEventId)));
    }
  };
  // A browser has few connections to one exchange, for all its windows together: who does not look needs none.
  const looked = () => { close(); if (!document.hidden) open(); };
  document.addEventListener("visibilitychange", looked);
  looked();
  return () => { document.removeEventListener("visibilitychange", looked); close(); };
}

let told = null;

/** Tell somebody what went wrong, on top of the window, until something else went well. */
export function complain(error) {
  told = error;
  const place = document.getElementById("trouble");
  fill(place, error ? coded(error.message) : "");
  place.hidden = !error;
}

/** The exchange is there: that it did not answer is told no more. */
export function answers() {
  if (told?.status === 0) complain(null);
}
