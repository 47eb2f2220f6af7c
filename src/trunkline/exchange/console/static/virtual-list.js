// A long list of which only what can be seen, and a little around it, is in the page.
//
// The page itself scrolls. Rows have heights of their own: guessed until they were in the page once, measured since.
// What the reader looks at stays where it is, whatever happens above; who is at the end stays at the end.

/** Pixels above and below the window that are in the page, too. */
const AROUND = 600;
/** So near to the end counts as at it. */
const NEAR = 32;
/** Guesses may be so wrong that what is made does not fill the window: so often is looked again. */
const TRIES = 6;

/** A list in `place`. `make(index)` gives `{ element, update }` for a row, where `update` makes it as it is now;
 * `guess(index)` its height; `moved(atEnd)` is called when the reader comes to the end or leaves it; `edge()` gives where
 * rows go out of sight, if that is not at the lower end of the window. */
export class VirtualList {
  constructor(place, { make, guess, moved = () => {}, edge = () => window.innerHeight }) {
    Object.assign(this, { place, make, guess, moved, edge, following: true });
    this.length = 0;
    this.heights = [];
    this.tops = [0];
    this.summed = 0;
    this.rows = new Map();
    this.dirty = new Set();
    this.anchor = null;
    this.scrolled = window.scrollY;
    this.frame = 0;
    this.sizes = new ResizeObserver(() => this.draw());
    window.addEventListener("scroll", () => this.onScroll(), { passive: true });
    window.addEventListener("resize", () => this.later());
    document.addEventListener("keydown", (event) => this.onKey(event));
    // What stands around the list may grow as well.
    new ResizeObserver(() => this.later()).observe(document.body);
  }

  /** There are so many rows now, and these have changed. */
  changed(length, indexes = []) {
    for (let index = this.length; index < length; index++) this.heights[index] = this.guess(index);
    this.summed = Math.min(this.summed, this.length);
    this.length = length;
    for (const index of indexes) this.dirty.add(index);
    this.later();
  }

  /** Have a row at the top of the window. */
  show(index) {
    this.follow(false);
    this.anchor = { index, top: Math.min(96, window.innerHeight / 4) };
    this.draw(true);
    return this.rows.get(index)?.element;
  }

  /** Have the end in the window, and stay there. */
  toEnd() {
    this.follow(true);
    this.draw(true);
  }

  /** Have the beginning of the page in the window. */
  toStart() {
    this.follow(false);
    this.anchor = { index: 0, top: this.place.getBoundingClientRect().top + window.scrollY };
    this.draw(true);
  }

  /** Keep everything where it is, although a row is about to grow. */
  hold() {
    this.follow(false);
    this.scrolled = window.scrollY;
    this.anchor = this.seen();
  }

  /** Whether more than a trace of a row can be seen. */
  isSeen(index) {
    const row = this.rows.get(index);
    if (!row) return false;
    const { top, bottom } = row.element.getBoundingClientRect();
    return top < this.edge() - NEAR && bottom > NEAR;
  }

  later() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  follow(wanted) {
    if (this.following === wanted) return;
    this.following = wanted;
    this.moved(wanted);
  }

  get isNearEnd() {
    return window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - NEAR;
  }

  onScroll() {
    this.moveAlong();
    this.later();
  }

  /** Take it from where the window is now. */
  moveAlong() {
    const now = window.scrollY;
    // Only a reader goes up; growing text makes the end go down.
    if (this.isNearEnd) this.follow(true);
    else if (now < this.scrolled - 1) this.follow(false);
    this.scrolled = now;
    this.anchor = this.seen();
  }

  /** A browser would glide there, past thousands of rows. */
  onKey(event) {
    const isElsewhere = event.target.closest("input, textarea, select, dialog, [tabindex='0']");
    if (isElsewhere || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    if (event.key === "Home") this.toStart(); else this.toEnd();
  }

  /** The first row that can be seen, and where it is. */
  seen() {
    for (const [index, row] of [...this.rows].sort(([a], [b]) => a - b)) {
      const { top, bottom } = row.element.getBoundingClientRect();
      if (bottom > 0 && top < window.innerHeight) return { index, top };
    }
    // None: the reader has gone far. What should be there counts.
    if (!this.length) return null;
    const from = -this.place.getBoundingClientRect().top;
    const index = this.at(Math.max(0, from));
    return { index, top: this.top(index) - from };
  }

  /** The distance of a row from the top of the list. */
  top(index) {
    for (; this.summed < index; this.summed++) {
      this.tops[this.summed + 1] = this.tops[this.summed] + this.heights[this.summed];
    }
    return this.tops[index];
  }

  /** The row at a distance from the top. */
  at(distance) {
    this.top(this.length);
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= distance) low = middle + 1; else high = middle;
    }
    return Math.min(low, this.length - 1);
  }

  /** Bring the page up to date; with `jump`, the place to go to was just said, and may be far away. */
  draw(jump = false) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.length) return;
    // Scripts scroll between the event and the frame; held to an older place, the window would go back there.
    if (!jump && Math.abs(window.scrollY - this.scrolled) > 1) this.moveAlong();
    const start = this.place.getBoundingClientRect().top + window.scrollY;
    for (let tries = 0; tries < TRIES; tries++) {
      const wanted = this.wanted(start);
      const first = this.at(Math.max(0, wanted - AROUND));
      const last = this.at(Math.min(this.top(this.length), wanted + window.innerHeight + AROUND));
      this.fill(first, last);
      if (!this.measure() && tries) break;
      this.scroll(start);
    }
    this.scrolled = window.scrollY;
    this.anchor = this.seen();
    if (!this.following && !jump && this.isNearEnd) this.follow(true);
  }

  /** Where in the list the window should begin. */
  wanted(start) {
    if (this.following) return this.top(this.length) - window.innerHeight;
    return this.anchor ? this.top(this.anchor.index) - this.anchor.top : window.scrollY - start;
  }

  scroll(start) {
    if (this.following) {
      window.scrollTo(0, document.documentElement.scrollHeight);
    } else if (this.anchor) {
      // Where the row stands in the page counts: were the sum of heights off by a pixel, every frame would add one.
      const row = this.rows.get(this.anchor.index)?.element;
      const top = row ? row.getBoundingClientRect().top + window.scrollY : start + this.top(this.anchor.index);
      const to = Math.max(0, top - this.anchor.top);
      if (Math.abs(to - window.scrollY) > 0.5) window.scrollTo(0, to);
    }
  }

  fill(first, last) {
    for (const [index, row] of this.rows) {
      if (index >= first && index <= last) continue;
      this.sizes.unobserve(row.element);
      // Who was in it with the keyboard goes on from the list.
      if (row.element.contains(document.activeElement)) this.place.focus({ preventScroll: true });
      row.element.remove();
      this.rows.delete(index);
    }
    let before = null;
    for (let index = last; index >= first; index--) {
      let row = this.rows.get(index);
      if (!row) {
        row = this.make(index);
        this.rows.set(index, row);
        this.place.insertBefore(row.element, before);
        this.sizes.observe(row.element);
      } else if (this.dirty.has(index)) {
        row.update();
      }
      row.element.setAttribute("aria-posinset", index + 1);
      row.element.setAttribute("aria-setsize", this.length);
      before = row.element;
    }
    this.dirty.clear();
    this.place.style.paddingTop = `${this.top(first)}px`;
    this.place.style.paddingBottom = `${this.top(this.length) - this.top(last + 1)}px`;
  }

  /** Take the heights of the rows in the page; gives whether one was guessed wrong. */
  measure() {
    let changed = false;
    for (const [index, row] of this.rows) {
      const { height } = row.element.getBoundingClientRect();
      if (Math.abs(height - this.heights[index]) < 0.5) continue;
      this.heights[index] = height;
      this.summed = Math.min(this.summed, index);
      changed = true;
    }
    return changed;
  }
}
