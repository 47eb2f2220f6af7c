// Plays sounds one after the other, without gaps, and falls silent at once.

// How far ahead of now the first sound begins, in seconds: so much time the browser needs to be on time.
const AHEAD = 0.06;

export class Player {
  constructor(context, changed) {
    this.context = context;
    this.changed = changed;
    this.sources = new Set();
    this.next = 0;
    this.seconds = 0;
  }

  get active() {
    return this.sources.size > 0;
  }

  play(samples, rate, channels) {
    const length = samples.length / channels;
    if (!length) return;
    const buffer = this.context.createBuffer(channels, length, rate);
    for (let channel = 0; channel < channels; channel++) {
      const out = buffer.getChannelData(channel);
      for (let at = 0; at < length; at++) out[at] = samples[at * channels + channel] / 32768;
    }
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    const begin = Math.max(this.next, this.context.currentTime + AHEAD);
    source.onended = () => {
      if (!this.sources.delete(source)) return;
      this.seconds += buffer.duration;
      source.disconnect();
      this.changed();
    };
    source.start(begin);
    this.next = begin + buffer.duration;
    this.sources.add(source);
    this.changed();
  }

  stop() {
    if (!this.active) return;
    for (const source of this.sources) {
      source.stop();
      source.disconnect();
    }
    this.sources.clear();
    this.next = 0;
    this.changed();
  }
}
