// Lists that are shown anew whenever something in them has changed.

const controls = (row) => [...row.querySelectorAll("a, button, summary")];
/** What a row shows, in one text. */
const shown = new WeakMap();

/** Have a place hold a row for each item. `keyOf` says which item it is; `rowOf(item, old)` makes its row, `old` being the
 * one that it had, if it had one. A row whose item has not changed stays, with all that somebody has opened in it; and
 * whoever is in one with the keyboard stays there. */
export function show(place, items, keyOf, rowOf) {
  const before = new Map([...place.children].map((row) => [row.dataset.key, row]));
  const held = [...place.children].find((row) => row.contains(document.activeElement));
  const control = held && controls(held).indexOf(document.activeElement);
  const times = new Map();
  const rows = items.map((item) => {
    const name = keyOf(item), nth = times.get(name) ?? 0;
    times.set(name, nth + 1);
    const key = `${nth} ${name}`, text = JSON.stringify(item), old = before.get(key);
    if (old && shown.get(old) === text) return old;
    const row = rowOf(item, old);
    row.dataset.key = key;
    shown.set(row, text);
    return row;
  });
  const stay = new Set(rows);
  for (const row of [...place.children]) if (!stay.has(row)) row.remove();
  rows.forEach((row, index) => {
    // One that is where it belongs is not moved: that would take the keyboard from whoever is in it.
    if (place.children[index] !== row) place.insertBefore(row, place.children[index] ?? null);
  });
  if (!held || held.contains(document.activeElement)) return;
  const again = rows.find((row) => row.dataset.key === held.dataset.key);
  if (again) controls(again)[control]?.focus();
}
