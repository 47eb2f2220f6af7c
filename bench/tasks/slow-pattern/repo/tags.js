'use strict';

// Tags are words of letters, digits and hyphens. Between two of them are commas or spaces, or both.
const TAG_LIST = /^\s*([a-z0-9-]+[,\s]*)+$/i;

function isTagList(text) {
  return TAG_LIST.test(text);
}

function parseTags(text) {
  if (!isTagList(text)) {
    throw new RangeError(`not a list of tags: ${text}`);
  }
  const tags = text.toLowerCase().split(/[,\s]+/);
  return [...new Set(tags.filter(Boolean))].sort();
}

module.exports = { isTagList, parseTags };
