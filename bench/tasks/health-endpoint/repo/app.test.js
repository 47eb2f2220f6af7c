'use strict';

const assert = require('node:assert');
const http = require('node:http');
const test = require('node:test');

const { makeServer } = require('./app.js');

async function asked(ping, url, method = 'GET') {
  const lines = [];
  const server = makeServer(ping, (line) => lines.push(line));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const answer = await new Promise((resolve, reject) => {
    const { port } = server.address();
    http.request({ host: '127.0.0.1', port, path: url, method, agent: false }, (response) => {
      let text = '';
      response.on('data', (data) => { text += data; });
      response.on('end', () => resolve([response.statusCode, JSON.parse(text)]));
    }).on('error', reject).end();
  });
  await new Promise((resolve) => server.close(resolve));
  return [...answer, lines];
}

const up = async () => {};
const down = async () => { throw new Error('refused'); };

test('a healthy server', async () => {
  assert.deepStrictEqual(await asked(up, '/health'), [200, { status: 'up' }, ['GET /health 200']]);
});

test('a server without its database', async () => {
  assert.deepStrictEqual(await asked(down, '/health'), [503, { status: 'down' }, [
    'the database is down: refused',
    'GET /health 503',
  ]]);
});

test('a query does not matter', async () => {
  assert.strictEqual((await asked(down, '/health?from=balancer'))[0], 503);
});

test('other paths', async () => {
  assert.strictEqual((await asked(up, '/'))[0], 200);
  assert.strictEqual((await asked(up, '/nothing'))[0], 404);
});
