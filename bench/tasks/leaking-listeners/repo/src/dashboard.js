'use strict';

const { Widget } = require('./widget.js');

/** The widgets that a user has chosen. */
class Dashboard {
  constructor(feed, clock) {
    this.feed = feed;
    this.clock = clock;
    this.widgets = new Map();
  }

  /** Show these figures, and no others. */
  show(names) {
    for (const name of names) {
      const widget = new Widget(this.feed, name, this.clock);
      widget.open();
      this.widgets.set(name, widget);
    }
    for (const [name] of this.widgets) {
      if (!names.includes(name)) {
        this.widgets.delete(name);
      }
    }
  }

  values() {
    return Object.fromEntries([...this.widgets].map(([name, widget]) => [name, widget.value]));
  }

  close() {
    for (const widget of this.widgets.values()) {
      widget.close();
    }
    this.widgets.clear();
  }
}

module.exports = { Dashboard };
