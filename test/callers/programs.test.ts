import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { anchorOf } from '../../scripts/callers-page.ts';
import { detectFormat, formats } from '../../src/callers/formats.ts';
import { hasNtfyHeaders, ntfy } from '../../src/callers/ntfy.ts';
import { programs } from '../../src/callers/programs.ts';
import { callerAddresses, type CallerAddress } from '../../src/callers/programs/program.ts';
import { teams } from '../../src/callers/teams.ts';
import { aliases, suffixes, type CallerPath } from '../../src/http/callers/caller-paths.ts';
import { fixtureNames, readFixture, requestOf } from './fixtures.ts';

const SERVER = 'https://chat.example.org';
const TOKEN = 'IntegrationToken_0123456789-abc';

const setups = programs.flatMap(({ name, setups: all }) => all.map((setup) => ({ name, ...setup })));

/**
 * The route of a documented address. Null: it is the group's plain webhook URL. Undefined: no route has this address.
 */
function routeOf({ url }: CallerAddress): CallerPath | null | undefined {
  const filled = url
    .replaceAll('<address>', '<server>/v1/webhooks/<token>')
    .replaceAll('<server>', SERVER)
    .replaceAll('<token>', TOKEN);
  const path = filled.slice(SERVER.length);
  if (path === `/v1/webhooks/${TOKEN}`) return null;
  return [...suffixes, ...aliases].find((route) => patternOf(route).test(path));
}

function patternOf({ path }: CallerPath): RegExp {
  return path instanceof RegExp ? path : new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`);
}

describe.each(setups)('$name: $address.url, $fixture', ({ address, configuration, fixture }) => {
  const [formatName, ...rest] = fixture.split('/');
  const format = formats.find(({ name }) => name === formatName)!;

  test('has a fixture with a text', () => {
    expect(fixtureNames(format)).toContain(`${rest.join('/')}.json`);
    expect(readFixture(format, `${rest.join('/')}.json`).ignored).toBeUndefined();
  });

  test('is read in the format of its fixture', () => {
    const route = routeOf(address);
    expect(route).toBeDefined();
    const request = requestOf(readFixture(format, `${rest.join('/')}.json`));
    // The address of Teams accepts both kinds of cards.
    const forced = route?.format === 'teams' ? teams.delegateOf!(request).name : (route?.format ?? null);
    const detected = hasNtfyHeaders(request.headers) ? ntfy : detectFormat(request);
    expect(forced ?? detected?.name).toBe(formatName);
  });

  test('has a configuration with all that its address is made of', () => {
    expect(Object.values(callerAddresses)).toContain(address);
    const given = Object.values(address.valuesToPaste).filter((value) => value.includes('<'));
    // Apprise and shoutrrr put the host of the server into a URL of their own form.
    const written = configuration
      .replaceAll(/\w+:\/\/<host>\/v1\/webhooks\/<token>/g, '<address>')
      .replaceAll('mmosts://<host>/<token>', '<server> <token>');
    expect(given.filter((value) => !written.includes(value))).toEqual([]);
  });
});

test('a program is there for every format and every address', () => {
  const used = new Set(setups.map(({ fixture }) => fixture.split('/')[0]));
  expect(formats.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  expect(
    Object.values(callerAddresses).filter((address) => !setups.some((setup) => setup.address === address)),
  ).toEqual([]);
});

test('addresses say what the program is given', () => {
  for (const { valuesToPaste: values, url } of Object.values(callerAddresses) as CallerAddress[]) {
    if (Object.keys(values).length === 1) expect(Object.values(values)).toEqual([url]);
  }
});

test('the page has a section for each program, which its table leads to', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/callers.md'), 'utf8');
  const headings = [...page.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading!);
  const links = [...page.matchAll(/^\| \[[^\]]+\]\(#([^)]+)\)/gm)].map(([, anchor]) => anchor!);
  expect(headings).toEqual([...programs.map(({ name }) => name), 'Differences from Slack, Discord and Mattermost']);
  expect([...new Set(links)]).toEqual(programs.map(({ name }) => anchorOf(name)));
  expect(new Set(links).size).toBe(programs.length);
});
