// Speech bubbles over their speakers, as the words come.

// How long a bubble stays when all is said: a moment, and so much for each character.
const STAY_MS = 3000;
const CHARACTER_MS = 55;

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

  // Each over its speaker, inside of the picture; its tip points to the mouth. Of those out of
  // sight nothing is shown, and on a phone only of the one who is looked at.
  arrange() {
    for (const [character, { bubble }] of this.shown) {
      const [x, y, width] = this.scene.place(character.mouth);
      const half = bubble.offsetWidth / 2;
      const middle = Math.min(Math.max(x, half + 8), width - half - 8);
      bubble.style.left = `${middle}px`;
      bubble.style.top = `${Math.max(y - 12, bubble.offsetHeight + 8)}px`;
      bubble.style.setProperty("--tip", `${Math.min(Math.max(x - middle + half, 16), 2 * half - 16)}px`);
      bubble.hidden = x < -20 || x > width + 20 || (this.scene.narrow.matches && character !== this.scene.character);
    }
  }
}
