import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { formats } from '../../../src/callers/formats.ts';
import { programs } from '../../../src/callers/programs.ts';
import { readExpectedText, readFixture } from '../../callers/fixtures.ts';
import { TestServer } from '../../support/server.ts';
import { newestText } from '../wire.ts';

let server: TestServer;
beforeAll(async () => {
  server = await TestServer.start();
});
afterAll(() => server.stop());

const setups = programs.flatMap(({ name, setups: all }) => all.map((setup) => ({ name, ...setup })));

test.each(setups)('$name posts to $address.url what docs/callers.md shows: $fixture', async ({ address, fixture }) => {
  const group = await server.createGroup();
  const [formatName, ...rest] = fixture.split('/');
  const format = formats.find(({ name }) => name === formatName)!;
  const { body, headers, query = '' } = readFixture(format, `${rest.join('/')}.json`);
  const url = address.url
    .replace('<address>', '<server>/v1/webhooks/<token>')
    .replace('<server>', server.url)
    .replace('<token>', group.token);
  // Gotify's address contains no token; its programs send the token in a header.
  const auth = url.includes(group.token) ? {} : { 'x-gotify-key': group.token };
  const isEmpty = Object.keys(body).length === 0;
  const answer = await fetch(query === '' ? url : `${url}?${query}`, {
    method: 'POST',
    headers: { 'content-type': isEmpty ? 'text/plain' : 'application/json', ...headers, ...auth },
    body: isEmpty ? '' : JSON.stringify(body),
  });
  expect([200, 202, 204]).toContain(answer.status);
  expect(`${await newestText(server, group)}\n`).toBe(readExpectedText(format, `${rest.join('/')}.json`));
});
