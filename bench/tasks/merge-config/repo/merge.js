'use strict';

function isObject(value) {
  return typeof value === 'object';
}

/** Put one configuration over another: objects are merged, all else is replaced. Neither is changed. */
function merge(base, over) {
  for (const key in over) {
    if (isObject(base[key]) && isObject(over[key])) {
      merge(base[key], over[key]);
    } else {
      base[key] = over[key];
    }
  }
  return base;
}

module.exports = { merge };
