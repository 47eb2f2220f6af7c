'use strict';

// Asks the server whose port is in a file, as soon as it is there, and prints its status and what it says.
const fs = require('node:fs');
const http = require('node:http');

const [file, path] = process.argv.slice(2);

function ask(tries) {
  const port = fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf-8')) : 0;
  if (!port && tries > 0) {
    setTimeout(() => ask(tries - 1), 50);
    return;
  }
  http.get({ host: '127.0.0.1', port, path }, (response) => {
    let text = '';
    response.on('data', (data) => { text += data; });
    response.on('end', () => console.log(response.statusCode, text));
  }).on('error', (error) => console.log(String(error)));
}

ask(400);
