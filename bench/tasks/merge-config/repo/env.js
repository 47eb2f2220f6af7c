'use strict';

/** Settings of the environment: APP_SERVER__PORT=80 is { server: { port: 80 } }. */
function fromEnvironment(environment, prefix = 'APP_') {
  const settings = {};
  for (const [name, value] of Object.entries(environment)) {
    if (!name.includes(prefix)) {
      continue;
    }
    const path = name.slice(prefix.length).toLowerCase().split('__');
    const last = path.pop();
    const place = path.reduce((at, part) => (at[part] ??= {}), settings);
    place[last] = parsed(value);
  }
  return settings;
}

function parsed(text) {
  if (text === 'true' || text === 'false') {
    return Boolean(text);
  }
  const number = Number(text);
  return number ? number : text;
}

module.exports = { fromEnvironment };
