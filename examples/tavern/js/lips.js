// A mouth that follows the voice, by the visemes that come with it.

// How wide and how high the mouth is for each viseme, of its size at rest.
const SHAPES = {
  sil: [1, 0.6],
  PP: [0.95, 0.3],
  FF: [1.05, 0.6],
  TH: [1, 1],
  DD: [1, 1.1],
  kk: [1, 1.4],
  CH: [0.8, 1.5],
  SS: [1.15, 0.8],
  nn: [1, 1],
  RR: [0.85, 1.3],
  aa: [1.05, 2.9],
  E: [1.25, 2],
  ih: [1.3, 1.4],
  oh: [0.85, 2.5],
  ou: [0.65, 1.8],
};

export class Lips {
  constructor(character, player) {
    this.person = document.getElementById(character.id);
    this.mouth = this.person.querySelector(".mouth");
    this.player = player;
    this.marks = [];
    this.running = this.heard = false;
  }

  follow(marks) {
    this.marks.push(...marks.filter(({ kind }) => kind === "viseme"));
    if (this.running || !this.marks.length) return;
    this.running = true;
    requestAnimationFrame(() => this.step());
  }

  // The sound comes behind its marks. When they are over, or it is, so is the movement.
  step() {
    const now = this.player.played;
    if (now !== null) {
      this.heard = true;
      while (this.marks.length && this.marks[0].endMs <= now) this.marks.shift();
    }
    const [next] = this.marks;
    if (!next || (now === null && this.heard)) return this.stop();
    if (now !== null) {
      const viseme = next.startMs <= now ? next.text : "sil";
      const [wide, high] = SHAPES[viseme] ?? SHAPES.sil;
      this.person.classList.add("lips");
      this.person.dataset.viseme = viseme;
      this.mouth.style.transform = `scale(${wide}, ${high})`;
    }
    requestAnimationFrame(() => this.step());
  }

  stop() {
    this.marks = [];
    this.running = this.heard = false;
    this.person.classList.remove("lips");
    this.mouth.style.transform = "";
  }
}
