import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { TestGate, send } from '../support/gate.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { createPerson } from '../support/people.ts';
import { recordingLog } from '../support/recording-log.ts';
import { TestServer } from '../support/server.ts';
import type { ConfigChanges } from '../support/config.ts';

let gate: TestGate;
let mail: TestMailServer;
let server: TestServer;
let log: string[];
beforeEach(async () => {
  [gate, mail] = await Promise.all([TestGate.start(), TestMailServer.start()]);
});
afterEach(async () => {
  await server.stop();
  await Promise.all([gate.stop(), mail.stop()]);
});

async function startServer(changes: ConfigChanges = {}): Promise<void> {
  log = [];
  const ways = { activation: gate.config, smtp: mail.config() };
  server = await TestServer.start({ ...ways, ...changes }, { log: recordingLog(log) });
}
const start = (address: string, more: object = {}) => callAs(server, null, 'auth.start', { address, ...more });
const verify = (transaction: string, code: string) => callAs(server, null, 'auth.verify', { transaction, code });
const giveAddress = (user: string, address: string) => server.operate('accounts.update', { user, address });

describe('whether an address is known', () => {
  test('is told by no answer, and strangers get no code where nobody may sign up uninvited', async () => {
    for (const registration of ['invite', 'closed'] as const) {
      await startServer({ registration });
      await createPerson(server, 'alice');
      await giveAddress('alice', 'alice@example.org');
      await giveAddress('alice', '+441632960001');
      const answers = [];
      for (const address of ['alice@example.org', 'nobody@example.org', '+441632960001', '+441632960002']) {
        answers.push(await start(address));
      }
      for (const answer of answers) {
        expect(Object.keys(answer)).toEqual(['transaction', 'channel', 'expires_at', 'resend_at']);
        expect(answer.transaction).toHaveLength(43);
      }
      const code = await mail.codeTo('alice@example.org');
      await gate.codeOf(441632960001);
      expect(mail.letters.map(({ to }) => to)).toEqual([['alice@example.org']]);
      expect(gate.sent.map(({ body }) => body.phone)).toEqual([441632960001]);
      const wrong = code === '000000' ? '000001' : '000000';
      // The sequence of refusals is the same for addresses with and without an account.
      for (const { transaction } of answers) {
        for (const sentence of ['attempts left: 2', 'attempts left: 1', 'the last attempt', 'has expired']) {
          await expect(verify(transaction, wrong)).rejects.toThrow(sentence);
        }
      }
      await expect(start('nobody@example.org')).rejects.toThrow(/another one can be sent in \d+ s/);
      await expect(start('alice@example.org')).rejects.toThrow(/another one can be sent in \d+ s/);
      await server.stop();
      mail.letters.length = 0;
      gate.requests.length = 0;
    }
    await startServer();
  });

  test('is told to who proved it alone: a deactivated account gets no code, and no session by an older one', async () => {
    await startServer({ registration: 'open' });
    await createPerson(server, 'alice');
    await giveAddress('alice', 'alice@example.org');
    const { transaction } = await start('alice@example.org');
    const code = await mail.codeTo('alice@example.org');
    await server.operate('accounts.deactivate', { user: 'alice' });
    await expect(verify(transaction, code)).rejects.toMatchObject({
      code: 'forbidden',
      message: 'This account is deactivated: ask the administrator',
    });
    await server.database.query((sql) => sql`update activation set sent_at = sent_at - interval '61 s'`);
    mail.letters.length = 0;
    await start('alice@example.org');
    // E-mails are sent in order: an e-mail to Alice would arrive before this one to Bob.
    await start('bob@example.org');
    await mail.letterTo('bob@example.org');
    expect(mail.letters).toHaveLength(1);
  });

  test('is not to be had from how long an answer takes: the letter leaves after it', async () => {
    await mail.stop();
    const held: (() => void)[] = [];
    mail = await TestMailServer.start({ onMailFrom: (_from, _session, done) => void held.push(() => done()) });
    await startServer({ registration: 'open' });
    // The mail server accepts no sender until the test allows it. An answer that waited for the e-mail would not come.
    const { transaction } = await start('alice@example.org');
    await eventually(
      () => Promise.resolve(held.length),
      (count) => count === 1,
    );
    expect(mail.letters).toEqual([]);
    held.splice(0).forEach((go) => go());
    await verify(transaction, await mail.codeTo('alice@example.org'));
  });

  test('shows in no row: names of transactions, codes and sources are kept as hashes', async () => {
    await startServer({ registration: 'open' });
    const { transaction } = await start('alice@example.org');
    const code = await mail.codeTo('alice@example.org');
    const [row] = await server.database.query(
      (sql) => sql<{ text: string }[]>`select a::text as text from activation a`,
    );
    expect(row!.text).toContain('alice@example.org');
    for (const secret of [transaction, code, '127.0.0.1']) expect(row!.text).not.toContain(secret);
  });
});

describe('an invitation', () => {
  const invitation = async (more: object = {}): Promise<{ group: number; link: string; token: string }> => {
    const { id } = await server.createGroup('Invited');
    const { link } = await server.operate<{ link: string }>('invites.create', { group: id, ...more });
    return { group: id, link, token: link.split('/').at(-1)! };
  };

  test('lets a stranger in, and into its group, where nobody may sign up without', async () => {
    await startServer({ registration: 'invite' });
    const { group, link, token } = await invitation({ max_uses: 1 });
    const { transaction } = await start('alice@example.org', { invite: link });
    await verify(transaction, await mail.codeTo('alice@example.org'));
    const signUp = (invite?: string) => callAs(server, null, 'auth.sign-up', { transaction, nick: 'alice', invite });
    await expect(signUp()).rejects.toMatchObject({ code: 'registration_closed', status: 403 });
    await expect(signUp('x'.repeat(43))).rejects.toMatchObject({ code: 'invalid_invite', status: 410 });
    const alice = await signUp(token);
    expect((await callAs(server, alice, 'conversations.list')).conversations).toEqual([
      expect.objectContaining({ id: group, role: 'member' }),
    ]);
    await expect(start('bob@example.org', { invite: token })).rejects.toMatchObject({ code: 'invalid_invite' });
  });

  test('for one makes one account, though two sign up with it at once', async () => {
    await startServer({ registration: 'invite' });
    const { token: invite } = await invitation({ max_uses: 1 });
    const transactions = await Promise.all(
      ['one@example.org', 'two@example.org'].map(async (address) => {
        const { transaction } = await start(address, { invite });
        await verify(transaction, await mail.codeTo(address));
        return transaction as string;
      }),
    );
    const results = await Promise.allSettled(
      transactions.map((transaction, index) =>
        callAs(server, null, 'auth.sign-up', { transaction, nick: `guest${index}`, invite }),
      ),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(results.find((result) => result.status === 'rejected')!.reason).toMatchObject({ code: 'invalid_invite' });
    const accounts = await server.database.query((sql) => sql`select from account where nick like 'guest%'`);
    expect(accounts).toHaveLength(1);
  });

  test('opens nothing where only the administrator gives accounts', async () => {
    await startServer({ registration: 'closed' });
    const { token: invite } = await invitation();
    await start('alice@example.org', { invite });
    await createPerson(server, 'bob');
    await giveAddress('bob', 'bob@example.org');
    await start('bob@example.org', { invite });
    await mail.letterTo('bob@example.org');
    expect(mail.letters).toHaveLength(1);
    await expect(
      callAs(server, null, 'auth.sign-up', { transaction: 'x', nick: 'alice', invite }),
    ).rejects.toMatchObject({ code: 'registration_closed' });
  });
});

describe('codes are limited', () => {
  const letTimePass = (interval: string) =>
    server.database.query((sql) => sql`update activation set sent_at = sent_at - ${interval}::interval`);

  test('for one address and network, however the address is written', async () => {
    await startServer({ registration: 'open', limits: { dailyCodesPerAddressAndNetwork: 2 } });
    await start('alice@example.org');
    await expect(start('ALICE@EXAMPLE.ORG')).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
    await letTimePass('61 s');
    await start(' Alice@example.org');
    await letTimePass('61 s');
    await expect(start('alice@example.org')).rejects.toThrow('At most 2 codes are sent to one address in 24 hours');
    await start('bob@example.org');
    await letTimePass('24 hours');
    await start('alice@example.org');
  });

  test('for one source, and a restart does not forget', async () => {
    await startServer({ registration: 'invite', limits: { codesPerSourcePerHour: 3 } });
    for (const name of ['a', 'b', 'c']) await start(`${name}@example.org`);
    await expect(start('d@example.org')).rejects.toThrow('Too many codes were asked for from your network');
    await server.restart();
    await expect(start('d@example.org')).rejects.toMatchObject({ code: 'rate_limited' });
    await letTimePass('1 hour');
    await start('d@example.org');
  });

  test('for the whole installation, where strangers that get none do not count', async () => {
    await startServer({ registration: 'invite', limits: { codesPerHourPerBudget: 2 } });
    for (const nick of ['alice', 'bob', 'carol']) {
      await createPerson(server, nick);
      await giveAddress(nick, `${nick}@example.org`);
    }
    for (const name of ['x', 'y', 'z']) await start(`${name}@example.org`);
    await start('alice@example.org');
    await start('bob@example.org');
    await expect(start('carol@example.org')).rejects.toThrow('This server sends no more codes in this hour');
    await expect(start('stranger@example.org')).rejects.toThrow('This server sends no more codes in this hour');
  });

  test('though many ask at once', async () => {
    await startServer({ registration: 'open', limits: { codesPerSourcePerHour: 5 } });
    const results = await Promise.allSettled(
      Array.from({ length: 20 }, (_, index) => start(`many${index}@example.org`)),
    );
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    const one = await Promise.allSettled(
      Array.from({ length: 5 }, () => server.operate('auth.start', { address: 'one@example.org' })),
    );
    expect(one.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });
});

describe('a provider that is away', () => {
  test('is told for every address alike, and the log names neither address nor code', async () => {
    await startServer({ registration: 'invite' });
    await createPerson(server, 'alice');
    await giveAddress('alice', '+441632960001');
    gate.handle = (_request, res) => send(res, 503, {});
    for (const address of ['+441632960001', '+441632960002']) {
      await expect(start(address)).rejects.toMatchObject({ code: 'provider_unavailable', status: 503 });
    }
    expect(gate.sent).toEqual([]);
    expect(log.filter((line) => line.includes('a provider of codes is away'))).not.toEqual([]);
    expect(log.join('\n')).not.toMatch(/441632960001|gate-token/);
  });

  test('in the middle costs no attempt', async () => {
    await startServer({ registration: 'open' });
    const { transaction } = await start('+441632960001');
    const code = await gate.codeOf(441632960001);
    gate.handle = (_request, res) => void res.destroy();
    for (let count = 0; count < 4; count += 1) {
      await expect(verify(transaction, code)).rejects.toMatchObject({ code: 'provider_unavailable' });
    }
    gate.handle = null;
    expect(await verify(transaction, code)).toMatchObject({ status: 'sign_up' });
  });

  test('that refuses an address is in the log without it', async () => {
    await startServer({ registration: 'open' });
    gate.handle = (request, res) => {
      if (request.method === 'POST') send(res, 400, { $type: 'BadRequest', message: String(request.body.phone) });
      else gate.answer(request, res);
    };
    const { transaction } = await start('+441632960001');
    await eventually(
      () => Promise.resolve(log.join('\n')),
      (text) => text.includes('a code could not be sent'),
    );
    expect(log.join('\n')).toContain('"failure":"address"');
    expect(log.join('\n')).not.toContain('441632960001');
    await expect(verify(transaction, '000000')).rejects.toMatchObject({ code: 'invalid_code' });
  });
});

describe('an installation', () => {
  test('without a way to send codes says who can help', async () => {
    await startServer({ activation: null, smtp: null });
    await expect(start('alice@example.org')).rejects.toThrow('ask its administrator for a sign-in link');
  });

  test('says which addresses it can reach', async () => {
    await startServer({ activation: null });
    await expect(start('+441632960001')).rejects.toThrow('this server sends no codes to telephones');
    await expect(start('alice@example.org', { provider: 'gate' })).rejects.toThrow(
      'gate does not send to such addresses here; leave it out to let the server choose',
    );
    await expect(start('alice')).rejects.toThrow('give an e-mail address such as alice@example.org');
    await expect(start('alice@example.org\r\nbcc: eve@example.org')).rejects.toThrow('is not an e-mail address');
  });
});
