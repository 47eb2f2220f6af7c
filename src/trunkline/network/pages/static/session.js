// Who is signed in, and how the API is asked. The token goes into a header by our own code only, so that no other site
// can make a browser use it.

const TOKEN = "sns_owner_token";
const WALLET = "sns_owner_wallet";
// What the other side needs for the slowest answer is less: an explorer that is asked three times.
const TIMEOUT_MS = 60000;

export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = () => localStorage.getItem(TOKEN);

export const wallet = () => (token() ? localStorage.getItem(WALLET) : null);

export function begin(newToken, address) {
  localStorage.setItem(TOKEN, newToken);
  localStorage.setItem(WALLET, address.toLowerCase());
}

export function end() {
  localStorage.removeItem(TOKEN);
  localStorage.removeItem(WALLET);
}

// Ask the API; the answer's members, or a Refusal with a text for people.
export async function call(method, path, body, headers = {}) {
  const sent = { ...headers };
  if (token()) sent.Authorization = `Bearer ${token()}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const answer = await request(path, {
    method, headers: sent, body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (answer.status === 401 && sent.Authorization && /session/i.test(answer.data.error ?? "")) {
    end();
    throw new Refusal(401, "You are no longer signed in. Sign in again.");
  }
  return good(answer);
}

// A request with a limit, to here or to the launcher: its status, and the JSON object that came.
export async function request(url, options) {
  let response;
  try {
    response = await fetch(url, { ...options, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new Refusal(0, error.name === "TimeoutError" ? "No answer came in time." : "It could not be reached.");
  }
  const data = await response.json().catch(() => ({}));
  return { status: response.status, ok: response.ok, data };
}

export function good(answer) {
  if (answer.ok) return answer.data;
  throw new Refusal(answer.status, answer.data.error || `It was refused (${answer.status}).`);
}
