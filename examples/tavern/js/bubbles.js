// Speech bubbles over their speakers, as the words come.

// How long a bubble stays when all is said: a moment, and so much for each character.
const STAY_MS = 3000;
const CHARACTER_MS = 55;
// How far it is at least to the picture's edge, and to the next bubble.
const EDGE = 8;

export class Bubbles {
  constructor(scene) {
    this.scene = scene;
    this.box = document.getElementById("bubbles");
    this.shown = new Map();
    scene.moved = () => this.arrange();
    addEventListener("resize", () => this.arrange());
  }

  // Somebody is about to speak.
  think(character) {
    const bubble = this.of(character);
    const dots = document.createElement("span");
    dots.className = "dots";
    dots.append(...[1, 2, 3].map(() => document.createElement("i")));
    bubble.replaceChildren(dots);
    this.arrange();
  }

  say(character, text) {
    this.of(character).textContent = text;
    this.arrange();
  }

  // All is said: it stays as long as it takes to read.
  done(character) {
    const entry = this.shown.get(character);
    if (!entry) return;
    const text = entry.bubble.querySelector(".dots") ? "" : entry.bubble.textContent;
    if (!text) return this.drop(character);
    entry.timer = setTimeout(
      () => {
        entry.bubble.classList.add("fading");
        entry.timer = setTimeout(() => this.drop(character), 900);
      },
      STAY_MS + CHARACTER_MS * text.length,
    );
  }

  drop(character) {
    const entry = this.shown.get(character);
    clearTimeout(entry?.timer);
    entry?.bubble.remove();
    this.scene.mark(character, "bubbled", false);
    this.shown.delete(character);
  }

  of(character) {
    let entry = this.shown.get(character);
    if (!entry) {
      const bubble = document.createElement("div");
      bubble.className = "bubble";
      bubble.dataset.of = character.id;
      this.box.append(bubble);
      this.shown.set(character, (entry = { bubble, timer: 0 }));
      this.scene.mark(character, "bubbled", true);
    }
    clearTimeout(entry.timer);
    entry.bubble.classList.remove("fading");
    return entry.bubble;
  }

  // Each over its speaker, inside of the picture and beside the others; its tip points to the mouth. Of those out of
  // sight nothing is shown, and on a phone only of the one who is looked at.
  arrange() {
    const row = [];
    let width = 0;
    for (const [character, { bubble }] of this.shown) {
      const [x, y, whole] = this.scene.place(character.mouth);
      width = whole;
      bubble.hidden = x < -20 || x > width + 20 || (this.scene.narrow.matches && character !== this.scene.character);
      if (bubble.hidden) continue;
      bubble.style.top = `${Math.max(y - 12, bubble.offsetHeight + EDGE)}px`;
      row.push({ bubble, x, size: bubble.offsetWidth, left: x - bubble.offsetWidth / 2 });
    }
    row.sort((one, other) => one.x - other.x);
    apart(row, width);
    for (const { bubble, x, size, left } of row) {
      bubble.style.left = `${left + size / 2}px`;
      bubble.style.setProperty("--tip", `${Math.min(Math.max(x - left, 16), size - 16)}px`);
    }
  }
}

// Neighbours that would lie on each other go half of the way each; what that brings over an edge goes back.
function apart(row, width) {
  row.slice(1).forEach((other, at) => {
    const over = row[at].left + row[at].size + EDGE - other.left;
    if (over <= 0) return;
    row[at].left -= over / 2;
    other.left += over / 2;
  });
  let free = EDGE;
  for (const each of row) {
    each.left = Math.max(each.left, free);
    free = each.left + each.size + EDGE;
  }
  free = width - EDGE;
  for (const each of row.toReversed()) {
    each.left = Math.min(each.left, free - each.size);
    free = each.left - EDGE;
  }
}
