'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { merge } = require('./merge.js');

test('objects are merged, all else is replaced', () => {
  const merged = merge({ a: { b: 1, c: 2 }, list: [1, 2], n: 1 }, { a: { c: 3 }, list: [9], n: null });
  assert.deepStrictEqual(merged, { a: { b: 1, c: 3 }, list: [9], n: null });
  assert.deepStrictEqual(merge({ a: null }, { a: { b: 1 } }), { a: { b: 1 } });
});

test('neither configuration is changed', () => {
  const base = { a: { b: 1 } };
  const over = { a: { c: 2 }, d: { e: 1 } };
  const merged = merge(base, over);
  merged.d.e = 9;
  assert.deepStrictEqual([base, over], [{ a: { b: 1 } }, { a: { c: 2 }, d: { e: 1 } }]);
});

test('a file cannot change all objects', () => {
  const merged = merge({}, JSON.parse('{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}'));
  assert.strictEqual({}.admin, undefined);
  assert.strictEqual(merged.admin, undefined);
});
