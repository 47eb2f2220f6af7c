// The picture: who is picked, talks, thinks or listens, and the things that move.

const SVG = "http://www.w3.org/2000/svg";
// Where mugs stand on the table; then they are stacked on nobody, and the oldest is taken away.
const PLACES = [
  [730, 560],
  [880, 560],
  [680, 545],
  [930, 545],
  [770, 572],
];
// A phone, also one that lies on its side.
const NARROW = "(max-width: 700px), (max-height: 600px)";
// Of a narrow window: how much of the picture is seen, and how long it takes to look elsewhere.
const VIEW = 640;
const TURN_MS = 500;
// A log burns down.
const FIRE_MS = 60_000;

export class Scene {
  constructor(characters, picked) {
    this.svg = document.getElementById("scene");
    this.mugs = document.getElementById("mugs");
    this.count = 0;
    this.narrow = matchMedia(NARROW);
    this.character = characters[0];
    for (const character of characters) {
      const person = document.getElementById(character.id);
      person.addEventListener("click", () => picked(character));
      person.addEventListener("keydown", (event) => {
        if (event.key === "Enter") picked(character);
      });
    }
    this.narrow.addEventListener("change", () => this.look(this.character, true));
    this.look(this.character, true);
  }

  pick(character) {
    for (const each of document.querySelectorAll(".person, .who button")) {
      each.setAttribute("aria-pressed", String((each.dataset.who ?? each.id) === character.id));
    }
    this.look(character, false);
  }

  // Let people have one of these marks, or none: talking, thinking, listening, playing.
  mark(character, name, on) {
    document.getElementById(character.id).classList.toggle(name, on);
  }

  // On a phone only a part of the room is seen: the one where the character is.
  look(character, atOnce) {
    this.character = character;
    const to = this.narrow.matches
      ? [Math.min(Math.max(character.middle - VIEW / 2, 0), 1200 - VIEW), 0, VIEW, VIEW]
      : [0, 0, 1200, 640];
    const from = this.svg.getAttribute("viewBox").split(" ").map(Number);
    const begun = performance.now();
    const step = (now) => {
      if (this.character !== character) return;
      const done = atOnce ? 1 : Math.min((now - begun) / TURN_MS, 1);
      const eased = done * done * (3 - 2 * done);
      this.svg.setAttribute("viewBox", from.map((value, at) => value + (to[at] - value) * eased).join(" "));
      this.moved?.();
      if (done < 1) requestAnimationFrame(step);
    };
    if (atOnce) step(begun);
    else requestAnimationFrame(step);
  }

  // Where a place of the picture is in the window, from the picture's own corner.
  place([x, y]) {
    const at = new DOMPoint(x, y).matrixTransform(this.svg.getScreenCTM());
    const corner = this.svg.getBoundingClientRect();
    return [at.x - corner.left, at.y - corner.top, corner.width];
  }

  // What moves. The state is also in the page's data, for whoever looks at it with a program.
  move(deed) {
    const data = document.body.dataset;
    if (deed === "open" || deed === "close") data.door = deed === "open" ? "open" : "closed";
    else if (deed === "mug") this.serve();
    else if (deed === "clear") this.clear();
    else if (deed === "fire") {
      data.fire = "high";
      clearTimeout(this.burning);
      this.burning = setTimeout(() => (data.fire = "low"), FIRE_MS);
    }
  }

  serve() {
    if (this.mugs.children.length >= PLACES.length) this.mugs.firstElementChild.remove();
    const [x, y] = PLACES[this.count++ % PLACES.length];
    const spot = document.createElementNS(SVG, "g");
    spot.setAttribute("transform", `translate(${x} ${y})`);
    const mug = document.createElementNS(SVG, "use");
    mug.setAttribute("href", "#mug");
    mug.classList.add("mug", "coming");
    spot.append(mug);
    this.mugs.append(spot);
    // It slides from the counter: so it must have been there for a moment.
    requestAnimationFrame(() => requestAnimationFrame(() => mug.classList.remove("coming")));
    document.body.dataset.mugs = String(this.mugs.children.length);
  }

  clear() {
    for (const spot of [...this.mugs.children]) {
      spot.firstElementChild.classList.add("going");
      setTimeout(() => spot.remove(), 900);
    }
    this.count = 0;
    document.body.dataset.mugs = "0";
  }
}
