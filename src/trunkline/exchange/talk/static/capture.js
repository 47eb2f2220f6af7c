// Runs in the audio thread: takes what the microphone gives, at whatever rate, and hands on 16 kHz, 16 bits, one channel.

const RATE = 16000;
// Samples of a message: 40 ms.
const PIECE = 640;
// How far the filter looks to each side, in samples of the slower of the two rates.
const REACH = 16;
// Places between two samples that the filter is computed for.
const PHASES = 64;

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.step = sampleRate / RATE;
    const slow = Math.max(1, this.step);
    this.half = Math.ceil(REACH * slow);
    this.filters = Array.from({ length: PHASES + 1 }, (_, phase) => filter(phase / PHASES, this.half, slow));
    this.held = new Float32Array(this.half * 4 + 4096);
    this.count = 0;
    this.place = this.half;
    this.piece = new Int16Array(PIECE);
    this.filled = 0;
    this.energy = 0;
  }

  process([input]) {
    if (!input.length) return true;
    const size = input[0].length;
    for (let at = 0; at < size; at++) {
      let sum = 0;
      for (const channel of input) sum += channel[at];
      this.held[this.count + at] = sum / input.length;
    }
    this.count += size;
    while (this.place + this.half < this.count) {
      this.give(this.at(this.place));
      this.place += this.step;
    }
    const done = Math.floor(this.place) - this.half;
    if (done > 0) {
      this.held.copyWithin(0, done, this.count);
      this.count -= done;
      this.place -= done;
    }
    return true;
  }

  at(place) {
    const whole = Math.floor(place);
    const taps = this.filters[Math.round((place - whole) * PHASES)];
    let sum = 0;
    for (let tap = 0; tap < taps.length; tap++) sum += this.held[whole - this.half + 1 + tap] * taps[tap];
    return sum;
  }

  give(value) {
    const limited = Math.max(-1, Math.min(1, value));
    this.energy += limited * limited;
    this.piece[this.filled++] = Math.round(limited * 32767);
    if (this.filled === PIECE) {
      this.port.postMessage({ pcm: this.piece.buffer, level: Math.sqrt(this.energy / PIECE) }, [this.piece.buffer]);
      this.piece = new Int16Array(PIECE);
      this.filled = this.energy = 0;
    }
  }
}

// A windowed sinc that lets pass what both rates can carry, for a place between two samples.
function filter(offset, half, slow) {
  const taps = new Float32Array(half * 2);
  const cut = 0.92 / slow;
  let total = 0;
  for (let tap = 0; tap < taps.length; tap++) {
    const x = tap - half + 1 - offset;
    const sinc = x === 0 ? cut : Math.sin(Math.PI * cut * x) / (Math.PI * x);
    taps[tap] = sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / (half + 1)));
    total += taps[tap];
  }
  return taps.map((value) => value / total);
}

registerProcessor("capture", Capture);
