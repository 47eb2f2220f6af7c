// A conversation: its events as they come, from the first on, and what people do in it.

import { complain, get, hear } from "./api.js";
import { guessOf, rowOf } from "./conversation-blocks.js";
import { composer } from "./conversation-composer.js";
import { NAMES, asking, begun, explain, missing, placeOf, take } from "./conversation-fold.js";
import { ends, fork, modeField, watchers } from "./conversation-header.js";
import { listen } from "./conversation-keys.js";
import { questions } from "./conversation-questions.js";
import { VirtualList } from "./virtual-list.js";

/** How long is waited for more calls to be explained together, in milliseconds. */
const TOGETHER = 300;
/** How many the exchange explains at once. */
const AT_ONCE = 1000;

const { session, agent, person, largest, may: roles } = document.getElementById("conversation").dataset;
const may = (role) => roles.split(" ").includes(role);
const byId = (id) => document.getElementById(id);
const api = `/api/sessions/${encodeURIComponent(session)}`;

const state = begun();
let isUp = false, isOver = false, isStopping = false;
let target = -1, wanted = eventInAddress();

const writing = may("talker") ? composer({ session, largest: Number(largest), sent: () => list.toEnd() }) : null;

const page = {
  agent,
  nameOf: (path) => writing?.nameOf(path) ?? path.split(/[\\/]/).at(-1),
  grown: () => list.hold(),
  fork: may("admin") ? (seq) => fork(session, seq) : null,
};

const list = new VirtualList(byId("events"), {
  make(index) {
    const row = rowOf(state.blocks[index], page);
    row.element.classList.toggle("target", index === target);
    return row;
  },
  guess: (index) => guessOf(state.blocks[index]),
  moved: (atEnd) => { byId("newest").hidden = atEnd; },
  edge: () => document.querySelector(".dock").getBoundingClientRect().top,
});

const asked = questions({
  session,
  mayDecide: may("approver"),
  show: (block) => go(block.parent?.index ?? block.index),
  isSeen: (block) => list.isSeen(block.parent?.index ?? block.index),
  tell,
});
const watching = watchers(session, person);
const showMode = modeField(session);

/** Say something in passing. */
function tell(text) {
  byId("told").textContent = text;
}

// Events.

let frame = 0;
const changed = new Set();

function took(indexes) {
  for (const index of indexes) changed.add(index);
  frame ||= requestAnimationFrame(draw);
}

function draw() {
  frame = 0;
  if (state.blocks.length) {
    // Nothing is no feed.
    byId("events").setAttribute("role", "feed");
    byId("events").setAttribute("aria-label", "What happened");
  }
  list.changed(state.blocks.length, changed);
  changed.clear();
  // Before anything is asked about it: whoever can answer a question can see the call.
  list.draw();
  asked.update(asking(state));
  showState();
  showMode(state.mode);
  if (state.unknown.size) explainSoon();
  if (wanted && state.last >= wanted) jump();
}

function onEvent(name, data) {
  if (name === "turn_started" || name === "steered") writing?.begun(data.msg_id);
  if (name === "turn_started" || name === "turn_ended") isStopping = false;
  if (name === "turn_started") tell("");
  if (name === "turn_ended" && isUp) queueSoon();
  took(take(state, name, data));
  watching.look();
}

let looking = 0;

/** Ask which messages still wait: a stop drops them, whoever it was. Once for all the turns that a page begins with. */
function queueSoon() {
  looking ||= setTimeout(async () => {
    looking = 0;
    const found = await get(api).catch(() => null);
    if (found) writing?.queued(found.queued);
  }, TOGETHER);
}

let gap = 0, hangUp = () => {};

function listenToEvents() {
  hangUp();
  const heard = Object.fromEntries(NAMES.map((name) => [name, (data) => onEvent(name, data)]));
  heard.gap = ({ first, last }) => {
    if (gap === first) {
      // Asked for again, they are still missing: the log itself has lost them.
      took(missing(state, first, last));
    } else {
      gap = first;
      listenToEvents();
    }
  };
  hangUp = hear(() => `${api}/events?since=${state.last}`, heard, lineChanged);
}

async function lineChanged(up) {
  if (isOver) return;
  isUp = up;
  showState();
  try {
    const found = await get(api);
    if (up) showMode(state.mode || found.mode);
    writing?.queued(found.queued);
    watching.look();
  } catch (error) {
    if (error.status === 404) over("This conversation was removed.");
  }
}

function over(text) {
  isOver = true;
  hangUp();
  complain(new Error(text));
  showState();
}

let explaining = 0, explained = 0;

/** Ask what the calls are about that nobody was asked about. */
function explainSoon() {
  explaining ||= setTimeout(async () => {
    const open = [...state.unknown];
    try {
      const { calls } = await get(`${api}/calls?since=${explained}`);
      took(explain(state, calls));
      explained = calls.at(-1)?.seq ?? explained;
      if (calls.length < AT_ONCE) open.forEach((block) => state.unknown.delete(block));
    } catch {
      // The cards show what is known without.
      open.forEach((block) => state.unknown.delete(block));
    }
    explaining = 0;
    if (state.unknown.size) explainSoon();
  }, TOGETHER);
}

// What is going on.

function showState() {
  const place = byId("state");
  const count = asking(state).length;
  const [words, look] = isOver ? ["removed", "bad"]
    : !isUp ? ["disconnected, reconnecting…", "bad"]
      : isStopping ? ["stopping", "warn"]
        : count ? [count === 1 ? "waiting for approval" : `${count} approvals waiting`, "warn"]
          : state.turn ? ["at work", "good"] : ["ready", ""];
  if (place.textContent !== words) place.textContent = words;
  place.className = `tag ${look}`;
  byId("activity").textContent = state.turn ? state.activity : "";
  byId("nothing").hidden = state.blocks.length > 0 || !isUp;
  writing?.busy(Boolean(state.turn));
  showPlan();
  if (state.title) document.title = `${state.title.replace(/\s+/g, " ").slice(0, 60)} · Trunkline`;
}

function showPlan() {
  const button = byId("plan-state");
  const entries = state.plan?.entries ?? [];
  button.hidden = !entries.length;
  if (!entries.length) return;
  const done = entries.filter((each) => each.status === "completed").length;
  const now = entries.find((each) => each.status === "in_progress");
  button.textContent = `Plan ${done}/${entries.length}${now ? `: ${now.content.slice(0, 60)}` : ""}`;
}

function stop() {
  if (!writing || !state.turn) return;
  isStopping = true;
  showState();
  writing.stop();
}

// Going to an event.

function eventInAddress() {
  return Number(/^#e(\d{1,15})$/.exec(location.hash)?.[1] ?? 0);
}

function jump() {
  const index = placeOf(state, wanted);
  wanted = 0;
  if (index >= 0) go(index, true);
}

function go(index, isTarget = false) {
  if (isTarget) {
    list.rows.get(target)?.element.classList.remove("target");
    target = index;
  }
  const row = list.show(index);
  row?.classList.toggle("target", index === target);
  row?.focus({ preventScroll: true });
}

window.addEventListener("hashchange", () => {
  wanted = eventInAddress();
  if (wanted) jump();
});
byId("go-to").addEventListener("submit", (event) => {
  event.preventDefault();
  const number = Number(byId("event-number").value);
  const most = state.last;
  if (!number || number > most) {
    tell(`Choose an event from 1 to ${most}.`);
    return;
  }
  history.replaceState(null, "", `#e${number}`);
  wanted = number;
  jump();
});
byId("stop")?.addEventListener("click", stop);
byId("newest").addEventListener("click", () => list.toEnd());
byId("plan-state").addEventListener("click", () => state.plan && go(state.plan.index));

listen({
  ...asked.keys,
  n: asked.next,
  e: () => list.toEnd(),
  g: () => byId("event-number").focus(),
  m: () => writing?.focus(),
  Escape: stop,
});
ends(session, () => { isOver = true; hangUp(); });
listenToEvents();
