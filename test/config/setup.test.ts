import { createECDH } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { readAsset } from '../../src/assets.ts';
import { toHoconLiteral } from '../../src/config/edit.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problem.ts';
import { applyAnswers, checkAnswer, createServerSecret } from '../../src/config/setup.ts';
import type { SetupAnswers } from '../../src/config/setup.ts';
import { createWebPushKeys } from '../../src/config/keys/web-push-keys.ts';
import { Folder, SECRET } from './folder.ts';

const TEMPLATE = readAsset('etc/klatch/server.conf.template');
const database = { host: 'db.example.org', port: 5433, db: 'chat', user: 'chatter', password: 'p' } as const;
const ANSWERS = { secret: SECRET, baseUri: 'https://chat.example.org', database } as const;

const apply = (text: string, answers: SetupAnswers) => applyAnswers({ file: '/etc/klatch/server.conf', text }, answers);

/** Loads the configuration that `klatch setup` wrote. */
function loaded(text: string, env: Record<string, string> = {}) {
  using folder = new Folder();
  return loadConfig(folder.write('server.conf', text), { env });
}

/**
 * The lines in which the two texts differ, compared by position. Several sections may contain the same line, and an
 * answer replaces the line at its own position.
 */
function difference(before: string, after: string): { removed: string[]; added: string[] } {
  const [old, now] = [before.split('\n'), after.split('\n')];
  return { removed: old.filter((line, n) => line !== now[n]), added: now.filter((line, n) => line !== old[n]) };
}

describe('the template with answers', () => {
  test('loads with every answer in force, and nothing but their lines has changed', () => {
    const { text, set, kept } = apply(TEMPLATE, {
      ...ANSWERS,
      dataDir: '/srv/klatch',
      interface: '0.0.0.0',
      port: 8080,
      projectName: 'Corp "Chat"',
      deliveryAllow: ['10.0.0.0/8', '*.corp.example'],
      metrics: false,
    });
    const { config, warnings } = loaded(text);
    expect(warnings).toEqual([]);
    expect(kept).toEqual([]);
    expect(set).toHaveLength(13);
    expect(config.metrics).toEqual({ metricsEnabled: false, interface: '127.0.0.1', port: 19_090 });
    expect(config).toMatchObject({ secret: SECRET, dataDir: '/srv/klatch', projectName: 'Corp "Chat"' });
    expect(config.http).toMatchObject({ baseUri: 'https://chat.example.org', interface: '0.0.0.0', port: 8080 });
    expect(config.postgresql).toMatchObject({ ...database, embedded: false });
    expect(config.delivery.allow).toEqual(['10.0.0.0/8', '*.corp.example']);
    expect(difference(TEMPLATE, text)).toEqual({
      removed: [
        'secret = "<SERVER_SECRET>"',
        '#project-name = "Klatch"',
        '#data-dir = "/var/lib/klatch"',
        '  #interface = "127.0.0.1"',
        '  #port = 9090',
        '  base-uri = "<BASE_URI>"',
        '  #enabled = true',
        '    #host = "127.0.0.1"',
        '    #port = 5432',
        '    #db = "klatch"',
        '    #user = "klatch"',
        '    password = "<DB_PASSWORD>"',
        '  #allow = []',
      ],
      added: [
        `secret = "${SECRET}"`,
        'project-name = "Corp \\"Chat\\""',
        'data-dir = "/srv/klatch"',
        '  interface = "0.0.0.0"',
        '  port = 8080',
        '  base-uri = "https://chat.example.org"',
        '  enabled = false',
        '    host = "db.example.org"',
        '    port = 5433',
        '    db = "chat"',
        '    user = "chatter"',
        '    password = "p"',
        '  allow = ["10.0.0.0/8", "*.corp.example"]',
      ],
    });
  });

  test('for the embedded database needs no password', () => {
    const { text, set } = apply(TEMPLATE, { ...ANSWERS, database: { embedded: true } });
    expect(set).toEqual(['secret', 'http.base-uri', 'services.postgresql.embedded', 'services.postgresql.password']);
    expect(loaded(text).config.postgresql).toMatchObject({ embedded: true, password: '' });
  });

  test('can name server keys', () => {
    const pair = { public: '/etc/klatch/keys/a b.pem', private: '/etc/klatch/keys/"p".pem' };
    const { text } = apply(TEMPLATE, { ...ANSWERS, serverKeys: pair });
    expect(text).toContain(
      '\n    server-keys = [{ public = "/etc/klatch/keys/a b.pem", private = "/etc/klatch/keys/\\"p\\".pem" }]\n',
    );
  });

  test('stays as it is without answers, and after the same answers again', () => {
    expect(apply(TEMPLATE, {}).text).toBe(TEMPLATE);
    const once = apply(TEMPLATE, ANSWERS).text;
    const again = apply(once, ANSWERS);
    expect(again.text).toBe(once);
    expect(again.set).toEqual([]);
    expect(again.kept).toHaveLength(7);
  });

  test.each([
    '"',
    '\\',
    '\\"',
    '"""',
    '""',
    "'",
    '${x}',
    '${?HOME}',
    '$',
    '#',
    '//',
    '# a',
    '{',
    '}',
    '[1, 2]',
    'a = b',
    'a,b',
    '=',
    ':',
    '+=',
    'include "x"',
    ' leading and trailing ',
    '\n',
    '\r\n',
    'a\nb = c',
    '\t',
    '\b',
    '\u0001',
    '\u007f',
    '\u0085',
    '\u2028',
    '\ufeff',
    'пароль',
    '密码',
    '👍🏽',
    'e\u0301',
    '\u202eabc',
    'null',
    'true',
    '123',
    '1e5',
    '007',
    '5s',
    '',
    ' ',
    '\\u0041',
    '<a',
    '<>',
    '`',
    '*',
    '!@#$%^&*()_+-=[]{}|;:,.<>?/~',
    'x'.repeat(5000),
  ])('keeps the password %j', (password) => {
    const { text } = apply(TEMPLATE, { ...ANSWERS, database: { ...database, password } });
    expect(loaded(text, { x: 'wrong', HOME: 'wrong' }).config.postgresql.password).toBe(password);
    expect(text.split('\n')).toHaveLength(TEMPLATE.split('\n').length);
  });
});

describe('an existing file', () => {
  test('keeps every answer that it has, and they are named', () => {
    const old = `secret = "${SECRET}" # mine\nhttp { port = 80 }\nservices.postgresql { host = old, password = "x" }\n`;
    const { text, set, kept } = apply(old, { ...ANSWERS, secret: createServerSecret(), port: 9999, interface: '::' });
    expect(kept).toEqual(['secret', 'http.port', 'services.postgresql.host', 'services.postgresql.password']);
    expect(set).toEqual([
      'http.interface',
      'http.base-uri',
      'services.postgresql.port',
      'services.postgresql.db',
      'services.postgresql.user',
    ]);
    expect(text.startsWith(old)).toBe(true);
    expect(text.slice(old.length)).toBe(`
# Added by klatch setup.
http.interface = "::"
http.base-uri = "https://chat.example.org"
services.postgresql.port = 5433
services.postgresql.db = "chat"
services.postgresql.user = "chatter"
`);
    const { config } = loaded(text);
    expect(config).toMatchObject({ secret: SECRET, http: { port: 80, interface: '::' } });
    expect(config.postgresql).toMatchObject({ host: 'old', password: 'x', port: 5433 });
  });

  test('is read as HOCON, not as lines', () => {
    const old = `{
  "secret" : <SERVER SECRET>, http { "base-uri" : """<BASE_URI>""" } // <BASE_URI>
  services { postgresql { user : "<DB_USER>", password : "<DB_PASSWORD>" } }
  text = """
secret = "<NOT_THIS>"
  #port = 1
"""
}`;
    const { text } = apply(old, { ...ANSWERS, port: 8080 });
    expect(text).toBe(`{
  "secret" : "${SECRET}", http { "base-uri" : "https://chat.example.org" } // <BASE_URI>
  services { postgresql { user : "chatter", password : "p" } }
  text = """
secret = "<NOT_THIS>"
  #port = 1
"""

# Added by klatch setup.
http.port = 8080
services.postgresql.host = "db.example.org"
services.postgresql.port = 5433
services.postgresql.db = "chat"
}`);
    // `loaded` would refuse `<NOT_THIS>` if it were a placeholder.
    expect(loaded(text).config.http.port).toBe(8080);
  });

  test('that takes a value from the environment or an include has its answer there', () => {
    using folder = new Folder();
    folder.write('db.conf', 'services.postgresql { host = included, password = "<DB_PASSWORD>" }');
    const file = folder.write('server.conf', '');
    const text = `include "db.conf"\nsecret = \${?KLATCH_SECRET}\nhttp.base-uri = \${BASE}\n`;
    const result = applyAnswers({ file, text }, ANSWERS);
    expect(result.kept).toEqual(['secret', 'http.base-uri', 'services.postgresql.host']);
    const written = folder.write('server.conf', result.text);
    const { config } = loadConfig(written, { env: { KLATCH_SECRET: SECRET, BASE: 'http://a.example' } });
    expect(config.postgresql).toMatchObject({ host: 'included', password: 'p', db: 'chat' });
  });

  test('with a remark behind a commented-out key keeps the remark', () => {
    const { text } = apply('http {\n  #port = 9090 # behind nginx\n}\n', { port: 80 });
    expect(text).toBe('http {\n  port = 80\n  #port = 9090 # behind nginx\n}\n');
  });

  test('with line ends of Windows keeps them', () => {
    const { text } = apply('secret = "<SERVER_SECRET>"\r\nhttp {\r\n  #port = 9090\r\n}\r\n', {
      secret: SECRET,
      port: 80,
    });
    expect(text).toBe(`secret = "${SECRET}"\r\nhttp {\r\n  port = 80\r\n}\r\n`);
  });

  test('does not get a second file end, nor a second heading', () => {
    const once = apply('log.level = debug', { port: 80 }).text;
    expect(once).toBe('log.level = debug\n\n# Added by klatch setup.\nhttp.port = 80\n');
    expect(apply(once, { interface: '::' }).text).toBe(`${once}http.interface = "::"\n`);
  });

  test('whose lists hold only placeholders gets the answer behind them, others are kept', () => {
    const pair = { public: '/a', private: '/b' };
    const both = (item: string) => apply(`modules.security.server-keys = [${item}]\n`, { serverKeys: pair });
    expect(both('{ public = "<A>", private = "<B>" }').set).toEqual(['modules.security.server-keys']);
    expect(both('{ public = "/x", private = "<B>" }').kept).toEqual(['modules.security.server-keys']);
    expect(apply('delivery.allow = []', { deliveryAllow: ['private'] }).kept).toEqual(['delivery.allow']);
  });

  test('that names a database is not moved to the embedded one, nor the other way', () => {
    const named = apply('services.postgresql.host = old\n', { database: { embedded: true } });
    expect(named).toEqual({ text: 'services.postgresql.host = old\n', set: [], kept: ['services.postgresql.host'] });
    const embedded = apply('services.postgresql { embedded = yes, password = "<DB_PASSWORD>" }', { database });
    expect(embedded.kept).toEqual(['services.postgresql.embedded']);
    expect(embedded.text).toBe('services.postgresql { embedded = yes, password = "" }');
    const off = apply('services.postgresql { embedded = off, password = "<DB_PASSWORD>" }', {
      database: { embedded: true },
    });
    expect(off).toMatchObject({ set: [], kept: ['services.postgresql.embedded'] });
  });

  test('that cannot be read is not written', () => {
    expect(() => apply('secret = "unclosed', ANSWERS)).toThrow(ConfigError);
    expect(() => apply('http = 5', { port: 80 })).toThrow(
      '/etc/klatch/server.conf: http.port cannot be written into this file; please add it by hand.',
    );
  });
});

describe('an answer that the server would refuse', () => {
  test('is refused before it is written, all of them at once, and secrets are not named', () => {
    const answers = {
      secret: 'hunter2',
      baseUri: 'chat.example.org',
      port: 70_000,
      database: { ...database, password: '<DB PASS>' },
    };
    expect(() => apply(TEMPLATE, answers)).toThrow(
      [
        '/etc/klatch/server.conf: secret: expected at least 32 characters that nobody can guess, got a value that is not shown: it has 7',
        '/etc/klatch/server.conf: http.port: expected a port number from 0 to 65535, got 70000',
        '/etc/klatch/server.conf: http.base-uri: expected an absolute http:// or https:// address without query and fragment, got "chat.example.org": it does not begin with a scheme and "://"',
        '/etc/klatch/server.conf: services.postgresql.password: looks like a placeholder: choose another value',
      ].join('\n'),
    );
  });

  test('can be checked as it was typed', () => {
    expect(checkAnswer('http.port', '8080')).toBeNull();
    expect(checkAnswer('http.port', 'x')).toBe('expected a port number, got "x"');
    expect(checkAnswer('http.base-uri', 'https://a.example')).toBeNull();
    expect(checkAnswer('services.postgresql.host', '')).toMatch(/^expected a host name/);
  });
});

test('a new secret is accepted and new each time', () => {
  expect(checkAnswer('secret', createServerSecret())).toBeNull();
  expect(createServerSecret()).not.toBe(createServerSecret());
});

test('quoted text holds no character that cannot be seen', () => {
  expect(toHoconLiteral('a\u2028b\u0085c\ufeffd\u007f"')).toBe('"a\\u2028b\\u0085c\\ufeffd\\u007f\\""');
});

describe('keys of web push', () => {
  const pair = createWebPushKeys();
  const push = { ...ANSWERS, webPushKeys: pair };

  test('are a pair of P-256, another one each time', () => {
    const ecdh = createECDH('prime256v1');
    ecdh.setPrivateKey(pair.private, 'base64url');
    expect(ecdh.getPublicKey('base64url')).toBe(pair.public);
    expect([pair.public.length, pair.private.length]).toEqual([87, 43]);
    expect(createWebPushKeys().private).not.toBe(pair.private);
  });

  test('are written where there are none, with whom push services may write to', () => {
    const { text, set } = apply(TEMPLATE, push);
    expect(set).toEqual(expect.arrayContaining(['services.web-push.public', 'services.web-push.subject']));
    expect(loaded(text).config.webPush).toEqual({ ...pair, vapidSubject: 'https://chat.example.org' });
    const again = apply(text, { ...push, webPushKeys: createWebPushKeys() });
    expect(again).toMatchObject({ text, set: [], kept: expect.arrayContaining(['services.web-push.private']) });
  });

  test.each([
    ['https://chat.example.org/klatch/', 'https://chat.example.org'],
    ['http://chat.example.org:9090', 'mailto:postmaster@chat.example.org'],
    ['http://127.0.0.1:9090', 'mailto:postmaster@localhost'],
    ['http://[::1]:9090', 'mailto:postmaster@localhost'],
  ])('have a subject by the base-uri %s', (baseUri, vapidSubject) => {
    const { text } = apply(TEMPLATE, { ...push, baseUri });
    expect(loaded(text).config.webPush?.vapidSubject).toBe(vapidSubject);
    // A base-uri that the file already has takes precedence over one that is given now.
    const begun = TEMPLATE.replace('<BASE_URI>', baseUri);
    expect(loaded(apply(begun, { ...push, baseUri: 'https://other.example' }).text).config.webPush?.vapidSubject).toBe(
      vapidSubject,
    );
  });

  test('have the subject that is given, and keep the one that is there', () => {
    const given = { ...push, webPushSubject: 'mailto:admin@example.org' };
    const { text } = apply(TEMPLATE, given);
    expect(loaded(text).config.webPush?.vapidSubject).toBe('mailto:admin@example.org');
    const begun = TEMPLATE.replace('#subject = "<WEB_PUSH_SUBJECT>"', 'subject = "mailto:ours@example.org"');
    expect(loaded(apply(begun, given).text).config.webPush).toEqual({
      ...pair,
      vapidSubject: 'mailto:ours@example.org',
    });
  });

  test.each(['public', 'private'] as const)(
    'beside half a pair, the %s key, nothing is written of the other',
    (half) => {
      const name = `<WEB_PUSH_${half.toUpperCase()}_KEY>`;
      const own = createWebPushKeys()[half];
      const begun = TEMPLATE.replace(`#${half} = "${name}"`, `${half} = "${own}"`);
      const { text, set, kept } = apply(begun, push);
      expect(set).not.toContain(`services.web-push.${half === 'public' ? 'private' : 'public'}`);
      expect(kept).toContain(`services.web-push.${half}`);
      expect(text).not.toContain(pair[half]);
    },
  );
});
