'use strict';

const assert = require('node:assert');
const { EventEmitter } = require('node:events');
const test = require('node:test');

const { Dashboard } = require('../src/dashboard.js');

/** Counts timers; no time passes. */
class Clock {
  constructor() {
    this.running = new Set();
    this.last = 0;
  }

  setInterval() {
    this.running.add(++this.last);
    return this.last;
  }

  clearInterval(timer) {
    this.running.delete(timer);
  }
}

function made() {
  const feed = new EventEmitter();
  const clock = new Clock();
  const held = () => [feed.listenerCount('value'), clock.running.size];
  return { feed, clock, held, dashboard: new Dashboard(feed, clock) };
}

test('values are shown', () => {
  const { feed, dashboard } = made();
  dashboard.show(['cpu', 'disk']);
  feed.emit('value', 'cpu', 7);
  assert.deepStrictEqual(dashboard.values(), { cpu: 7, disk: null });
});

test('a refresh keeps what is shown, and what was seen', () => {
  const { feed, held, dashboard } = made();
  dashboard.show(['cpu', 'disk']);
  feed.emit('value', 'cpu', 7);
  for (let round = 0; round < 20; round++) {
    dashboard.show(['cpu', 'disk']);
  }
  assert.deepStrictEqual(held(), [2, 2]);
  assert.deepStrictEqual(dashboard.values(), { cpu: 7, disk: null });
});

test('what is no longer shown is let go', () => {
  const { held, dashboard } = made();
  dashboard.show(['cpu', 'disk', 'net']);
  dashboard.show(['net']);
  assert.deepStrictEqual(held(), [1, 1]);
});

test('nothing is left of a closed dashboard', () => {
  const { held, dashboard } = made();
  dashboard.show(['cpu', 'disk']);
  dashboard.close();
  dashboard.close();
  assert.deepStrictEqual(held(), [0, 0]);
});
