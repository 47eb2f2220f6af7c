'use strict';

/** Shows the latest value of one figure. */
class Widget {
  constructor(feed, name, clock) {
    this.feed = feed;
    this.name = name;
    this.clock = clock;
    this.value = null;
  }

  open() {
    this.feed.on('value', this.update.bind(this));
    this.timer = this.clock.setInterval(() => this.blink(), 1000);
  }

  update(name, value) {
    if (name === this.name) {
      this.value = value;
    }
  }

  blink() {
    this.lit = !this.lit;
  }

  close() {
    this.feed.off('value', this.update.bind(this));
    this.clock.clearInterval(this.timer);
  }
}

module.exports = { Widget };
