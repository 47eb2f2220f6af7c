// Events become blocks: what a reader sees as one thing. Nothing here knows of a page.

/** Extensions for programs, not for people. */
const UNSEEN = new Set(["commands", "agent_mode", "context", "finish"]);
/** The ids of a sub-agent's calls begin with its number: `sub2.call-7`. */
const SUB_AGENT = /^sub\d+\./;
/** Of a call's live output, the newest lines: a build prints thousands. */
const MOST_LINES = 200;

/** A conversation in which nothing has happened. `places` has the block of each event by its number; `last` is the
 * number of the last event, `turn` the turn in progress or 0, `activity` what the agent said last of its progress. */
export function begun() {
  return {
    blocks: [], places: new Map(), last: 0, turn: 0, activity: "", mode: "", title: "",
    calls: new Map(), shown: new Map(), asked: new Map(), unknown: new Set(), plan: null, began: 0,
  };
}

/** Take an event in; gives the blocks that have changed, by their place in `blocks`: none for one that came before. */
export function take(state, name, data) {
  if (data.seq <= state.last) return [];
  state.last = data.seq;
  const block = TAKERS[name]?.(state, data);
  if (!block) return [];
  return touched(state, block, data.seq);
}

/** Note that events are missing for good. */
export function missing(state, first, last) {
  state.last = last;
  return touched(state, added(state, { seq: first, turn: state.turn, at: 0 }, "gap", { first, last }), first);
}

/** Take in what calls were about that nobody was asked about; gives the blocks that have changed. */
export function explain(state, calls) {
  const found = [];
  for (const call of calls) {
    const block = [...state.unknown].find(
      (each) => each.callId === call.call_id && each.turn === call.turn && each.seq > call.seq);
    if (!block) continue;
    state.unknown.delete(block);
    Object.assign(block, { args: call.args, category: call.category, description: call.description });
    if (call.verdict === "deny") block.why = call.why;
    found.push(...touched(state, block));
  }
  return found;
}

/** The place of the block with an event, or of the one before it; -1 if there is none yet. */
export function placeOf(state, seq) {
  if (state.places.has(seq)) return state.places.get(seq);
  let low = 0, high = state.blocks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (state.blocks[middle].seq <= seq) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** What waits for an answer, oldest first. */
export const asking = (state) => [...state.asked.values()];

function touched(state, block, seq) {
  block.version = (block.version ?? 0) + 1;
  const top = block.parent ?? block;
  if (top !== block) top.version++;
  if (seq !== undefined) state.places.set(seq, top.index);
  return [top.index];
}

function added(state, { seq, turn, at }, kind, members = {}) {
  const block = { kind, seq, turn, at, index: state.blocks.length, version: 0, ui: {}, ...members };
  state.blocks.push(block);
  return block;
}

/** The last block, if it is of that kind and turn: words that follow belong to it. */
function continued(state, data, kind) {
  const last = state.blocks.at(-1);
  return last?.kind === kind && last.turn === data.turn ? last : added(state, data, kind, { text: "" });
}

function said(state, data, kind) {
  const block = continued(state, data, kind);
  block.text += data.text;
  block.until = data.at;
  return block;
}

function message(state, data, steered) {
  state.title ||= data.message;
  return added(state, data, "message",
    { text: data.message, by: data.by, files: data.files ?? [], id: data.msg_id, steered });
}

const key = (data) => `${data.turn} ${data.call_id}`;

function call(state, data, name) {
  const known = state.calls.get(key(data));
  // Some agents use an id again.
  if (known && !known.over) return known;
  const parent = SUB_AGENT.test(data.call_id) ? spawning(state, data.turn) : null;
  const members = { callId: data.call_id, name, state: "running", lines: [], over: false };
  const shown = state.shown.get(data.call_id);
  if (shown) Object.assign(members, shownOf(shown));
  let block;
  if (parent) {
    block = { kind: "tool", seq: data.seq, turn: data.turn, at: data.at, version: 0, ui: {}, parent, ...members };
    (parent.children ??= []).push(block);
  } else {
    block = added(state, data, "tool", members);
  }
  state.calls.set(key(data), block);
  return block;
}

/** The call whose sub-agents are at work: there is one at a time. */
function spawning(state, turn) {
  for (let place = state.blocks.length - 1; place >= 0; place--) {
    const block = state.blocks[place];
    if (block.turn !== turn) return null;
    if (block.kind === "tool" && !block.over) return block;
  }
  return null;
}

const shownOf = ({ title, changes, paths, args }) => ({
  title: typeof title === "string" ? title : "",
  changes: Array.isArray(changes) ? changes.filter((each) => typeof each?.new === "string") : [],
  paths: Array.isArray(paths) ? paths.filter((each) => typeof each === "string") : [],
  ...(args && typeof args === "object" ? { args } : {}),
});

function over(state, block, data, members) {
  Object.assign(block, { over: true, ended: data.at }, members);
  state.asked.delete(block.callId);
  return block;
}

const TAKERS = {
  turn_started(state, data) {
    Object.assign(state, { turn: data.turn, activity: "", plan: null, began: data.at });
    return message(state, data, false);
  },
  steered: (state, data) => message(state, data, true),
  text_delta: (state, data) => said(state, data, "answer"),
  thinking_delta: (state, data) => said(state, data, "thinking"),
  tool_requested(state, data) {
    const block = call(state, data, data.name);
    const { args, category, description, outside, why } = data;
    Object.assign(block, { args, category, description, outside, why, state: "asked" });
    state.unknown.delete(block);
    state.asked.set(data.call_id, block);
    return block;
  },
  tool_answered(state, data) {
    const block = state.calls.get(key(data));
    if (!block) return null;
    state.asked.delete(data.call_id);
    return Object.assign(block, { by: data.by, approved: data.approved, state: data.approved ? "approved" : "denied" });
  },
  tool_started(state, data) {
    const block = call(state, data, data.name);
    state.asked.delete(data.call_id);
    if (!block.args) state.unknown.add(block);
    return Object.assign(block, { state: "running", started: data.at });
  },
  tool_finished(state, data) {
    const { status, output, output_type: type, metadata } = data;
    const block = call(state, data, data.name);
    return over(state, block, data, { state: status === "success" ? "done" : "failed", output, type, metadata });
  },
  tool_cancelled(state, data) {
    const block = call(state, data, "");
    return over(state, block, data, { state: block.approved === false ? "denied" : "cancelled", reason: data.reason });
  },
  progress(state, data) {
    const block = data.call_id && state.calls.get(key(data));
    if (!block) {
      state.activity = data.message;
      return null;
    }
    block.lines.push(data.message);
    if (block.lines.length > MOST_LINES) {
      block.lines.shift();
      block.dropped = (block.dropped ?? 0) + 1;
    }
    return block;
  },
  notice: (state, data) => added(state, data, "notice", { text: data.message }),
  plan(state, data) {
    // Each takes the place of the one before.
    state.plan ??= added(state, data, "plan");
    state.plan.entries = data.entries ?? [];
    return state.plan;
  },
  audio: (state, data) => added(state, data, "notice", { text: "It sent audio, which cannot be played here." }),
  extension(state, data) {
    const { kind, data: about } = data;
    if (kind === "call_shown") {
      state.shown.set(about.call_id, about);
      const block = state.calls.get(`${data.turn} ${about.call_id}`);
      return block ? Object.assign(block, shownOf(about)) : null;
    }
    if (kind === "mcp_ready") return added(state, data, "notice", { text: `MCP server ${about.name} is connected.` });
    if (kind === "mcp_login") return added(state, data, "login", { name: String(about.name), url: String(about.url) });
    return UNSEEN.has(kind) ? null : added(state, data, "extension", { name: kind, data: about });
  },
  failed: (state, data) => added(state, data, "failure", { fault: data.kind, text: data.message }),
  turn_ended(state, data) {
    const seconds = state.began ? (data.at - state.began) / 1000 : null;
    Object.assign(state, { turn: 0, activity: "", plan: null, began: 0 });
    state.asked.clear();
    state.shown.clear();
    return added(state, data, "end", { outcome: data.outcome, usage: data.usage, seconds });
  },
  mode_changed(state, data) {
    state.mode = data.mode;
    return added(state, data, "mode", { mode: data.mode });
  },
  granted: (state, data) => added(state, data, "notice", { text: `No longer asks about ${granted(data)}.` }),
  grant_revoked: (state, data) => added(state, data, "notice", { text: `Asks about ${granted(data)} again.` }),
  history_injected: (state, data) => added(state, data, "history", { text: data.text }),
};

/** The names of all events that are taken in. */
export const NAMES = [...Object.keys(TAKERS), "session_identified"];

/** What the categories of tools are about. */
export const CATEGORIES = {
  info: "reading", edit: "changing files", exec: "running commands", mcp: "tools of MCP servers",
};

function granted({ category, tool, command, outside }) {
  const what = command ? `${tool || "commands"} like ${command}` : tool || (CATEGORIES[category] ?? category);
  return outside ? `${what}, also outside of the workspace` : what;
}
