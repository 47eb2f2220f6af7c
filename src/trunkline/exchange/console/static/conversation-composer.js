// Where people write: messages with files, for now or for later, and the end of a turn.

import { complain, post, upload } from "./api.js";
import { el } from "./dom.js";

const text = document.getElementById("text");

/** What a message is called until its turn begins: the same twice is one message. */
function newId() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(12))];
  return `m-${bytes.map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}

/** The composer of a session. `largest`: bytes of a file; `sent()` is called when a message is on its way. It has
 * `begun(id)` for each message that is being answered, `queued(messages)` for those that wait according to the exchange,
 * `busy(is)` for whether a turn runs, and `nameOf(path)` for files that were brought here. */
export function composer({ session, largest, sent }) {
  const address = `/api/sessions/${encodeURIComponent(session)}`;
  const form = document.getElementById("composer");
  const attached = document.getElementById("attached");
  const chips = document.getElementById("queued");
  const whenField = document.getElementById("when");
  const names = new Map();
  const waiting = new Map();
  const sending = new Set();
  const over = new Set();
  const uploading = new Set();
  const posting = new Set();
  let files = [];
  let back = null;
  let working = false;

  // Files.

  function attach(file) {
    if (file.size > largest) {
      const most = Math.floor(largest / 1024 / 1024);
      complain(new Error(`${file.name} is too large: the limit is ${most} MiB.`));
      return;
    }
    const name = file.name || "picture.png";
    const entry = { path: "" };
    const drop = () => {
      files = files.filter((each) => each !== entry);
      if (entry.preview) URL.revokeObjectURL(entry.preview);
      chip.remove();
    };
    if (file.type.startsWith("image/")) entry.preview = URL.createObjectURL(file);
    const state = el("span", { class: "hint" }, "…");
    const chip = el("li", { class: "tag" },
      entry.preview && el("img", { src: entry.preview, alt: "", height: 24 }), name, " ", state,
      el("button", { class: "quiet small", type: "button", "aria-label": `Remove ${name}`, on: { click: drop } },
        "×"));
    attached.append(chip);
    files.push(entry);
    Object.assign(entry, { drop, chip });
    entry.coming = upload(`${address}/files?name=${encodeURIComponent(name)}`, file).then((found) => {
      entry.path = found.path;
      names.set(found.path, name);
      state.textContent = sized(file.size);
    }, (error) => {
      drop();
      complain(error);
    });
  }

  const attachAll = (list) => [...list].forEach(attach);
  const picker = document.getElementById("files");
  document.getElementById("attach").addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    attachAll(picker.files);
    picker.value = "";
  });
  text.addEventListener("paste", (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    attachAll(event.clipboardData.files);
  });
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  document.addEventListener("dragleave", () => form.classList.remove("dropping"));
  document.addEventListener("drop", (event) => {
    form.classList.remove("dropping");
    if (!hasFiles(event)) return;
    event.preventDefault();
    attachAll(event.dataTransfer.files);
  });

  // Messages.

  async function send() {
    const isSame = back?.said === text.value && back.files.length === files.length
      && back.files.every((each, index) => each === files[index]);
    const message = { said: text.value, files, id: isSame ? back.id : newId() };
    if (!message.said.trim() && !files.length) return;
    back = null;
    clear();
    sent();
    wait(message);
    sending.add(message.id);
    try {
      uploading.add(message);
      await Promise.all(message.files.map((each) => each.coming)).finally(() => uploading.delete(message));
      if (message.isWithdrawn) {
        begun(message.id);
        putBack(message);
        return;
      }
      const paths = message.files.filter((each) => each.path).map((each) => each.path);
      const when = working ? whenField.value : "queue";
      const posted = post(`${address}/messages`, { text: message.said, files: paths, msg_id: message.id, when });
      posting.add(posted);
      await posted.finally(() => posting.delete(posted));
      message.files.forEach((each) => each.drop());
      complain(null);
    } catch (error) {
      begun(message.id);
      putBack(message);
      complain(error);
    } finally {
      sending.delete(message.id);
    }
  }

  /** Have room for the next message. */
  function clear() {
    text.value = "";
    attached.replaceChildren();
    files = [];
    fit();
  }

  /** Have a message that may not have been taken in the field again. Sent as it was it has its old id, and is still one
   * message. */
  function putBack(message) {
    back = message;
    text.value = [message.said, text.value].filter(Boolean).join("\n");
    files = [...message.files, ...files];
    attached.prepend(...message.files.map((each) => each.chip));
    fit();
  }

  function wait({ id: which, said }) {
    const words = said.trim().replace(/\s+/g, " ").slice(0, 80) || "files";
    const chip = el("li", { class: "tag" }, el("span", { class: "hint" }, "Queued: "), words);
    waiting.set(which, chip);
    chips.append(chip);
  }

  function begun(which) {
    waiting.get(which)?.remove();
    waiting.delete(which);
  }

  /** Show exactly those that wait, and what is still on its way: somebody else may have stopped them, and a page that
   * was loaded again knows of none. */
  function queued(messages) {
    const found = new Set(messages.map((each) => each.msg_id));
    [...waiting.keys()].filter((each) => !found.has(each) && !sending.has(each)).forEach(begun);
    for (const { msg_id: id, text: said } of messages) {
      if (!waiting.has(id) && !over.has(id)) wait({ id, said });
    }
  }

  /** Stop the turn, and what waits behind it: also what is still on its way, which would begin after the stop. */
  async function stop() {
    uploading.forEach((message) => (message.isWithdrawn = true));
    await Promise.allSettled(posting);
    try {
      await post(`${address}/stop`);
      [...waiting.keys()].forEach(begun);
    } catch (error) {
      complain(error);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  text.addEventListener("keydown", (event) => {
    // On a phone there is no other way to begin a line, and a button to send.
    const sends = event.ctrlKey || event.metaKey || (!event.shiftKey && !matchMedia("(pointer: coarse)").matches);
    if (event.key !== "Enter" || event.isComposing || !sends) return;
    event.preventDefault();
    form.requestSubmit();
  });
  const fit = () => {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, window.innerHeight / 3)}px`;
  };
  text.addEventListener("input", fit);

  return {
    stop, queued,
    begun(which) {
      // What is told of the queue may be older than that.
      over.add(which);
      begun(which);
    },
    busy(is) {
      working = is;
      document.getElementById("when-field").hidden = !is;
      document.getElementById("stop").hidden = !is;
    },
    nameOf: (path) => names.get(path),
    focus: () => text.focus(),
  };
}

function sized(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
