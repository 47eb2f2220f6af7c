'use strict';

class RoomTaken extends Error {}

/** Books rooms. The store is asynchronous: `find(room, night)` and `save(booking)`. */
class Desk {
  constructor(store) {
    this.store = store;
  }

  async book(room, nights, guest) {
    for (const night of nights) {
      if (await this.store.find(room, night)) {
        throw new RoomTaken(`room ${room} is taken on ${night}`);
      }
    }
    for (const night of nights) {
      await this.store.save({ room, night, guest });
    }
    return nights.length;
  }
}

module.exports = { Desk, RoomTaken };
