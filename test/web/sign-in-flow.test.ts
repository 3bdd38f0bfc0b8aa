import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { ServerError } from '../../client/core/chat-error.ts';
import type { Decoder } from '../../client/core/decode.ts';
import type { SignedInAccount } from '../../web/core/browser-session.ts';
import { SHARED_COMPUTER_SESSION_S, SignInFlow } from '../../web/core/sign-in/sign-in-flow.ts';
import { TestBrowser } from '../http/browser/cookies.ts';
import { TestMailServer } from '../support/mail-server.ts';
import { TestServer } from '../support/server.ts';
import type { WireResponse } from '../http/wire.ts';

const LIMITS = { codesPerSourcePerHour: 1_000, unknownTokensPerSecondPerSource: 100_000 };

let mail: TestMailServer;
let server: TestServer;
beforeAll(async () => {
  mail = await TestMailServer.start();
  server = await TestServer.start({ registration: 'invite', smtp: mail.config(), limits: LIMITS });
});
afterEach(() => {
  mail.letters.splice(0);
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
});

/** Makes a sign-in flow, whose requests a browser sends to a real server. */
function startFlow(invite: string | null = null) {
  const browser = new TestBrowser(server);
  const read = <Answer>({ status, body }: WireResponse, decode: Decoder<Answer>): Answer => {
    if (status >= 400) throw new ServerError(body.code, body.message);
    return decode(body);
  };
  const signedIn: { nick: string; pendingInvite: string | null }[] = [];
  const flow = new SignInFlow({
    api: {
      get: async (path, decode) => read(await browser.send({ method: 'GET', path: `/${path}` }), decode),
      call: async (operation, input, decode) => read(await browser.call(operation, input), decode),
      openSession: async (proof) => {
        const response = await browser.send({ path: '/v1/session', body: JSON.stringify(proof) });
        return read(response, (body) => {
          const { account } = body as { account?: SignedInAccount };
          return account === undefined ? null : { account, expiresAt: null };
        });
      },
    },
    invite,
    onSignedIn: async ({ account }, pendingInvite) => {
      signedIn.push({ nick: account.nick, pendingInvite });
    },
  });
  return { flow, browser, signedIn };
}

async function createUser(nick: string): Promise<string> {
  const address = `${nick}@example.org`;
  await server.operate('accounts.create', { nick, name: nick });
  await server.operate('accounts.update', { user: nick, address });
  return address;
}

async function createInvite(): Promise<string> {
  const { id: group } = await server.createGroup();
  return (await server.operate<{ link: string }>('invites.create', { group })).link;
}

/** The seconds for which the session of a browser lasts from its beginning. */
async function lifetimeS(browser: TestBrowser): Promise<number> {
  const { session } = (await browser.send({ method: 'GET', path: '/v1/session' })).body;
  const [row] = await server.database.query(
    (sql) => sql<{ s: string }[]>`
      select round(extract(epoch from expires_at - created_at)) as s from session where id = ${session}`,
  );
  return Number(row!.s);
}

describe('the way to a session', () => {
  test('is what the server offers', async () => {
    const { flow } = startFlow();
    await flow.readWays();
    expect(flow.ways.value).toEqual({ email: true, phone: false, registration: 'invite' });
  });

  test('on a computer that others use ends after 12 hours', async () => {
    const address = await createUser('alice');
    const { flow, browser, signedIn } = startFlow();
    flow.isSharedComputer.value = true;
    await flow.requestCode(` ${address} `);
    const code = await mail.codeTo(address);
    await flow.enterCode(`${code.slice(0, 3)} ${code.slice(3)}`);
    expect([flow.problem.value, signedIn]).toEqual([null, [{ nick: 'alice', pendingInvite: null }]]);
    expect(await lifetimeS(browser)).toBe(SHARED_COMPUTER_SESSION_S);
  });

  test('has no further attempt after three wrong codes', async () => {
    const address = await createUser('bob');
    const { flow } = startFlow();
    await flow.requestCode(address);
    const code = await mail.codeTo(address);
    const wrong = code === '000000' ? '000001' : '000000';
    const states: unknown[] = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await flow.enterCode(wrong);
      const step = flow.step.value;
      states.push([step.name === 'code' && step.acceptsCode, flow.problem.value?.field]);
    }
    expect(states).toEqual([
      [true, 'code'],
      [true, 'code'],
      [false, 'code'],
    ]);
    // The server also refuses the right code as too late.
    await flow.enterCode(code);
    expect(flow.problem.value).toMatchObject({ field: null, sentence: expect.stringContaining('start it again') });
  });

  test('waits for another code a minute at most, whatever the clock of the browser says', async () => {
    const address = await createUser('carol');
    const { flow } = startFlow();
    await flow.requestCode(address);
    const step = flow.step.value;
    expect(step.name).toBe('code');
    const waitMs = step.name === 'code' ? step.resendAt - Date.now() : 0;
    expect(waitMs).toBeLessThanOrEqual(60_000);
    expect(waitMs).toBeGreaterThan(0);
    await flow.requestCode(address);
    expect(flow.problem.value).toMatchObject({ field: null, sentence: expect.stringMatching(/can be sent in \d+ s/) });
    // The code that was sent earlier can still be typed.
    expect(flow.step.value).toEqual(step);
  });

  test('of a new address leads through a nick into the group of its invitation', async () => {
    const invite = await createInvite();
    const { flow, signedIn, browser } = startFlow(invite);
    await flow.requestCode('dora@example.org');
    await flow.enterCode(await mail.codeTo('dora@example.org'));
    expect(flow.step.value).toMatchObject({ name: 'account', address: 'dora@example.org' });
    await flow.signUp('alice', '');
    expect(flow.problem.value).toEqual({ field: 'nick', sentence: 'This nick is taken' });
    await flow.signUp('dora', ' Dora ');
    expect(signedIn).toEqual([{ nick: 'dora', pendingInvite: null }]);
    const { body } = await browser.call('conversations.list');
    expect(body.conversations).toHaveLength(1);
  });

  test('of an account keeps the invitation, which the account has not accepted', async () => {
    const address = await createUser('erin');
    const invite = await createInvite();
    const { flow, signedIn } = startFlow();
    await flow.requestCode(address, `${invite}x`);
    expect([flow.problem.value?.field, flow.invite.value]).toEqual(['invite', null]);
    await flow.requestCode(address, invite);
    await flow.enterCode(await mail.codeTo(address));
    expect(signedIn).toEqual([{ nick: 'erin', pendingInvite: invite }]);
  });

  test('says which field is refused, without its name on the wire', async () => {
    const { flow } = startFlow();
    await flow.requestCode('nobody');
    expect(flow.problem.value).toMatchObject({ field: 'address', sentence: expect.stringMatching(/^give an e-mail/) });
    await flow.requestCode('frank@example.org');
    await flow.enterCode('12');
    expect(flow.problem.value).toMatchObject({ field: 'code', sentence: 'a code has six digits' });
  });
});
