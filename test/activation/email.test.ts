import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { SMTPServerOptions } from 'smtp-server';
import { EmailCodeProvider, parseSender, type EmailOptions } from '../../src/activation/email.ts';
import type { SmtpConfig } from '../../src/config/services.ts';
import { DEFAULT_EMAIL_TEMPLATE } from '../../src/config/email-template.ts';
import { selfSigned } from '../outbound/fixture.ts';
import { within } from '../run/machine-speed.ts';
import { TestMailServer } from '../support/mail-server.ts';

const CODE = { address: 'alice@example.org', code: '123456', validMs: 24 * 3_600_000 };
const LOGIN = { user: 'klatch', password: 'mail secret' };

let tls: { key: string; cert: string };
beforeAll(() => {
  tls = selfSigned();
});

const servers: TestMailServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
async function mailServer(options: SMTPServerOptions = {}): Promise<TestMailServer> {
  const server = await TestMailServer.start(options);
  servers.push(server);
  return server;
}
const email = (config: SmtpConfig, more: Partial<EmailOptions> = {}): EmailCodeProvider =>
  new EmailCodeProvider(config, {
    emailTemplate: DEFAULT_EMAIL_TEMPLATE,
    projectName: 'Klatch of Ünit',
    probeTimeoutMs: 20_000,
    sendTimeoutMs: 20_000,
    ...more,
  });

describe('a letter', () => {
  test('arrives with its code, its sender, and no attachment or second recipient', async () => {
    const server = await mailServer();
    expect(await email(server.config()).send(CODE)).toBeNull();
    const { from, to, mail, raw } = await server.letterTo('alice@example.org');
    expect({ from, to }).toEqual({ from: 'klatch@example.org', to: ['alice@example.org'] });
    expect(mail.subject).toBe('123456 is your code for Klatch of Ünit');
    expect(mail.from).toMatchObject({ name: 'Klatch', address: 'klatch@example.org' });
    expect(mail.to).toEqual([expect.objectContaining({ address: 'alice@example.org' })]);
    expect(mail.text).toContain('Your code for Klatch of Ünit is 123456');
    expect(mail.text).toContain('it is good for one day');
    expect(mail.attachments).toEqual([]);
    expect(raw).toMatch(/^Auto-Submitted: auto-generated\r?$/m);
  });

  test('holds nothing but text, whatever the name of the installation looks like', async () => {
    const server = await mailServer();
    const projectName = '{code}\r\nBcc: eve@example.org\r\n\r\n<img src="file:///etc/passwd">';
    await email(server.config(), { projectName }).send(CODE);
    const { to, mail } = await server.letterTo('alice@example.org');
    expect(to).toEqual(['alice@example.org']);
    expect(mail.headers.filter(({ key }) => key === 'bcc')).toEqual([]);
    expect(mail.html).toBeUndefined();
    expect(mail.subject).toContain('Bcc: eve@example.org');
  });

  test('is the one of the installation where it has one', async () => {
    const server = await mailServer();
    const emailTemplate = { subject: 'Grüße von {project}', text: 'Code: {code}, {hours} h\n' };
    await email(server.config({ from: '"Die Zentrale, Nord" <post@example.org>' }), { emailTemplate }).send(CODE);
    const { mail } = await server.letterTo('alice@example.org');
    expect(mail.subject).toBe('Grüße von Klatch of Ünit');
    expect(mail.text).toContain('Code: 123456, 24 h');
    expect(mail.from).toMatchObject({ name: 'Die Zentrale, Nord', address: 'post@example.org' });
  });
});

describe('a mail server', () => {
  test('gets the letter encrypted and after a login, by STARTTLS and by TLS from the beginning', async () => {
    for (const secure of [false, true]) {
      const server = await mailServer({ ...tls, secure });
      const client = email(server.config(LOGIN), { ca: tls.cert });
      await client.probe();
      await client.send(CODE);
      expect(await server.letterTo('alice@example.org')).toMatchObject({ secure: true, user: 'klatch' });
    }
  });

  test('whose certificate nobody vouches for gets no login and no letter', async () => {
    let logins = 0;
    const server = await mailServer({
      ...tls,
      onAuth: (_auth, _session, done) => {
        logins += 1;
        done(null, { user: 'x' });
      },
    });
    await expect(email(server.config(LOGIN)).send(CODE)).rejects.toMatchObject({ failure: 'tls' });
    expect(server.letters).toEqual([]);
    expect(logins).toBe(0);
    // smtp-server is not used here: with it, Node 24.21 crashes if a client in the same process breaks off the TLS
    // handshake.
    let bytes = 0;
    const implicit = createTlsServer(tls, (socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => (bytes += chunk.length));
      socket.write('220 hello\r\n');
    });
    implicit.on('tlsClientError', () => {});
    implicit.listen(0, '127.0.0.1');
    await once(implicit, 'listening');
    const { port } = implicit.address() as AddressInfo;
    const client = email({ ...server.config(LOGIN), port, tls: 'implicit' });
    await expect(client.send(CODE)).rejects.toMatchObject({ failure: 'tls' });
    expect(bytes).toBe(0);
    implicit.close();
    await once(implicit, 'close');
  });

  test('that has no STARTTLS gets no login where the configuration asks for encryption', async () => {
    const server = await mailServer({ hideSTARTTLS: true, disabledCommands: ['STARTTLS'] });
    await expect(email(server.config({ ...LOGIN, tls: 'starttls' })).probe()).rejects.toMatchObject({ failure: 'tls' });
    expect(server.letters).toEqual([]);
  });

  test('that refuses the login is away, and the password is in no error', async () => {
    const server = await mailServer({ allowInsecureAuth: true });
    const error = await email(server.config({ user: 'klatch', password: 'wrong secret' }))
      .probe()
      .catch((each: unknown) => each);
    expect(error).toMatchObject({ name: 'ProviderError', failure: 'login' });
    expect(String(error) + JSON.stringify(error)).not.toMatch(/wrong secret|klatch/);
    await email(server.config(LOGIN)).probe();
  });

  test('that refuses the recipient says so without the address', async () => {
    const server = await mailServer({
      onRcptTo: ({ address }, _session, done) => done(new Error(`no such mailbox: ${address}`)),
    });
    const client = email(server.config());
    await client.probe();
    const error = await client.send(CODE).catch((each: unknown) => each);
    expect(error).toMatchObject({ failure: 'address', detail: expect.stringContaining('answer 550') });
    expect(String(error) + JSON.stringify(error)).not.toContain('alice');
  });

  test('that is silent, or greets a byte at a time, is given up in time', async () => {
    for (const drips of [false, true]) {
      const sockets = new Set<NodeJS.Timeout>();
      const server = createServer((socket) => {
        socket.on('error', () => {});
        const drip = setInterval(() => drips && socket.write('2'), 50);
        sockets.add(drip);
        socket.once('close', () => clearInterval(drip));
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const config = { ...(await mailServer()).config(), port: (server.address() as AddressInfo).port };
      const startedAt = performance.now();
      const hasty = email(config, { probeTimeoutMs: 1_000, sendTimeoutMs: 1_500 });
      await expect(hasty.probe()).rejects.toMatchObject({ failure: 'timeout' });
      await expect(hasty.send(CODE)).rejects.toMatchObject({ failure: 'timeout' });
      expect(performance.now() - startedAt).toBeLessThan(within(12_000));
      server.close();
      await once(server, 'close');
    }
  });

  test('that is not there is away', async () => {
    const server = await TestMailServer.start();
    const config = server.config();
    await server.stop();
    await expect(email(config).probe()).rejects.toMatchObject({ failure: 'connection' });
  });

  test('is let go of when the server stops', async () => {
    const server = await mailServer({ onMailFrom: () => {} });
    const client = email(server.config());
    const sending = client.send(CODE);
    sending.catch(() => {});
    while (server.connections === 0) await new Promise((resolve) => setImmediate(resolve));
    await client.stop();
    await expect(sending).rejects.toMatchObject({ failure: 'stopped' });
  });
});

test('a sender is one address, with or without a name', () => {
  expect(parseSender('klatch@example.org')).toEqual({ name: '', address: 'klatch@example.org' });
  expect(parseSender('Klatch <klatch@example.org>')).toEqual({ name: 'Klatch', address: 'klatch@example.org' });
  for (const text of ['', '@', 'a@b.c, d@e.f', 'Group: a@b.c, d@e.f;', 'Klatch <>']) {
    expect(parseSender(text)).toBeNull();
  }
});
