// A message tried on a graph as it stands in the editor.

import { complain, post, remove } from "./api.js";
import { coded, el, fill } from "./dom.js";
import { picture } from "./graph-picture.js";

const byId = (id) => document.getElementById(id);

const time = (ms) => ms >= 1000 ? `${(ms / 1000).toFixed(1)} s`
  : ms >= 10 ? `${ms.toFixed(0)} ms` : ms >= 0.1 ? `${ms.toFixed(1)} ms` : "< 0.1 ms";

/** Lets the form try messages. `text()` gives the graph; `go(node)` goes to where a node stands. */
export function tries(base, text, go) {
  const form = byId("try"), stop = byId("stop"), trying = byId("trying");
  const drawing = picture(byId("turn"), byId("turn-zoom"));

  const busy = (is) => {
    byId("go").disabled = is;
    stop.hidden = !is;
  };

  const step = ({ node, type, exit, ms, decided }) => el("tr", {},
    el("td", {}, el("button", { type: "button", class: "link", on: { click: () => go(node) } }, node),
      el("span", { class: "hint block" }, type)),
    el("td", {}, exit || el("span", { class: "tag bad" }, "broke off"),
      decided ? el("span", { class: "hint block" }, decided) : null),
    el("td", { class: "number" }, time(ms)));

  const called = ({ name, arguments: given }) => el("p", { class: "hint" }, "called ", el("code", {}, name),
    Object.keys(given).length ? [" with ", el("code", {}, JSON.stringify(given))] : null);

  const show = (turn) => {
    const said = turn.answer
      ? el("p", { class: "said" }, turn.answer)
      : el("p", { class: "said silent" }, turn.outcome === "cancelled" ? "It was stopped." : "It said nothing.");
    fill(byId("answer"), said, turn.error ? el("p", { class: "problem" }, coded(turn.error)) : null, turn.tools.map(called));
    fill(byId("path"), turn.path.map(step));
    const nodes = turn.path.map(({ node }) => node);
    byId("tried").hidden = false;
    if (turn.svg) drawing.show(turn.svg, `The turn went through ${nodes.join(", ")}.`);
    else drawing.tell("No node ran.");
    trying.textContent = turn.error ? "It failed." : `${time(turn.ms)}, ${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`;
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    complain(null);
    busy(true);
    trying.textContent = "At work…";
    try {
      show(await post(`${base}/try`, { text: text(), message: byId("message").value, engine: byId("engine").value }));
    } catch (error) {
      trying.textContent = "";
      complain(error);
    } finally {
      busy(false);
    }
  });
  stop.addEventListener("click", () => remove(`${base}/try`).catch(complain));
}
