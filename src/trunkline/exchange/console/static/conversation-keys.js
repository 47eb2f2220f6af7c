// Single keys, for those who want them.

/** Where is kept that somebody does not. */
const CHOICE = "trunkline-keys";

/** Call what belongs to a key, unless somebody is writing or a window is open. `keys` has it by the key's name. */
export function listen(keys) {
  const help = document.getElementById("help");
  const wanted = document.getElementById("single-keys");
  wanted.checked = localStorage.getItem(CHOICE) !== "off";
  wanted.addEventListener("change", () => localStorage.setItem(CHOICE, wanted.checked ? "on" : "off"));
  const open = () => help.showModal();
  document.getElementById("keys").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const isWriting = event.target.closest("input, textarea, select, [contenteditable]");
    const act = event.key === "?" ? open : keys[event.key];
    if (event.key === "Escape" && isWriting) {
      // The first one leaves the field, where keys are words.
      isWriting.blur();
      return;
    }
    if (!act || isWriting || (event.key !== "Escape" && !wanted.checked)) return;
    event.preventDefault();
    act();
  });
}
