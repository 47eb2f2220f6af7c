'use strict';

const fs = require('node:fs');

const { makeServer } = require('./app.js');

// Listens on any port that is free, and writes its number to a file.
const [file] = process.argv.slice(2);
// There is no database on this machine.
const ping = async () => { throw new Error('connection refused'); };
const server = makeServer(ping, console.log);
server.listen(0, '127.0.0.1', () => {
  console.log('listening');
  fs.writeFileSync(file, String(server.address().port));
});
