// Two texts, line by line: what is in both, what only in the old one, what only in the new one.

/** Above this many comparisons all old lines come first, and then all new ones: a person would not read it in detail. */
const MOST_STEPS = 250_000;

/** Lines in order, as `[kind, line]`: `same`, `old` or `new`. */
export function compared(old, now) {
  const before = lines(old), after = lines(now);
  let first = 0, last = 0;
  while (first < Math.min(before.length, after.length) && before[first] === after[first]) first++;
  while (last < Math.min(before.length, after.length) - first && before.at(-1 - last) === after.at(-1 - last)) last++;
  return [
    ...before.slice(0, first).map((line) => ["same", line]),
    ...middle(before.slice(first, before.length - last), after.slice(first, after.length - last)),
    ...before.slice(before.length - last).map((line) => ["same", line]),
  ];
}

function lines(text) {
  const found = text.split("\n");
  if (found.at(-1) === "") found.pop();
  return found;
}

function middle(before, after) {
  const all = (kind, some) => some.map((line) => [kind, line]);
  if (before.length * after.length > MOST_STEPS) return [...all("old", before), ...all("new", after)];
  // For each place in both, how many lines the rest has in common.
  const common = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      found.push(["same", before[i++]]);
      j++;
    } else if (common[i + 1][j] >= common[i][j + 1]) {
      found.push(["old", before[i++]]);
    } else {
      found.push(["new", after[j++]]);
    }
  }
  return [...found, ...all("old", before.slice(i)), ...all("new", after.slice(j))];
}
