// The game: who is picked, what is said to them, and what comes of it.
//
// The address may wish something: `?server=ws://127.0.0.1:9101`, `engine=mock` or `engine=real`, `model=NAME`,
// `ears=NAME`, `voice=NAME` (`none`: neither hears nor speaks).

import { Bubbles } from "./bubbles.js";
import { CHARACTERS, DEEDS, deedOf } from "./characters.js";
import { Lips } from "./lips.js";
import { Scene } from "./scene.js";
import { Session } from "./session.js";
import { context, Lute, microphone, Player, whyNot } from "./sound.js";

const wishes = Object.fromEntries(new URLSearchParams(location.search));
const $ = (id) => document.getElementById(id);
const [text, send, talk, stop, log, notice] = ["text", "send", "talk", "stop", "log", "notice"].map($);

let picked = CHARACTERS[0];
// What is going on: characters that think or talk, and the utterance.
const busy = new Set();
let speech = null;

const scene = new Scene(CHARACTERS, pick);
const bubbles = new Bubbles(scene);
const lute = new Lute(() => playing(false));
const players = new Map(CHARACTERS.map((character) => [character, new Player(() => quiet(character))]));
const lips = new Map(CHARACTERS.map((character) => [character, new Lips(character, players.get(character))]));
const session = new Session(wishes.server ?? "ws://127.0.0.1:9101", wishes, {
  open(about) {
    show("open", `Open, ${about}`);
    $("closed").hidden = true;
  },
  closed(error) {
    show("closed", "Nobody opens.");
    $("closed-why").textContent = `${error.message} Is it running, and may this page (${location.origin}) talk to it?`;
    $("closed").hidden = false;
    for (const character of CHARACTERS) silence(character);
    endSpeech(true);
    session.ear = session.client ? session.ear : null;
  },
  status: (told) => show("connecting", told),
  listeners,
});

function show(state, status) {
  document.body.dataset.state = state;
  $("status").textContent = status;
  for (const control of [text, send, talk]) control.disabled = state !== "open";
}

function pick(character) {
  picked = character;
  scene.pick(character);
  text.placeholder = `Talk to ${character.name} ...`;
  $("hints").replaceChildren(
    ...character.hints.map((hint) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = hint;
      button.addEventListener("click", () => say(hint));
      return button;
    }),
  );
  update();
}

// What is said, and what comes of it.

function say(words) {
  if (!words.trim() || document.body.dataset.state !== "open") return;
  context();
  told("you", "You", words);
  begin(picked);
  // Its listeners hear how it ends.
  session
    .say(picked, words)
    .result()
    .catch(() => {});
}

function begin(character) {
  busy.add(character);
  players.get(character).stop();
  scene.mark(character, "thinking", true);
  bubbles.think(character);
  notice.textContent = "";
  update();
}

function listeners(character) {
  const player = players.get(character);
  // Another turn of this one: what it says begins anew.
  let fresh = true;
  const restart = () => {
    if (fresh) {
      player.stop();
      player.restart();
      lips.get(character).stop();
    }
    fresh = false;
  };
  return {
    onText(_, whole) {
      busy.add(character);
      scene.mark(character, "thinking", false);
      scene.mark(character, "talking", true);
      bubbles.say(character, whole);
      update();
    },
    onIntent: ({ intent }) => act(DEEDS[character.id][intent]),
    onToolCall: (call) => act(deedOf(call)),
    onTiming({ marks }) {
      restart();
      lips.get(character).follow(marks);
    },
    onSound(sound) {
      restart();
      lute.yield(true);
      scene.mark(character, "talking", true);
      player.play(sound);
    },
    onDone(turn, error) {
      fresh = true;
      busy.delete(character);
      scene.mark(character, "thinking", false);
      if (turn?.text) told(character.id, character.name, turn.text);
      if (error && document.body.dataset.state === "open") notice.textContent = error.message;
      if (turn?.status === 1) notice.textContent = `${character.name} has lost the thread. Try again.`;
      if (!player.active) quiet(character);
      update();
    },
  };
}

// Nothing more is heard of somebody.
function quiet(character) {
  if (![...players.values()].some((player) => player.active)) lute.yield(false);
  document.body.dataset.played = String([...players.values()].reduce((sum, player) => sum + player.seconds, 0));
  if (busy.has(character)) return;
  scene.mark(character, "talking", false);
  bubbles.done(character);
  update();
}

function silence(character) {
  busy.delete(character);
  players.get(character).stop();
  for (const mark of ["thinking", "talking", "listening"]) scene.mark(character, mark, false);
  bubbles.drop(character);
  update();
}

function act(deed) {
  if (!deed) return;
  const [name, words] = deed;
  if (name === "song") playing(true);
  else if (name === "hush") lute.stop();
  else scene.move(name);
  told("deed", "", words);
}

function playing(on) {
  if (on) lute.play();
  document.body.dataset.song = on ? "playing" : "off";
  scene.mark(CHARACTERS[1], "playing", on);
}

function told(kind, name, words) {
  const line = document.createElement("li");
  line.className = kind;
  if (name) {
    const who = document.createElement("b");
    who.textContent = `${name}: `;
    line.append(who);
  }
  line.append(words);
  log.append(line);
  log.scrollTop = log.scrollHeight;
}

function update() {
  stop.hidden = !busy.size && ![...players.values()].some((player) => player.active);
}

async function stopAll() {
  for (const character of CHARACTERS) {
    players.get(character).stop();
    if (busy.has(character)) await session.stop(character).catch((error) => (notice.textContent = error.message));
  }
}

// Hold to talk.

async function beginSpeech() {
  if (speech || talk.disabled) return;
  const mine = (speech = { character: picked, over: false, close: () => {}, ear: null });
  const held = [];
  talk.classList.add("on");
  talk.setAttribute("aria-pressed", "true");
  scene.mark(mine.character, "listening", true);
  players.get(mine.character).stop();
  notice.textContent = `${mine.character.name} listens ...`;
  try {
    mine.close = await microphone((pcm, level) => {
      talk.style.setProperty("--level", Math.min(1, level * 4).toFixed(2));
      if (mine.ear) mine.ear.send(pcm);
      else held.push(pcm);
    });
    if (!mine.over) {
      const ear = await session.listen(
        mine.character,
        ({ text: heard }) => heard && (notice.textContent = `“${heard}”`),
      );
      for (const pcm of held) ear.send(pcm);
      mine.ear = ear;
    }
  } catch (error) {
    notice.textContent = error.name === "TryllError" ? error.message : whyNot(error);
    mine.failed = true;
  }
  mine.ready = true;
  if (mine.over || mine.failed) await finish(mine);
}

function endSpeech(lost = false) {
  const mine = speech;
  if (!mine) return;
  mine.over = true;
  mine.failed ||= lost;
  if (mine.ready || lost) void finish(mine);
}

async function finish(mine) {
  if (speech !== mine) return;
  speech = null;
  mine.close();
  talk.classList.remove("on");
  talk.setAttribute("aria-pressed", "false");
  scene.mark(mine.character, "listening", false);
  if (mine.failed || !mine.ear) return;
  try {
    const heard = await mine.ear.end();
    notice.textContent = heard ? "" : `${mine.character.name} heard nothing. Hold the button while you speak.`;
    if (!heard) return;
    told("you", "You", heard);
    if (!document.querySelector(`.bubble[data-of="${mine.character.id}"]`)) begin(mine.character);
  } catch (error) {
    notice.textContent = error.message;
  }
}

// Keys and buttons.

$("say").addEventListener("submit", (event) => {
  event.preventDefault();
  say(text.value);
  text.value = "";
});
talk.addEventListener("pointerdown", (event) => {
  talk.setPointerCapture(event.pointerId);
  void beginSpeech();
});
for (const name of ["pointerup", "pointercancel"]) talk.addEventListener(name, () => endSpeech());
talk.addEventListener("contextmenu", (event) => event.preventDefault());
stop.addEventListener("click", () => void stopAll());
for (const button of document.querySelectorAll(".who button")) {
  button.addEventListener("click", () => pick(CHARACTERS.find(({ id }) => id === button.dataset.who)));
}

addEventListener("keydown", (event) => {
  if (event.key === "Escape") void stopAll();
  if (event.target === text || event.ctrlKey || event.metaKey || event.altKey) return;
  const chosen = CHARACTERS[Number(event.key) - 1];
  if (event.key !== " " && chosen) pick(chosen);
  if (event.key === " " && !otherButton(event.target)) {
    event.preventDefault();
    const person = CHARACTERS.find(({ id }) => id === event.target.id);
    if (person && !event.repeat) pick(person);
    if (!event.repeat) void beginSpeech();
  }
});
addEventListener("keyup", (event) => {
  if (event.key === " ") endSpeech();
});
addEventListener("blur", () => endSpeech());

// A button does what it always does at the space bar, except for the one that is held.
function otherButton(target) {
  return target !== talk && target instanceof HTMLButtonElement;
}

Object.assign(document.body.dataset, { door: "closed", mugs: "0", song: "off", fire: "low", played: "0" });
pick(picked);
void session.open(CHARACTERS);
