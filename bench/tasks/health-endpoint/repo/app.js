'use strict';

const http = require('node:http');

/** The server; `ping` asks the database, and fails if it is down. */
function makeServer(ping, log = () => {}) {
  return http.createServer(async (request, response) => {
    const reply = (status, body) => {
      log(`${request.method} ${request.url} ${status}`);
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (request.url === '/health') {
      ping().catch((error) => log(`the database is down: ${error.message}`));
      reply(200, { status: 'up' });
    } else {
      reply(200, { hello: 'world' });
    }
  });
}

module.exports = { makeServer };
