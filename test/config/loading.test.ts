import { describe, expect, test } from '@jest/globals';
import { chmodSync } from 'node:fs';
import { join, relative } from 'node:path';
import { loadConfig } from '../../src/config/load.ts';
import { describeConfig } from '../../src/config/show.ts';
import { Folder, MINIMAL, SECRET } from './folder.ts';
import { load } from './load.ts';
import { createServiceAccount } from '../push/keys.ts';

describe('a configuration that loads', () => {
  test('has the defaults of the contract where nothing is said', () => {
    const { config, warnings } = load(MINIMAL);
    expect(warnings).toEqual([]);
    expect(config).toMatchObject({
      secret: SECRET,
      projectName: 'Klatch',
      dataDir: '/var/lib/klatch',
      publicEndpoints: [],
    });
    expect(config.http).toMatchObject({ interface: '127.0.0.1', port: 9090, cors: [], maxBodyBytes: 1_048_576 });
    expect(config.http).toMatchObject({
      maxHeaderBytes: 16_384,
      requestToResponseTimeoutMs: 10_000,
      stopDrainTimeoutMs: 20_000,
    });
    expect(config.http.trustedProxies).toEqual(['127.0.0.0/8', '::1/128']);
    expect(config.postgresql).toMatchObject({
      embedded: false,
      binDir: null,
      host: '127.0.0.1',
      port: 5432,
      password: '',
    });
    expect(config.postgresql).toMatchObject({ db: 'klatch', user: 'klatch', generalPoolSize: 8, poolQueue: 1000 });
    expect(config.limits).toMatchObject({ textCodePoints: 40_000, intakePosts: 5000, intakeBytes: 67_108_864 });
    expect(config.limits).toMatchObject({
      postsPerSecondPerToken: 100,
      postBurstPerToken: 1000,
      tokenQueueTimeoutMs: 5000,
      hopLimit: 3,
    });
    expect(config.limits).toMatchObject({
      hooksPerGroup: 100,
      hookRegistrationsPerGroupPerMinute: 10,
      unknownTokenTtlMs: 5000,
    });
    expect(config.delivery).toMatchObject({
      allow: [],
      maxInFlight: 256,
      maxInFlightPerHost: 16,
      dnsConcurrency: 8,
      parkAfterMs: 259_200_000,
    });
    expect(config.delivery.retryDelaysMs).toEqual([5000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000]);
    expect(config.retention).toMatchObject({ deliveryLogMs: 604_800_000, deliveryLogRowsPerHook: 10_000 });
    expect(config.retention).toMatchObject({ idempotencyKeysMs: 86_400_000, removedHooksMs: 2_592_000_000 });
    expect(config).toMatchObject({ activation: null, googlePush: { keys: [] }, serverSigningKeys: [] });
    expect(config.log).toEqual({ level: 'info', format: 'auto' });
  });

  test('can hold every key of the original system', () => {
    const { json } = createServiceAccount('chat-1');
    const text = `
      services {
        postgresql { host: "db.example.org", db: "chat", user: "chatter", password: "p w" }
        klatch-activation { uri: "https://gate.example.org/", auth-token: "gate token" }
        google.push.keys = [{ project-id: 123456789012, key: """${json}""" }, { project-id: "chat-1", key: \${ACCOUNT} }]
      }
      http.base-uri: "HTTPS://Chat.Example.org:443/base/"
      secret: ${SECRET}
      project-name: Example Chat
      public-endpoints: ["ws://chat.example.org:9080/", "tcp://chat.example.org:9070"]
    `;
    const { config, warnings } = load(text, { ACCOUNT: json });
    expect(warnings).toEqual([]);
    expect(config.postgresql).toMatchObject({ host: 'db.example.org', db: 'chat', user: 'chatter', password: 'p w' });
    expect(config.activation).toEqual({ uri: 'https://gate.example.org', authToken: 'gate token' });
    expect(config.googlePush.keys).toEqual([
      { projectId: '123456789012', key: json },
      { projectId: 'chat-1', key: json },
    ]);
    expect(config.http.baseUri).toBe('https://chat.example.org/base');
    expect(config.projectName).toBe('Example Chat');
    expect(config.publicEndpoints).toEqual(['ws://chat.example.org:9080/', 'tcp://chat.example.org:9070']);
  });

  test('takes values from the environment, as texts too', () => {
    const text = `${MINIMAL}
      services.postgresql.password = \${?KLATCH_DB_PASSWORD}
      http.port = \${PORT}
      services.postgresql.embedded = \${?EMBEDDED}
      delivery.connect-timeout = \${TIMEOUT}`;
    const env = { KLATCH_DB_PASSWORD: 'from "outside"', PORT: '8080', EMBEDDED: 'yes', TIMEOUT: '3s' };
    const { config } = load(text, env);
    expect(config.postgresql).toMatchObject({ password: 'from "outside"', embedded: true });
    expect(config.http.port).toBe(8080);
    expect(config.delivery.connectTimeoutMs).toBe(3000);
    const { EMBEDDED: _, KLATCH_DB_PASSWORD: __, ...rest } = env;
    expect(load(text, rest).config.postgresql).toMatchObject({ password: '', embedded: false });
  });

  test('can use a default in a value of its own', () => {
    expect(load(`${MINIMAL}project-name = "The "\${project-name}" of us"`).config.projectName).toBe('The Klatch of us');
  });

  test('counts relative paths from the folder of the file that they stand in', () => {
    using folder = new Folder();
    folder.write('more/data.conf', 'data-dir = data');
    const file = folder.write(
      'server.conf',
      `${MINIMAL}include "more/data.conf"\nservices.postgresql.bin-dir = "../pg/bin"`,
    );
    const byPath = (path: string) => loadConfig(path, { env: {} }).config;
    expect(byPath(file).dataDir).toBe(join(folder.path, 'more/data'));
    expect(byPath(file).postgresql.binDir).toBe(join(folder.path, '../pg/bin'));
    expect(byPath(relative(process.cwd(), file)).dataDir).toBe(join(folder.path, 'more/data'));
    expect(byPath(relative(process.cwd(), file)).file).toBe(file);
  });

  test('leaves an activation gate out that has a token but no address, and says so', () => {
    const { config, warnings } = load(`${MINIMAL}services.klatch-activation.auth-token = "0123456789"`);
    expect(config.activation).toBeNull();
    expect(warnings).toEqual([
      expect.stringMatching(
        /server\.conf: services\.klatch-activation\.uri: is not set beside auth-token: no activation code will be sent/,
      ),
    ]);
    expect(warnings.join()).not.toContain('0123456789');
  });

  test('warns of a file that everybody can read', () => {
    using folder = new Folder();
    const file = folder.write('server.conf', MINIMAL);
    chmodSync(file, 0o644);
    const { warnings } = loadConfig(file, { env: {} });
    expect(warnings).toEqual([`${file}: can be read by every user of this machine: chmod 0640`]);
  });

  test('warns of a host that may take more deliveries than there are', () => {
    const { warnings } = load(`${MINIMAL}delivery.in-flight = 8`);
    expect(warnings).toEqual([expect.stringContaining('delivery.per-host: is more than delivery.in-flight')]);
  });

  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['127.0.0.1', '::'],
  ])('refuses one port for HTTP at %s and metrics at %s', (http, metrics) => {
    const lines = `http { interface = "${http}", port = 9090 }\nmetrics { interface = "${metrics}", port = 9090 }`;
    expect(() => load(`${MINIMAL}${lines}`)).toThrow(/metrics\.port: is 9090 like http\.port/);
    expect(() => load(`${MINIMAL}${lines}\nmetrics.enabled = false`)).not.toThrow();
  });

  test('takes one port on two interfaces, and any free one for both', () => {
    const two = 'http { interface = "127.0.0.1", port = 9090 }\nmetrics { interface = "127.0.0.2", port = 9090 }';
    expect(() => load(`${MINIMAL}${two}`)).not.toThrow();
    expect(() => load(`${MINIMAL}http.port = 0\nmetrics.port = 0`)).not.toThrow();
  });

  test('takes an object with positions for keys as a list, as the specification has it', () => {
    const { config, root } = load(`${MINIMAL}delivery.retry { 10 = 3s, 0 = 1s, 2 = 2s, last = 9s }`);
    expect(config.delivery.retryDelaysMs).toEqual([1000, 2000, 3000]);
    expect(describeConfig(root).find(({ key }) => key === 'delivery.retry')?.value).toEqual(['1s', '2s', '3s']);
    expect(() => load(`${MINIMAL}delivery.retry { last = 9s }`)).toThrow(/delivery\.retry: expected a list/);
  });

  test('takes null for an optional key as not set', () => {
    const { config } = load(`${MINIMAL}services.google.push.keys = null\nmodules.security.server-keys = null`);
    expect(config).toMatchObject({ googlePush: { keys: [] }, serverSigningKeys: [] });
  });
});
