// The page: a conversation over a WebSocket, the microphone, the player, and what people see of them.

import { openMicrophone, whyNot } from "./microphone.js";
import { Player } from "./player.js";
import { Words } from "./words.js";

const $ = (selector) => document.querySelector(selector);
const html = document.documentElement;
const words = new Words($("#words"), $("#empty"));

const STATES = {
  connecting: ["Connecting…", ""],
  off: ["Ready when you are", "Talk, and your browser asks for the microphone; or just type."],
  opening: ["Getting ready…", "The models are being loaded."],
  listening: ["Listening", "Speak: the agent hears you."],
  waiting: ["Waiting for you", "Hold the button and speak."],
  typing: ["Ready", "Type what you want to say."],
  hearing: ["Hearing you", "Go on."],
  thinking: ["Thinking", "The agent makes up its mind."],
  speaking: ["Speaking", "Listen, or stop the answer."],
  over: ["The conversation is over", "It begins anew when you start again."],
};

let socket = null;
let context = null;
let player = null;
let closeMicrophone = null;
// The browser asks somebody, who may take a while.
let asking = false;
// What was typed before the conversation could take it.
let unsent = "";
// "connecting", "off", "opening", "on", "over"
let phase = "connecting";
let hearing = false;
let answering = false;
let pressed = false;
// Sound that is still on its way is not wanted: until the server has heard of it, too.
let muted = false;
let format = null;
let detail = "";

const handsFree = () => $("[name=mode]:checked").value === "hands-free";
const bargeIn = () => $("#barge-in").checked;
const tell = (type, more = {}) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, ...more }));
};

function state() {
  if (phase !== "on") return phase;
  if (pressed || hearing) return "hearing";
  if (player?.active) return "speaking";
  if (answering) return "thinking";
  if (!closeMicrophone) return "typing";
  return handsFree() ? "listening" : "waiting";
}

function show() {
  const now = state();
  const [status, usual] = STATES[now];
  if (html.dataset.state !== now) {
    html.dataset.state = now;
    $("#status").textContent = status;
  }
  const interrupts = now === "speaking" && closeMicrophone && handsFree() && bargeIn();
  const more = (phase === "opening" && detail) || (interrupts ? "Speak to interrupt." : usual);
  if ($("#detail").textContent !== more) $("#detail").textContent = more;
  const on = phase === "on";
  $("#start").hidden = on;
  $("#start").disabled = phase !== "off" && phase !== "over";
  $("#start").textContent = phase === "over" ? "Start again" : "Start talking";
  $("#microphone").hidden = !on || Boolean(closeMicrophone);
  $("#microphone").disabled = asking;
  $("#press").hidden = $("#press-help").hidden = !on || !closeMicrophone || handsFree();
  $("#press").classList.toggle("down", pressed);
  $("#press").textContent = pressed ? "Listening: let go when done" : "Hold to talk";
  $("#hush").hidden = !on || !(answering || player?.active);
  $("#end").hidden = !on && phase !== "opening";
  $("#typed").readOnly = $("#send").disabled = Boolean(unsent);
  for (const each of document.querySelectorAll("#models select, #barge-in")) each.disabled = on || phase === "opening";
  html.dataset.played = player ? player.seconds.toFixed(2) : "0";
}

function problem(text) {
  $("#problem").textContent = text;
  $("#problem").hidden = !text;
}

// What people may want to know while all is well. They can put it away.
function note(text) {
  $("#note-text").textContent = text;
  $("#note").hidden = !text;
}

// The socket.

function connect() {
  phase = "connecting";
  const opened = new WebSocket(`ws://${location.host}/talk`);
  opened.binaryType = "arraybuffer";
  opened.onmessage = ({ data }) => (typeof data === "string" ? heed(JSON.parse(data)) : sound(data));
  opened.onclose = ({ code }) => {
    if (opened !== socket) return;
    if (code === 1013) problem("There are too many conversations: close another tab, and start again.");
    else if (code === 1009) problem("The page sent more than the server takes at once. Start again.");
    else if ($("#problem").hidden) problem("The connection to the server is lost.");
    over();
  };
  socket = opened;
  show();
}

function heed(message) {
  switch (message.type) {
    case "models":
      offer(message);
      if (phase === "connecting") phase = "off";
      if (phase === "off" && unsent) start(false);
      break;
    case "progress":
      detail = `Fetching ${message.model}: ${message.percent} %`;
      break;
    case "notice":
    case "trouble":
      words.note(message.message);
      break;
    case "ready":
      phase = "on";
      detail = "";
      if (closeMicrophone && handsFree()) tell("listen");
      if (unsent) say(unsent);
      break;
    case "heard":
      hearing = message.kind !== "over";
      words.heard(message.kind, message.text);
      break;
    case "asked":
      answering = true;
      muted = false;
      words.asked(message.text);
      break;
    case "words":
      words.add(message.text, message.anew);
      break;
    case "sound":
      format = message;
      break;
    case "hushed":
      muted = false;
      player?.stop();
      break;
    case "answered":
      answering = false;
      words.answered(message.outcome, message.message);
      break;
    case "failed":
      problem(message.message);
      break;
  }
  show();
}

function sound(data) {
  if (!muted && format && player) player.play(new Int16Array(data), format.sample_rate, format.channels);
}

function offer(message) {
  for (const [id, kind] of [["model", "language"], ["stt", "stt"], ["tts", "tts"]]) {
    const list = $(`#${id}`);
    const before = list.value || message.chosen[id];
    list.replaceChildren(new Option("The usual one", ""));
    for (const model of message[kind]) {
      const size = model.size ? `, ${Math.round(model.size / 1e6)} MB` : "";
      list.append(new Option(model.here ? model.name : `${model.name} (to be fetched${size})`, model.name));
    }
    if (before && ![...list.options].some((each) => each.value === before)) list.append(new Option(before, before));
    list.value = before;
  }
}

// The conversation.

async function start(aloud) {
  problem("");
  note("");
  if (phase === "over") {
    connect();
    await new Promise((done) => {
      socket.addEventListener("message", done, { once: true });
      socket.addEventListener("close", done, { once: true });
    });
    if (phase !== "off") return;
  }
  phase = "opening";
  show();
  context ??= new AudioContext();
  await context.resume();
  player ??= new Player(context, show);
  if (aloud && !asking) await listen();
  // It may have ended meanwhile.
  if (phase !== "opening") return;
  tell("start", { model: $("#model").value, stt: $("#stt").value, tts: $("#tts").value, barge_in: bargeIn() });
  show();
}

async function listen() {
  asking = true;
  show();
  try {
    closeMicrophone ??= await openMicrophone(context, heard, unplugged);
    note("");
  } catch (error) {
    note(whyNot(error));
  }
  asking = false;
  // It may have ended while somebody was asked.
  if (phase !== "opening" && phase !== "on") closeIt();
  if (phase === "on" && closeMicrophone && handsFree()) tell("listen");
  show();
}

function closeIt() {
  closeMicrophone?.();
  closeMicrophone = null;
  $("#level").style.transform = "scaleX(0)";
}

// The first words begin the conversation; nobody is asked for a microphone to type.
function say(text) {
  if (phase !== "on") {
    unsent = text;
    if (phase === "off" || phase === "over") start(false);
    show();
    return;
  }
  unsent = "";
  $("#typed").value = "";
  muted = true;
  player?.stop();
  tell("say", { text });
}

function heard(pcm, level) {
  $("#level").style.transform = `scaleX(${Math.min(1, Math.sqrt(level) * 1.6).toFixed(3)})`;
  if (phase !== "on" || socket?.readyState !== WebSocket.OPEN) return;
  const wanted = handsFree() ? bargeIn() || !(answering || player.active) : pressed;
  if (wanted) socket.send(pcm);
}

function unplugged() {
  closeIt();
  pressed = false;
  if (phase === "on") tell("deafen");
  note("The microphone is gone. Plug it in and try again, or type below.");
  show();
}

function over() {
  phase = "over";
  hearing = answering = pressed = muted = false;
  unsent = "";
  player?.stop();
  closeIt();
  words.heard("over", "");
  show();
}

function hush() {
  muted = true;
  player?.stop();
  tell("hush");
}

function press() {
  if (pressed || phase !== "on" || handsFree() || !closeMicrophone) return;
  pressed = true;
  muted = true;
  player?.stop();
  tell("press");
  show();
}

function release() {
  if (!pressed) return;
  pressed = false;
  tell("release");
  show();
}

// What people press.

$("#start").addEventListener("click", () => start(true));
$("#microphone").addEventListener("click", listen);
$("#note-away").addEventListener("click", () => {
  note("");
  $("#typed").focus();
});
$("#end").addEventListener("click", () => {
  const left = socket;
  socket = null;
  left?.close();
  over();
  $("#start").focus();
});
$("#hush").addEventListener("click", hush);

const button = $("#press");
button.addEventListener("pointerdown", (event) => {
  if (event.button) return;
  button.setPointerCapture(event.pointerId);
  press();
});
for (const kind of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) button.addEventListener(kind, release);
button.addEventListener("contextmenu", (event) => event.preventDefault());
button.addEventListener("keydown", (event) => {
  if (event.key !== " " && event.key !== "Enter") return;
  event.preventDefault();
  if (!event.repeat) press();
});
button.addEventListener("keyup", (event) => {
  if (event.key === " " || event.key === "Enter") release();
});

for (const each of document.querySelectorAll("[name=mode]")) {
  each.addEventListener("change", () => {
    release();
    hearing = false;
    if (phase === "on" && closeMicrophone) tell(handsFree() ? "listen" : "deafen");
    show();
  });
}

$("#typing").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("#typed").value.trim();
  if (text && !unsent) say(text);
});

addEventListener("pagehide", () => socket?.close());
connect();
