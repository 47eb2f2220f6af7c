// Elements without markup: whatever is put into them stays text.

/** An element. Attributes are set as they are; `true` sets one without a value, `null` and `false` leave it out;
 * `on` has what is called for events, `class` a string. Children are elements, strings, or nothing. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for a drawing. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") {
      for (const [event, call] of Object.entries(value)) made.addEventListener(event, call);
    } else if (value === true) {
      made.setAttribute(key, "");
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** A sentence with what is in backticks set as code. */
export function coded(text) {
  const parts = String(text).split("`");
  // Where one is left over, nobody can say what was meant.
  return parts.length % 2 ? parts.map((part, index) => (index % 2 ? el("code", {}, part) : part)) : [String(text)];
}

/** A moment, in milliseconds since 1970, as people say it; the whole of it is in its title. */
export function moment(at, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - at) / 1000));
  const [count, unit] = seconds < 60 ? [seconds, "s"] : seconds < 3600 ? [Math.floor(seconds / 60), "min"]
    : seconds < 86400 ? [Math.floor(seconds / 3600), "h"] : [Math.floor(seconds / 86400), "d"];
  const when = new Date(at);
  const attributes = { class: "ago", datetime: when.toISOString(), title: when.toLocaleString() };
  return el("time", attributes, `${count} ${unit} ago`);
}

/** Have all moments in the page say how long ago they are now. */
export function aged() {
  for (const each of document.querySelectorAll("time.ago")) {
    each.textContent = moment(Date.parse(each.dateTime)).textContent;
  }
}

/** Replace what is in an element. */
export function fill(place, ...children) {
  place.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** Begins a request each time; what is given back then says whether none that began later was answered before. */
export function latest() {
  let begun = 0, answered = 0;
  return () => {
    const mine = ++begun;
    return () => mine >= answered && (answered = mine) > 0;
  };
}
