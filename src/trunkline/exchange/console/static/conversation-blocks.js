// Blocks as rows of the page.

import { durationOf, toolCard } from "./conversation-tool.js";
import { coded, el, fill } from "./dom.js";
import { markdownView } from "./markdown.js";
import { outcomeTag, outcomeWord } from "./outcomes.js";

const MARKS = { completed: "✓", in_progress: "▸", pending: "○" };
const STEPS = { completed: "done", in_progress: "in progress", pending: "to do" };
export const MODES = {
  default: "asks first", auto_edit: "edits files without asking", yolo: "never asks", plan: "only plans",
};

/** A row for a block. `page`: `agent`, `nameOf(path)` for files that were brought, `grown()` before a row grows, and
 * `fork(seq)` for those who may. */
export function rowOf(block, page) {
  const { body, update, label } = KINDS[block.kind](block, page);
  const number = el("a", { class: "event-number", href: `#e${block.seq}`, "aria-label": `Event ${block.seq}` },
    `#${block.seq}`);
  const element = el("article", { class: `row ${block.kind}`, id: `e${block.seq}`, tabindex: -1 },
    el("div", { class: "row-body" }, body), number);
  const whole = () => {
    update?.();
    element.setAttribute("aria-label", label());
  };
  whole();
  return { element, update: whole };
}

/** A guess of the height of a block's row, in pixels. */
export function guessOf(block) {
  const lines = Math.ceil((block.text?.length ?? 0) / 90) + (block.text?.split("\n").length ?? 0);
  return { answer: 20 + 24 * lines, message: 60 + 22 * lines, tool: 60, plan: 60 + 26 * (block.entries?.length ?? 0) }[
    block.kind] ?? 44;
}

function time(at) {
  const when = new Date(at);
  return el("time", { class: "hint", datetime: when.toISOString(), title: when.toLocaleString() },
    when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
}

const first = (text) => text.trim().replace(/\s+/g, " ").slice(0, 120);

const KINDS = {
  message(block, page) {
    const files = block.files.map((path) => el("li", { class: "tag" }, page.nameOf(path)));
    return {
      body: [
        el("div", { class: "row-head" }, el("strong", {}, block.by || "Somebody"), time(block.at),
          block.steered && el("span", { class: "tag" }, "while it worked")),
        el("div", { class: "said" }, block.text || el("span", { class: "hint" }, "(no text)")),
        files.length > 0 && el("ul", { class: "chips" }, files),
      ],
      label: () => `${block.by || "Somebody"}: ${first(block.text)}`,
    };
  },

  answer(block, page) {
    const view = markdownView();
    return { body: view.element, update: () => view.update(block.text), label: () => `${page.agent} answers` };
  },

  thinking(block, page) {
    const title = el("span", {}), text = el("div", { class: "thought" });
    const fold = el("details", {}, el("summary", {}, title), text);
    fold.open = Boolean(block.ui.open);
    fold.querySelector("summary").addEventListener("click", () => {
      page.grown();
      block.ui.open = !fold.open;
    });
    return {
      body: fold,
      update() {
        const seconds = Math.round((block.until - block.at) / 1000);
        title.textContent = seconds > 1 ? `Thought for ${seconds} s` : "Thought";
        text.textContent = block.text;
      },
      label: () => "Thinking",
    };
  },

  tool(block, page) {
    const view = toolCard(block, page.grown);
    return { body: view.element, update: view.update, label: () => `Tool ${block.name}, ${block.state}` };
  },

  plan(block) {
    const list = el("ol", { class: "plan" });
    const count = el("span", { class: "hint" });
    return {
      body: [el("div", { class: "row-head" }, el("strong", {}, "Plan"), count), list],
      update() {
        const done = block.entries.filter((each) => each.status === "completed").length;
        count.textContent = block.entries.length ? `${done} of ${block.entries.length} done` : "The plan was dropped.";
        fill(list, block.entries.map((each) => el("li", { class: each.status },
          el("span", { class: "plan-mark", "aria-hidden": "true" }, MARKS[each.status] ?? "○"),
          el("span", {}, each.content, el("span", { class: "unseen" }, ` (${STEPS[each.status] ?? each.status})`)),
          each.priority === "high" && el("span", { class: "tag" }, "important"))));
      },
      label: () => "Plan",
    };
  },

  notice: (block) => ({ body: el("p", { class: "hint note" }, coded(block.text)), label: () => "Notice" }),

  login: (block) => ({
    body: el("p", { class: "note" }, `The MCP server ${block.name} needs a login: `,
      /^https?:\/\//i.test(block.url)
        ? el("a", { href: block.url, rel: "nofollow noopener noreferrer", target: "_blank" }, "open its page")
        : el("code", {}, block.url)),
    label: () => "Login",
  }),

  mode: (block) => ({
    body: el("p", { class: "hint note" }, "Mode changed to ",
      [block.mode, MODES[block.mode]].filter(Boolean).join(": "), "."),
    label: () => "Mode",
  }),

  failure: (block) => ({
    body: el("div", { class: "problem", role: "note" }, el("strong", {}, "Failed: "), coded(block.text),
      el("span", { class: "hint" }, ` (${block.fault})`)),
    label: () => "Failure",
  }),

  history: (block) => ({
    body: el("details", {}, el("summary", {}, "Earlier conversation"), el("div", { class: "thought" }, block.text)),
    label: () => "Earlier conversation",
  }),

  extension: (block) => ({
    body: el("details", {}, el("summary", {}, el("span", { class: "tag" }, block.name)),
      el("pre", { tabindex: 0 }, JSON.stringify(block.data, null, 2))),
    label: () => `Event ${block.name}`,
  }),

  gap: (block) => ({
    body: el("p", { class: "hint note" }, `Events ${block.first} to ${block.last} are missing from the log.`),
    label: () => "Missing events",
  }),

  end: (block, page) => ({
    body: el("div", { class: `ended ${block.outcome}` },
      outcomeTag(block.outcome),
      el("span", { class: "hint" }, endOf(block)),
      page.fork && el("button", { class: "quiet small", type: "button", on: { click: () => page.fork(block.seq) } },
        "Fork from here")),
    label: () => `End of turn ${block.turn}: ${outcomeWord(block.outcome)}`,
  }),
};

function endOf({ seconds, usage }) {
  const counted = usage && [
    ["input_tokens", "in"], ["output_tokens", "out"], ["cache_read_tokens", "from the cache"],
  ].filter(([name]) => usage[name]).map(([name, word]) => `${usage[name].toLocaleString()} ${word}`);
  const took = seconds !== null && seconds >= 0.1 && durationOf(seconds);
  return [took, counted?.length && `tokens: ${counted.join(", ")}`].filter(Boolean).join(" · ");
}
