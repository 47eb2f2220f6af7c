'use strict';

const assert = require('node:assert');
const test = require('node:test');
const vm = require('node:vm');

const { isTagList, parseTags } = require('./tags.js');

// Long enough for a busy machine, and for ever too short for a pattern that tries all ways to cut the text.
const MILLISECONDS = 1500;

function judged(text) {
  return vm.runInNewContext('isTagList(text)', { isTagList, text }, { timeout: MILLISECONDS });
}

test('lists of tags', () => {
  for (const text of ['a', 'a b', 'a,b', ' a , b-2,\tc ', 'a,,b', 'A,', 'two words ']) {
    assert.strictEqual(isTagList(text), true, text);
  }
});

test('what is no list of tags', () => {
  for (const text of ['', '   ', ',a', ' ,a', 'a!', 'a;b', 'caf\u00e9']) {
    assert.strictEqual(isTagList(text), false, text);
  }
});

test('a long word with a wrong end is judged at once', () => {
  assert.strictEqual(judged('a'.repeat(60) + '!'), false);
});

test('a very long list is judged at once', () => {
  assert.strictEqual(judged('tag, '.repeat(20000)), true);
  assert.strictEqual(judged(' '.repeat(50000) + '!'), false);
  assert.strictEqual(judged('tag , '.repeat(20000) + '!'), false);
});

test('tags are in order, and each is there once', () => {
  assert.deepStrictEqual(parseTags(' b, A a,c,'), ['a', 'b', 'c']);
});
