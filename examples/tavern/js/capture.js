// Runs in the audio thread: takes what the microphone gives, at whatever rate, and hands on 16 kHz, 16 bits, one
// channel.

const RATE = 16000;
// Samples of a message: 40 ms.
const PIECE = 640;
// The filter looks so far to each side, in samples of 16 kHz.
const REACH = 8;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = sampleRate / RATE;
    this.half = Math.ceil(REACH * Math.max(1, this.step));
    this.held = new Float32Array(4 * this.half + 4096);
    this.count = 0;
    this.place = this.half;
    this.piece = new Int16Array(PIECE);
    this.filled = 0;
    this.energy = 0;
  }

  process([input]) {
    if (!input.length) return true;
    const [samples] = input;
    this.held.set(samples, this.count);
    this.count += samples.length;
    for (; this.place + this.half < this.count; this.place += this.step) this.give(this.at(this.place));
    const done = Math.floor(this.place) - this.half;
    this.held.copyWithin(0, done, this.count);
    this.count -= done;
    this.place -= done;
    return true;
  }

  // The sound at a place between samples, without what 16 kHz cannot carry: a windowed sinc.
  at(place) {
    const whole = Math.floor(place);
    const cut = 0.9 / Math.max(1, this.step);
    let sum = 0;
    for (let tap = whole - this.half + 1; tap <= whole + this.half; tap++) {
      const x = place - tap;
      const sinc = x === 0 ? cut : Math.sin(Math.PI * cut * x) / (Math.PI * x);
      sum += this.held[tap] * sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / (this.half + 1)));
    }
    return sum;
  }

  give(value) {
    const limited = Math.max(-1, Math.min(1, value));
    this.energy += limited * limited;
    this.piece[this.filled++] = Math.round(limited * 32767);
    if (this.filled < PIECE) return;
    this.port.postMessage({ pcm: this.piece, level: Math.sqrt(this.energy / PIECE) });
    this.filled = this.energy = 0;
  }
}

registerProcessor("capture", Capture);
