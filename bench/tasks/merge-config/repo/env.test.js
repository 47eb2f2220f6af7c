'use strict';

const assert = require('node:assert');
const test = require('node:test');

const { fromEnvironment } = require('./env.js');

test('names are paths', () => {
  const settings = fromEnvironment({ APP_SERVER__PORT: '80', APP_SERVER__HOST: 'web', APP_NAME: 'x', PATH: '/bin' });
  assert.deepStrictEqual(settings, { server: { port: 80, host: 'web' }, name: 'x' });
});

test('only names that begin with the prefix count', () => {
  assert.deepStrictEqual(fromEnvironment({ MY_APP_NAME: 'x', APPLE: 'y' }), {});
});

test('values', () => {
  const settings = fromEnvironment({ APP_A: 'true', APP_B: 'false', APP_C: '0', APP_D: '', APP_E: '1.50', APP_F: '1e' });
  assert.deepStrictEqual(settings, { a: true, b: false, c: 0, d: '', e: 1.5, f: '1e' });
});
