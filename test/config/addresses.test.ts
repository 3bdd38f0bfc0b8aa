import { describe, expect, test } from '@jest/globals';
import { ConfigError } from '../../src/config/problem.ts';
import { MINIMAL, SECRET } from './folder.ts';
import { failure, load, refusal } from './load.ts';

const withBase = (uri: string): string => `secret = "${SECRET}"\nhttp.base-uri = ${JSON.stringify(uri)}`;
const withLine = (key: string, value: string): string => `${MINIMAL}${key} = ${JSON.stringify(value)}`;

describe('http.base-uri', () => {
  test.each([
    ['https://chat.example.org', 'https://chat.example.org'],
    ['https://chat.example.org/', 'https://chat.example.org'],
    ['https://chat.example.org//', 'https://chat.example.org'],
    ['https://chat.example.org/klatch/', 'https://chat.example.org/klatch'],
    ['HTTP://CHAT.example.org:80/A', 'http://chat.example.org/A'],
    ['http://10.0.0.1:9090', 'http://10.0.0.1:9090'],
    ['http://[::1]:9090/', 'http://[::1]:9090'],
    ['http://localhost:9090', 'http://localhost:9090'],
    ['https://чат.пример.рф', 'https://xn--80a0bn.xn--e1afmkfd.xn--p1ai'],
  ])('%s is read as %s', (uri, expected) => {
    expect(load(withBase(uri)).config.http.baseUri).toBe(expected);
  });

  test.each([
    ['', 'it does not begin with a scheme and "://"'],
    ['chat.example.org', 'it does not begin with a scheme and "://"'],
    ['//chat.example.org', 'it does not begin with a scheme and "://"'],
    ['/base', 'it does not begin with a scheme and "://"'],
    ['https:chat.example.org', 'it does not begin with a scheme and "://"'],
    ['https:/chat.example.org', 'it does not begin with a scheme and "://"'],
    ['https://', 'the host cannot be read'],
    ['https:///chat', 'the host cannot be read'],
    ['https://chat..example', 'the host cannot be read'],
    ['https://-chat.example', 'the host cannot be read'],
    ['https://chat_.example-', 'the host cannot be read'],
    ['https://1.2.3', 'the host cannot be read'],
    ['https://256.1.1.1', 'the host cannot be read'],
    ['https://0x7f.1', 'the host cannot be read'],
    ['https://2130706433', 'the host cannot be read'],
    ['https://[::1', 'the host cannot be read'],
    ['https://[::g]', 'the host cannot be read'],
    ['https://[fe80::1%eth0]', 'the host cannot be read'],
    ['https://::1', 'the host cannot be read'],
    ['https://a%20b', 'the host cannot be read'],
    ['https://a\\b', 'the host cannot be read'],
    [`https://${'a'.repeat(64)}.example`, 'the host cannot be read'],
    [`https://${'abcdefgh.'.repeat(29)}example`, 'the host cannot be read'],
    ['https://chat.example.org:', 'the port is not from 1 to 65535'],
    ['https://chat.example.org:0', 'the port is not from 1 to 65535'],
    ['https://chat.example.org:65536', 'the port is not from 1 to 65535'],
    ['https://chat.example.org:http', 'the host cannot be read'],
    ['https://chat.example.org?x=1', 'a query or fragment does not belong in it'],
    ['https://chat.example.org/?', 'a query or fragment does not belong in it'],
    ['https://chat.example.org/#top', 'a query or fragment does not belong in it'],
    ['https://user@chat.example.org', 'a user name or password does not belong in it'],
    ['https://user:pass@chat.example.org/', 'a user name or password does not belong in it'],
    [' https://chat.example.org', 'it holds white space'],
    ['https://chat.example.org/a b', 'it holds white space'],
    ['https://chat.example.org\n', 'it holds white space'],
    ['ftp://chat.example.org', null],
    ['ws://chat.example.org', null],
    ['file:///etc/passwd', 'the host cannot be read'],
    ['javascript://x', null],
  ])('%j is refused', (uri, because) => {
    const message = failure(ConfigError, withBase(uri));
    expect(message).toMatch(/^server\.conf:2: http\.base-uri: expected an absolute http:\/\/ or https:\/\/ address/);
    if (because === null) expect(message).toMatch(/, got "[^"]*"$/);
    else if (/[@?#]/.test(uri)) expect(message.endsWith(`, got a value that is not shown: ${because}`)).toBe(true);
    else expect(message.endsWith(`": ${because}`)).toBe(true);
  });
});

describe('public-endpoints', () => {
  test.each([
    ['ws://chat.example.org', 'ws://chat.example.org'],
    ['wss://chat.example.org/live', 'wss://chat.example.org/live'],
    ['WSS://chat.example.org:443', 'WSS://chat.example.org:443'],
    ['tcp://10.0.0.1:9070', 'tcp://10.0.0.1:9070'],
    ['tls://chat.example.org:9443/', 'tls://chat.example.org:9443'],
    ['tcp://[2001:db8::1]:9070', 'tcp://[2001:db8::1]:9070'],
  ])('%s is an endpoint', (endpoint, expected) => {
    expect(load(`${MINIMAL}public-endpoints = ["${endpoint}"]`).config.publicEndpoints).toEqual([expected]);
  });

  test.each([
    ['http://chat.example.org', ''],
    ['chat.example.org:9070', ': it does not begin with a scheme and "://"'],
    ['tcp://chat.example.org', ': tcp:// needs a port'],
    ['tls://chat.example.org', ': tls:// needs a port'],
    ['tcp://:9070', ': the host cannot be read'],
    ['tcp://chat.example.org:99999', ': the port is not from 1 to 65535'],
    ['udp://chat.example.org:1', ''],
    ['ssl://chat.example.org:1', ''],
  ])('%s is none', (endpoint, because) => {
    expect(refusal(`public-endpoints = ["ws://a.example", "${endpoint}"]`)).toBe(
      `server.conf:3: public-endpoints[1]: expected an address that begins with ws://, wss://, tcp:// or tls://, got "${endpoint}"${because}`,
    );
  });
});

test('an endpoint with a fragment is refused, and not repeated', () => {
  expect(refusal('public-endpoints = ["ws://chat.example.org/#hunter2"]')).toBe(
    'server.conf:3: public-endpoints[0]: expected an address that begins with ws://, wss://, tcp:// or tls://, got a value that is not shown: a query or fragment does not belong in it',
  );
});

test('the path of an address is not repeated, which is the secret of a webhook', () => {
  expect(refusal('public-endpoints = ["tcp://chat.example.org:9070/hunter2"]')).toMatch(
    /got "tcp:\/\/chat\.example\.org:9070\/…": tcp:\/\/ has no path$/,
  );
  expect(refusal('delivery.allow = ["https://hooks.example/services/hunter2"]')).toMatch(
    /got "https:\/\/hooks\.example\/…"$/,
  );
});

describe('hosts', () => {
  test.each(['0.0.0.0', '::', '::1', 'localhost', 'chat.example.org', 'fe80::1%eth0'])(
    '%s can be listened on',
    (host) => {
      expect(load(withLine('http.interface', host)).config.http.interface).toBe(host);
    },
  );

  test.each(['', '[::1]', '0.0.0.0:9090', '*', '256.0.0.1', 'http://localhost', '/run/x', 'a b', '1.2.3'])(
    '%j cannot be listened on',
    (host) => {
      expect(refusal(`http.interface = ${JSON.stringify(host)}`)).toBe(
        `server.conf:3: http.interface: expected an address or host name to listen on, got ${JSON.stringify(host)}`,
      );
    },
  );

  test.each([
    ['/var/run/postgresql', '/var/run/postgresql', 5432],
    ['db.example.org:6432', 'db.example.org', 6432],
    ['::1', '::1', 5432],
    ['[::1]:6432', '::1', 6432],
    ['[::1]', '::1', 5432],
  ])('a database may be at %s', (text, host, port) => {
    const { config } = load(withLine('services.postgresql.host', text));
    expect(config.postgresql).toMatchObject({ host, port, otherHosts: [] });
  });

  test('a database may have several servers, with ports of their own', () => {
    const { config } = load(`${MINIMAL}services.postgresql { host = [db1, "db2:6432", "10.0.0.3"], port = 5433 }`);
    expect(config.postgresql).toMatchObject({
      host: 'db1',
      port: 5433,
      otherHosts: [
        { host: 'db2', port: 6432 },
        { host: '10.0.0.3', port: 5433 },
      ],
    });
  });

  test.each([
    ['[]', 'expected a list of 1 to 8 items, got 0'],
    ['[a, b, c, d, e, f, g, h, i]', 'expected a list of 1 to 8 items, got 9'],
  ])('a database has not the servers %s', (value, sentence) => {
    expect(refusal(`services.postgresql.host = ${value}`)).toBe(`server.conf:3: services.postgresql.host: ${sentence}`);
  });

  test('a wrong one of several is named by its place, and not repeated', () => {
    expect(refusal('services.postgresql.host = [db1, "u:hunter2@db2"]')).toMatch(
      /^server\.conf:3: services\.postgresql\.host\[1\]: expected a host name .* got a value that is not shown: the port is/,
    );
  });

  test.each([
    ['db:0', ': the port is not from 1 to 65535'],
    ['db:x', ': the port is not from 1 to 65535'],
    ['[db]:5432', ''],
    ['./run', ''],
    ['postgres://db', ': it is a whole address, and only its host belongs here'],
    ['u@db', ''],
  ])('%s is no host of a database', (host, because) => {
    expect(refusal(`services.postgresql.host = "${host}"`)).toBe(
      `server.conf:3: services.postgresql.host: expected a host name or an address, with ":port" if it has one of its own, or the folder of a Unix socket, got a value that is not shown${because}`,
    );
  });
});

describe('delivery.allow', () => {
  test.each([
    '10.1.0.0/16',
    '10.1.2.3',
    'fd00::/8',
    '::1',
    'loopback',
    'private',
    '*.corp.example',
    'hooks.local',
    'alertmanager',
    '0.0.0.0/0',
  ])('%s can be let through', (entry) => {
    expect(load(`${MINIMAL}delivery.allow = ["${entry}"]`).config.delivery.allow).toEqual([entry]);
  });

  test.each([
    ['privat', ': did you mean "private"?'],
    ['loopbak', ': did you mean "loopback"?'],
    ['10.0.0.0/33', ''],
    ['10.0.0/8', ''],
    ['10.0.0.0/', ''],
    ['10.0.0.0/8/8', ''],
    ['::/129', ''],
    ['*', ''],
    ['*.', ''],
    ['*.10.0.0.1', ''],
    ['a.*.example', ''],
    ['http://hooks.local', ''],
    ['hooks.local:8080', ''],
    ['', ''],
  ])('%j cannot', (entry, because) => {
    expect(refusal(`delivery.allow = ["${entry}"]`)).toBe(
      `server.conf:3: delivery.allow[0]: expected a CIDR range, an address, "loopback", "private" or a host name such as "*.corp.example", got "${entry}"${because}`,
    );
  });
});

describe('other lists of addresses', () => {
  test('origins are normalised', () => {
    const { config } = load(`${MINIMAL}http.cors = ["HTTPS://Chat.example.org:443/", "http://localhost:3000"]`);
    expect(config.http.cors).toEqual(['https://chat.example.org', 'http://localhost:3000']);
    expect(load(`${MINIMAL}http.cors = ["*"]`).config.http.cors).toEqual(['*']);
  });

  test.each(['chat.example.org', 'https://a.example/x', 'null', 'https://*.example'])('%s is no origin', (entry) => {
    expect(refusal(`http.cors = ["${entry}"]`)).toContain(
      'http.cors[0]: expected an origin such as "https://chat.example.org", or "*", got',
    );
  });

  test('proxies come out as ranges', () => {
    const { config } = load(`${MINIMAL}http.trusted-proxies = ["private", "203.0.113.7"]`);
    expect(config.http.trustedProxies).toEqual([
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      'fc00::/7',
      '203.0.113.7',
    ]);
    expect(refusal('http.trusted-proxies = ["proxy.example"]')).toContain(
      'http.trusted-proxies[0]: expected a CIDR range',
    );
  });
});
