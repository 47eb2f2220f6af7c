// Text about which somebody decides: every character of it is seen, and none hides another. The server has the same, in
// `base/visible.py`, for chats and terminals.

/** Longer runs of blanks are counted instead of shown: what follows could be out of sight. */
const LONGEST_BLANK = 60;
/** Not to be seen, or drawn across the letter before: turns of the direction, no width, fillers, strokes. The selector
 * that makes an emoji of the sign before it is none of them. */
const UNSEEN = new RegExp(
  "(?<!\\p{So})\\ufe0f|(?![ \\n\\t\\u3000\\ufe0f])[\\p{Cc}\\p{Cf}\\p{Zs}\\p{Zl}\\p{Zp}\\p{Cs}\\p{Co}\\p{Cn}\\p{Me}"
  + "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0e\\uffa0\\ufffc\\u{16fe4}\\u{1d159}"
  + "\\u{e0100}-\\u{e01ef}\\u0334-\\u0338\\u20d2\\u20d3\\u20d8-\\u20da\\u20e5\\u20e6\\u20ea\\u20eb"
  + "\\u{1d167}-\\u{1d169}]", "gu");
const BLANKS = new RegExp(`(?<![ \\t\\u3000])[ \\t\\u3000]{${LONGEST_BLANK + 1},}`, "g");
const EMPTY_LINES = new RegExp(`(?<![ \\t\\u3000\\n])(?:[ \\t\\u3000]*\\n){${LONGEST_BLANK + 1},}`, "g");

const number = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
const counted = (run) => `<${new Set(run).size === 1 ? number(run) : "blanks"} x ${run.length}>`;

/** The text with all that would not be seen shown by its number: `<U+202E>`. */
export function visible(text) {
  const shown = text.replace(UNSEEN, (char) => `<${number(char)}>`);
  return shown.replace(BLANKS, counted).replace(EMPTY_LINES, counted);
}
