import { describe, expect, test } from '@jest/globals';
import { klatchCookiesIn, SessionCookie } from '../../../src/operations/core/session-cookie.ts';
import type { Pool } from '../../../src/storage/db/pool.ts';

const TOKEN = `kls_${'a'.repeat(43)}`;

/** A database that returns these store ids one after the other. */
const storeIds = (...ids: string[]): Pick<Pool, 'run'> =>
  answering(...ids.map((current) => ({ current, former: null })));
const answering = (...answers: { current: string; former: string | null }[]): Pick<Pool, 'run'> => ({
  run: () => Promise.resolve(answers.shift() as never),
});

describe('the session cookie', () => {
  test.each([
    ['https://chat.example', '__Host-klatch-01234567', '/', true],
    ['https://chat.example:8443', '__Host-klatch-01234567', '/', true],
    ['https://example.org/chat', '__Secure-klatch-01234567', '/chat', true],
    ['http://127.0.0.1:9090', 'klatch-01234567', '/', false],
    ['http://chat.example/a/b', 'klatch-01234567', '/a/b', false],
  ])('of %s is %s', async (baseUri, name, path, isSecure) => {
    const cookie = new SessionCookie(baseUri, storeIds('0123456789abcdef'));
    const serialize = await cookie.serializer();
    const end = `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
    expect(serialize(TOKEN)).toBe(`${name}=${TOKEN}; Path=${path}; Max-Age=2592000; ${end}`);
    expect(serialize(TOKEN, { isPersistent: false })).toBe(`${name}=${TOKEN}; Path=${path}; ${end}`);
    expect(serialize(null)).toBe(`${name}=; Path=${path}; Max-Age=0; ${end}`);
    expect(await cookie.tokenAmong(klatchCookiesIn(`a=b; ${name}=${TOKEN}`))).toBe(TOKEN);
  });

  test('gets its name as soon as there is a store id', async () => {
    const cookie = new SessionCookie('http://127.0.0.1', storeIds('unassigned', 'fedcba98'));
    expect((await cookie.serializer())(null)).toContain('klatch-00000000=');
    expect((await cookie.serializer())(null)).toContain('klatch-fedcba98=');
    // From here on the name of the cookie is cached: no call reads the database again.
    expect((await cookie.serializer())(null)).toContain('klatch-fedcba98=');
  });

  test('is taken under the name from before a restore too, where there is none under the new one', async () => {
    const cookie = new SessionCookie('http://127.0.0.1', answering({ current: 'fedcba9876', former: '0123456789' }));
    const other = `kls_${'b'.repeat(43)}`;
    const former = `klatch-01234567=${TOKEN}`;
    expect(await cookie.tokenAmong(klatchCookiesIn(former))).toBe(TOKEN);
    expect(await cookie.tokenAmong(klatchCookiesIn(`${former}; klatch-fedcba98=${other}`))).toBe(other);
    expect((await cookie.serializer())(TOKEN)).toContain('klatch-fedcba98=');
    expect(await cookie.tokenAmong(klatchCookiesIn(`klatch-89abcdef=${TOKEN}`))).toBeNull();
  });

  test.each([
    ['no header', undefined, 0],
    ['a bot’s token', `klatch-01234567=klb_${'a'.repeat(43)}`, 0],
    ['quotes', `klatch-01234567="${TOKEN}"`, 0],
    ['another name', `klatch=${TOKEN}; xklatch-01234567=${TOKEN}; klatch-0123456=${TOKEN}`, 0],
    ['what is left of a cookie', 'klatch-01234567=; klatch-01234567', 0],
    ['those of several servers', `klatch-01234567=${TOKEN};__Host-klatch-89abcdef=${TOKEN}`, 2],
    ['more than one host has', `klatch-01234567=${TOKEN};`.repeat(100), 16],
  ])('is looked for in %s', (_, header, count) => {
    expect(klatchCookiesIn(header)).toHaveLength(count);
  });
});
