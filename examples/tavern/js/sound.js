// What is heard: voices from the server, a lute made here, and the microphone.

// How far ahead of now a sound begins, in seconds: so much time the browser needs to be on time.
const AHEAD = 0.06;

// Opens the browser's sound. Only possible after somebody has clicked or pressed a key.
let opened = null;
export function context() {
  opened ??= new AudioContext();
  if (opened.state === "suspended") opened.resume();
  return opened;
}

// Plays the pieces of one voice one after the other.
export class Player {
  constructor(silent) {
    this.silent = silent;
    this.sources = new Set();
    this.next = 0;
    this.seconds = 0;
    // Of the turn: how much of it is on its way, and when its first sample was played, had there been no gaps.
    this.length = 0;
    this.zero = 0;
  }

  // Another turn begins.
  restart() {
    this.length = 0;
  }

  // How much of the turn has been played, in milliseconds; null while nothing is.
  get played() {
    return this.active ? 1000 * (context().currentTime - this.zero) : null;
  }

  get active() {
    return this.sources.size > 0;
  }

  play({ pcm, sampleRate, channels }) {
    const audio = context();
    const length = Math.floor(pcm.length / channels);
    const buffer = audio.createBuffer(channels, length, sampleRate);
    for (let channel = 0; channel < channels; channel++) {
      const out = buffer.getChannelData(channel);
      for (let at = 0; at < length; at++) out[at] = pcm[at * channels + channel] / 32768;
    }
    const source = new AudioBufferSourceNode(audio, { buffer });
    source.connect(audio.destination);
    const begin = Math.max(this.next, audio.currentTime + AHEAD);
    this.next = begin + buffer.duration;
    this.zero = begin - this.length;
    this.length += buffer.duration;
    this.sources.add(source);
    source.onended = () => {
      this.seconds += buffer.duration;
      if (this.sources.delete(source) && !this.active) this.silent();
    };
    source.start(begin);
  }

  stop() {
    for (const source of this.sources) source.stop();
    this.next = 0;
  }
}

// A slow dance for the lute, in D minor: [beats from the beginning, half tones over the lowest D, beats long].
const BEAT = 0.34;
const BARS = 16;
const TUNE = (() => {
  const chords = [0, 0, -4, -4, 3, -2, 0, 0, 5, 5, 0, 0, -2, -2, 0, 0];
  const song = [
    24, 26, 27, 24, 20, 24, 26, 24, 27, 31, 22, 26, 24, 19, 15, 17, 29, 27, 32, 29, 27, 24, 26, 27, 22, 26, 29, 26, 24,
    23, 24, 24,
  ];
  const notes = [];
  chords.forEach((root, bar) => {
    [0, 7, 12, 7].forEach((step, beat) => notes.push([bar * 4 + beat, root + step, 3]));
    notes.push([bar * 4, song[2 * bar], 3], [bar * 4 + 2, song[2 * bar + 1], 3]);
    if (bar % 4 === 1) notes.push([bar * 4 + 3, song[2 * bar + 1] + 3, 2]);
  });
  return notes;
})();
const LOWEST = 146.83;
const LOUD = 0.32;
const QUIET = 0.1;

export class Lute {
  constructor(ended) {
    this.ended = ended;
    this.gain = null;
    this.strings = new Map();
  }

  get playing() {
    return this.gain !== null;
  }

  play() {
    if (this.playing) return;
    const audio = context();
    const gain = new GainNode(audio, { gain: LOUD });
    gain.connect(audio.destination);
    const begin = audio.currentTime + AHEAD;
    for (const [beat, tone, long] of TUNE) {
      const source = new AudioBufferSourceNode(audio, { buffer: this.string(audio, tone) });
      source.connect(gain);
      source.start(begin + beat * BEAT);
      source.stop(begin + (beat + long) * BEAT);
    }
    this.gain = gain;
    this.timer = setTimeout(() => this.stop(), 1000 * (BARS * 4 + 2) * BEAT);
  }

  // Quieter while somebody speaks.
  yield(speaks) {
    this.gain?.gain.setTargetAtTime(speaks ? QUIET : LOUD, context().currentTime, 0.2);
  }

  stop() {
    if (!this.playing) return;
    const gain = this.gain;
    this.gain = null;
    clearTimeout(this.timer);
    gain.gain.setTargetAtTime(0, context().currentTime, 0.15);
    setTimeout(() => gain.disconnect(), 1500);
    this.ended();
  }

  // A plucked string (Karplus and Strong): noise that goes round and loses its edges.
  string(audio, tone) {
    let buffer = this.strings.get(tone);
    if (buffer) return buffer;
    const rate = audio.sampleRate;
    const round = Math.round(rate / (LOWEST * 2 ** (tone / 12)));
    buffer = audio.createBuffer(1, Math.ceil(rate * 1.6), rate);
    const out = buffer.getChannelData(0);
    for (let at = 0; at < out.length; at++) {
      out[at] =
        at < round ? Math.random() * 2 - 1 : 0.4985 * (out[at - round] + out[at - round + (at > round ? -1 : 0)]);
    }
    this.strings.set(tone, buffer);
    return buffer;
  }
}

// Opens the microphone; `heard(pcm, level)` is called with pieces of 16 kHz. Gives a function that closes it.
export async function microphone(heard) {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser gives pages no microphone.");
  const wanted = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
  const close = () => stream.getTracks().forEach((track) => track.stop());
  try {
    const audio = context();
    await audio.audioWorklet.addModule("js/capture.js");
    const source = audio.createMediaStreamSource(stream);
    const capture = new AudioWorkletNode(audio, "capture", { numberOfOutputs: 0 });
    capture.port.onmessage = ({ data }) => heard(data.pcm, data.level);
    source.connect(capture);
    return () => {
      capture.port.onmessage = null;
      source.disconnect();
      close();
    };
  } catch (error) {
    close();
    throw error;
  }
}

// What to tell somebody whose microphone cannot be used.
export function whyNot(error) {
  if (error.name === "NotAllowedError")
    return "The browser does not let this page use the microphone. Allow it in the address bar, or type.";
  if (error.name === "NotFoundError") return "No microphone was found. Plug one in and try again, or type.";
  return `The microphone cannot be used (${error.message || error.name}). You can type.`;
}
