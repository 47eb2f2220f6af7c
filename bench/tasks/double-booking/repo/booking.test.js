'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { Desk, RoomTaken } = require('./booking.js');

/** Answers after some turns of the event loop, each time as many. */
class Store {
  constructor() {
    this.bookings = [];
    this.held = new Map();
  }

  async wait(room) {
    for (let turn = 0; turn < 5; turn++) {
      await null;
    }
    await this.held.get(room);
  }

  async find(room, night) {
    await this.wait(room);
    return this.bookings.find((each) => each.room === room && each.night === night);
  }

  async save(booking) {
    await this.wait(booking.room);
    if (booking.guest === 'Broken') {
      throw new Error('the disk is full');
    }
    this.bookings.push(booking);
  }
}

test('a free room is booked', async () => {
  const desk = new Desk(new Store());
  assert.strictEqual(await desk.book(1, ['mon', 'tue'], 'Ada'), 2);
  await assert.rejects(desk.book(1, ['tue'], 'Bob'), RoomTaken);
});

test('of two at the same time, one gets the room', async () => {
  const store = new Store();
  const desk = new Desk(store);
  const done = await Promise.allSettled([desk.book(1, ['mon', 'tue'], 'Ada'), desk.book(1, ['tue', 'wed'], 'Bob')]);
  assert.deepStrictEqual(done.map((each) => each.status), ['fulfilled', 'rejected']);
  assert.ok(done[1].reason instanceof RoomTaken);
  assert.deepStrictEqual(store.bookings.map((each) => each.guest), ['Ada', 'Ada']);
});

test('another room does not wait', async () => {
  const store = new Store();
  const desk = new Desk(store);
  let release;
  store.held.set(1, new Promise((resolve) => { release = resolve; }));
  const slow = desk.book(1, ['mon'], 'Ada');
  assert.strictEqual(await desk.book(2, ['mon'], 'Bob'), 1);
  release();
  assert.strictEqual(await slow, 1);
});

test('a booking that fails does not block the room', async () => {
  const desk = new Desk(new Store());
  const [first, second] = await Promise.allSettled([desk.book(1, ['mon'], 'Broken'), desk.book(1, ['mon'], 'Bob')]);
  assert.match(first.reason.message, /disk/);
  assert.strictEqual(second.value, 1);
});
