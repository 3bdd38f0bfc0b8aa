import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { TestGate } from '../support/gate.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { TestServer } from '../support/server.ts';

interface Started {
  readonly transaction: string;
  readonly channel: string;
  readonly expires_at: string;
  readonly resend_at: string;
}

let gate: TestGate;
let mail: TestMailServer;
let server: TestServer;
beforeAll(async () => {
  [gate, mail] = await Promise.all([TestGate.start(), TestMailServer.start()]);
  const limits = { codesPerSourcePerHour: 1_000, codesPerHourPerBudget: 1_000 };
  server = await TestServer.start({ registration: 'open', activation: gate.config, smtp: mail.config(), limits });
});
afterAll(async () => {
  await server.stop();
  await Promise.all([gate.stop(), mail.stop()]);
});
afterEach(() => {
  gate.handle = null;
});

const start = (address: string, more: object = {}): Promise<Started> =>
  callAs(server, null, 'auth.start', { address, ...more });
const verify = (transaction: string, code: string) => callAs(server, null, 'auth.verify', { transaction, code });
const signUp = (transaction: string, nick: string, more: object = {}) =>
  callAs(server, null, 'auth.sign-up', { transaction, nick, ...more });
/** Makes the codes of an address a minute older. */
const letTimePass = (address: string) =>
  server.database.query(
    (sql) => sql`update activation set sent_at = sent_at - interval '61 s' where address = ${address}`,
  );

/** Signs up by e-mail; resolves with the session. */
async function comeIn(address: string, nick: string): Promise<{ token: string }> {
  const { transaction } = await start(address);
  await verify(transaction, await mail.codeTo(address.toLowerCase()));
  return signUp(transaction, nick);
}

describe('a person', () => {
  const ways: Record<string, () => Promise<{ token: string }>> = {
    'a telephone and the gate': async () => {
      const { transaction } = await start('+44 1632 960100');
      await verify(transaction, await gate.codeOf(441632960100));
      return signUp(transaction, 'by-gate');
    },
    'e-mail': () => comeIn('by-mail@example.org', 'by-mail'),
    "an administrator's link": async () => {
      await server.operate('accounts.create', { nick: 'by-link' });
      const { link } = await server.operate<{ link: string }>('accounts.invite', { user: 'by-link' });
      return callAs(server, null, 'auth.verify', { link });
    },
  };
  test.each(Object.keys(ways))('comes from nothing to a first message, by %s', async (way) => {
    const person = await ways[way]!();
    const { id } = await callAs(server, person, 'groups.create', { title: way });
    const sent = await callAs(server, person, 'messages.send', { conversation: id, text: 'first' });
    const { messages } = await callAs(server, person, 'messages.history', { conversation: id });
    expect(messages).toEqual([expect.objectContaining({ id: sent.id, text: 'first' })]);
  });

  test('comes to a session with a telephone, whose gate alone judges the code', async () => {
    const started = await start('+49 (170) 123-4567');
    expect(started).toEqual({
      transaction: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      channel: 'phone',
      expires_at: expect.any(String),
      resend_at: expect.any(String),
    });
    const [expires, resend] = [Date.parse(started.expires_at), Date.parse(started.resend_at)];
    expect(expires - resend).toBe(24 * 3_600_000 - 60_000);
    const code = await gate.codeOf(491701234567);
    expect(code).toMatch(/^\d{6}$/);
    expect(await verify(started.transaction, code)).toEqual({ status: 'sign_up', transaction: started.transaction });
    const signedIn = await signUp(started.transaction, 'Alice', { name: 'Alice Example', label: 'phone' });
    expect(signedIn).toEqual({
      status: 'signed_in',
      token: expect.stringMatching(/^kls_/),
      session: expect.any(Number),
      account: { id: expect.any(Number), kind: 'user', nick: 'alice', name: 'Alice Example', role: 'user' },
    });
    for (const { token } of gate.requests) expect(token).toBe('gate-token');
    expect(gate.sent.map(({ body }) => body)).toContainEqual({ phone: 491701234567, code });
  });

  test('comes in by e-mail, and the second time signs in without signing up', async () => {
    const first = await comeIn('Bob@Example.ORG', 'bob');
    await letTimePass('bob@example.org');
    mail.letters.length = 0;
    const { transaction, channel } = await start(' bob@example.org ');
    expect(channel).toBe('email');
    const again = await verify(transaction, await mail.codeTo('bob@example.org'));
    expect(again).toMatchObject({ status: 'signed_in', account: { nick: 'bob', name: 'bob' } });
    expect(again.token).not.toBe(first.token);
    expect(await callAs(server, again, 'conversations.list')).toMatchObject({ conversations: [] });
    await expect(verify(transaction, await mail.codeTo('bob@example.org'))).rejects.toMatchObject({
      code: 'activation_expired',
      status: 410,
    });
  });

  test('keeps the transaction when the nick is taken, and takes another one', async () => {
    await server.operate('accounts.create', { nick: 'taken' });
    const { transaction } = await start('carol@example.org');
    await expect(signUp(transaction, 'carol')).rejects.toMatchObject({ code: 'activation_expired' });
    await verify(transaction, await mail.codeTo('carol@example.org'));
    await expect(signUp(transaction, 'TAKEN')).rejects.toMatchObject({ code: 'nick_taken', status: 409 });
    expect(await signUp(transaction, 'carol')).toMatchObject({ account: { nick: 'carol' } });
    await expect(signUp(transaction, 'carol2')).rejects.toMatchObject({ code: 'activation_expired' });
  });

  test('may sign up once with one transaction, whoever else tries at the same time', async () => {
    const { transaction } = await start('dora@example.org');
    await verify(transaction, await mail.codeTo('dora@example.org'));
    const nicks = Array.from({ length: 8 }, (_, index) => `dora${index}`);
    const results = await Promise.allSettled(nicks.map((nick) => signUp(transaction, nick)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'activation_expired' });
    }
    const rows = await server.database.query((sql) => sql`select nick from account where nick like 'dora%'`);
    expect(rows).toHaveLength(1);
  });

  test('gets a nick that several want at once, or the sentence that it is taken', async () => {
    const addresses = Array.from({ length: 4 }, (_, index) => `eve${index}@example.org`);
    const transactions = await Promise.all(
      addresses.map(async (address) => {
        const { transaction } = await start(address);
        await verify(transaction, await mail.codeTo(address));
        return transaction;
      }),
    );
    const results = await Promise.allSettled(transactions.map((transaction) => signUp(transaction, 'eve')));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'nick_taken' });
    }
  });

  test('has one account by an address, though two transactions proved it', async () => {
    const first = await start('frank@example.org');
    const firstCode = await mail.codeTo('frank@example.org');
    await verify(first.transaction, firstCode);
    await letTimePass('frank@example.org');
    mail.letters.length = 0;
    const second = await start('frank@example.org');
    await verify(second.transaction, await mail.codeTo('frank@example.org'));
    const results = await Promise.allSettled([
      signUp(first.transaction, 'frank'),
      signUp(second.transaction, 'frank2'),
    ]);
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = results.find((result) => result.status === 'rejected')!;
    expect(refused.reason).toMatchObject({ code: 'activation_expired' });
  });
});

describe('guessing', () => {
  test('a hundred guesses at once get three attempts, and the right code is too late then', async () => {
    const { transaction } = await start('guessed@example.org');
    const code = await mail.codeTo('guessed@example.org');
    const wrong = (index: number): string => String((Number(code) + 1 + index) % 1_000_000).padStart(6, '0');
    // Callers of the control socket are not throttled, so only the limit of attempts can stop them.
    const guess = (text: string) => server.operate('auth.verify', { transaction, code: text });
    const results = await Promise.allSettled(Array.from({ length: 100 }, (_, index) => guess(wrong(index))));
    const sentences = results.map((result) => (result.status === 'rejected' ? String(result.reason) : 'accepted'));
    expect(sentences.filter((text) => text.includes('This is not the code that was sent'))).toHaveLength(3);
    expect(sentences.filter((text) => text.includes('has expired'))).toHaveLength(97);
    await expect(guess(code)).rejects.toThrow('has expired');
  });

  test("of the gate's codes is bounded by us, whatever the gate allows", async () => {
    const { transaction } = await start('+441632960001');
    const code = await gate.codeOf(441632960001);
    const asked = gate.requests.length;
    const wrong = code === '000000' ? '000001' : '000000';
    const guess = (text: string) => server.operate('auth.verify', { transaction, code: text });
    await Promise.allSettled(Array.from({ length: 20 }, () => guess(wrong)));
    expect(gate.requests.length - asked).toBe(3);
    await expect(guess(code)).rejects.toThrow('has expired');
  });

  test('says how many attempts are left, and ill-formed codes cost none', async () => {
    const { transaction } = await start('typo@example.org');
    const code = await mail.codeTo('typo@example.org');
    const wrong = code === '111111' ? '111112' : '111111';
    for (const text of ['', '12345', '1234567', 'abcdef', '１２３４５６']) {
      await expect(verify(transaction, text)).rejects.toMatchObject({ code: 'invalid_input' });
    }
    await expect(verify(transaction, wrong)).rejects.toThrow('attempts left: 2');
    await expect(verify(transaction, wrong)).rejects.toThrow('attempts left: 1');
    expect(await verify(transaction, ` ${code} `)).toMatchObject({ status: 'sign_up' });
  });

  test('is slowed for who tries on and on', async () => {
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => verify('A'.repeat(43), '000000')));
    const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'accepted'));
    expect(new Set(codes)).toEqual(new Set(['activation_expired', 'rate_limited']));
    expect(codes.filter((code) => code === 'rate_limited').length).toBeGreaterThan(50);
  });
});
