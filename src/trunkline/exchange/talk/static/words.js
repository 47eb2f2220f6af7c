// What was said, as a list: you, the agent, and notes.

// Older entries go: a page that is open for days stays quick.
const MOST = 400;

export class Words {
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
    this.mine = null;
    this.answer = null;
  }

  // What was understood so far; over with no text: nothing was said.
  heard(kind, text) {
    if (kind === "over") {
      if (text) {
        this.mine ??= this.entry("you", "You");
        this.text(this.mine, text);
        this.mine.classList.remove("unsure");
      } else {
        this.mine?.remove();
      }
      this.mine = null;
      this.empty.hidden = this.list.children.length > 0;
      return;
    }
    if (!text) return;
    this.mine ??= this.entry("you unsure", "You");
    this.text(this.mine, text);
  }

  // The agent was told this, spoken or typed.
  asked(text) {
    const last = [...this.list.querySelectorAll(".you:not(.unsure)")].at(-1);
    if (last?.querySelector("p").textContent !== text || last !== this.list.lastElementChild) {
      this.text(this.entry("you", "You"), text);
    }
    this.answer = this.entry("agent pending", "Agent");
  }

  add(text, anew) {
    this.answer ??= this.entry("agent pending", "Agent");
    const place = this.answer.querySelector("p");
    if (anew) place.textContent = "";
    place.append(text);
    this.scroll();
  }

  answered(outcome, message) {
    const answer = this.answer;
    this.answer = null;
    if (!answer) return;
    answer.classList.remove("pending");
    if (outcome === "cancelled") answer.classList.add("cut");
    if (!answer.querySelector("p").textContent && outcome !== "success") answer.remove();
    if (outcome === "error") this.note(message || "The answer failed.");
    else if (outcome === "cancelled" && answer.isConnected) answer.append(small("interrupted"));
  }

  note(text) {
    this.text(this.entry("note", ""), text);
  }

  entry(kind, who) {
    const item = document.createElement("li");
    item.className = kind;
    if (who) {
      const name = document.createElement("strong");
      name.textContent = who;
      item.append(name);
    }
    item.append(document.createElement("p"));
    this.list.append(item);
    while (this.list.children.length > MOST) this.list.firstElementChild.remove();
    this.empty.hidden = true;
    return item;
  }

  text(item, text) {
    item.querySelector("p").textContent = text;
    this.scroll();
  }

  scroll() {
    this.list.scrollTop = this.list.scrollHeight;
  }
}

function small(text) {
  const made = document.createElement("small");
  made.textContent = text;
  return made;
}
