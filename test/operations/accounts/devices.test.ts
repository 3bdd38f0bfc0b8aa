import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Sealer } from '../../../src/storage/db/sealed.ts';
import { callAs } from '../../support/call.ts';
import { newSubscription, newWebPush } from '../../support/devices.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { createPerson, signIn, type TestPerson } from '../../support/people.ts';
import { TestServer } from '../../support/server.ts';

const SECRET = 'a secret for tests that is long enough to be taken';
const LIMIT = 4;
const SESSIONS = 5;

let server: TestServer;
const lines: string[] = [];
let alice: TestPerson;
let people = 0;
beforeAll(async () => {
  server = await TestServer.start(
    {
      googlePush: {
        keys: [
          { projectId: 'first', key: '/nowhere.json' },
          { projectId: 'second', key: '/nowhere.json' },
        ],
      },
      applePush: {
        keys: [{ keyId: 'K', teamId: 'T', path: '/nowhere.p8', bundleId: 'org.example.app', sandbox: false }],
      },
      webPush: newWebPush(),
      limits: { devicesPerUser: LIMIT, sessionsPerUser: SESSIONS },
      delivery: { allow: ['loopback', 'ntfy.lan'] },
      log: { level: 'debug' },
    },
    { log: recordingLog(lines) },
  );
});
beforeEach(async () => {
  alice = await newPerson();
});
afterAll(async () => server.stop());

const newPerson = (): Promise<TestPerson> => createPerson(server, `person-${(people += 1)}`);
const newToken = (): string => `token-${randomBytes(12).toString('hex')}`;

interface Registered {
  readonly id: number;
  readonly kind: string;
  readonly app: string | null;
  readonly label: string | null;
  readonly created_at: string;
  readonly seen_at: string;
}

const register = (person: { token: string }, input: object): Promise<Registered> =>
  callAs(server, person, 'devices.register', input);
const list = async (person: { token: string }): Promise<(Registered & { current: boolean })[]> =>
  (await callAs(server, person, 'devices.list')).devices;

async function rowsOf(account: number): Promise<{ id: number; kind: string; sealed: string; session: number }[]> {
  return server.database.query(
    (sql) => sql`
      select id, kind, token_sealed as sealed, session_id as session from device where account_id = ${account}
      order by id`,
  );
}

describe('devices.register', () => {
  test('takes each kind, shows nothing of what it is known by, and keeps it sealed', async () => {
    const google = newToken();
    const apple = randomBytes(32).toString('hex');
    const web = newSubscription();
    const phone = await register(alice, { kind: 'google', token: google, app: 'second', label: 'Phone' });
    expect(phone).toEqual({
      id: expect.any(Number),
      kind: 'google',
      app: 'second',
      label: 'Phone',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      seen_at: phone.created_at,
    });
    await register(alice, { kind: 'apple', token: apple.toUpperCase(), app: 'org.example.app' });
    await register(alice, { kind: 'web', subscription: web });
    const found = await list(alice);
    expect(found.map(({ kind, app, current }) => [kind, app, current])).toEqual([
      ['google', 'second', true],
      ['apple', 'org.example.app', true],
      ['web', null, true],
    ]);
    const shown = JSON.stringify(found);
    for (const secret of [google, apple, web.endpoint, web.keys.auth])
      expect(shown.toLowerCase()).not.toContain(secret);
    const sealer = new Sealer(SECRET);
    const rows = await rowsOf(alice.id);
    expect(rows.map(({ sealed }) => sealer.open('device-token', sealed))).toEqual([
      google,
      apple,
      JSON.stringify({ endpoint: web.endpoint, keys: web.keys }),
    ]);
    const stored = JSON.stringify(
      await server.database.query((sql) => sql`select * from device where account_id = ${alice.id}`),
    );
    for (const secret of [google, apple, web.endpoint]) expect(stored).not.toContain(secret);
  });

  test('the same device again is an update, and the session that said so last has it', async () => {
    const token = newToken();
    const first = await register(alice, { kind: 'google', token, label: 'Old' });
    const other = await signIn(server, alice.id);
    const again = await register(other, { kind: 'google', token, label: 'New' });
    expect(again).toEqual({ ...first, label: 'New', seen_at: again.seen_at });
    expect(Date.parse(again.seen_at)).toBeGreaterThan(Date.parse(first.seen_at));
    expect((await list(alice)).map(({ id, current }) => [id, current])).toEqual([[first.id, false]]);
    await callAs(server, other, 'sessions.end', { session: alice.session });
    expect(await list(other)).toHaveLength(1);
    // Apple's token has two spellings for one device. A browser with new keys is still the same device.
    const apple = randomBytes(32).toString('hex');
    const { id } = await register(other, { kind: 'apple', token: apple });
    expect((await register(other, { kind: 'apple', token: apple.toUpperCase() })).id).toBe(id);
    const browser = newSubscription();
    const web = await register(other, { kind: 'web', subscription: browser });
    const renewed = { ...newSubscription(browser.endpoint) };
    expect((await register(other, { kind: 'web', subscription: renewed })).id).toBe(web.id);
    const row = (await rowsOf(alice.id)).find((each) => each.id === web.id)!;
    expect(JSON.parse(new Sealer(SECRET).open('device-token', row.sealed))).toMatchObject({ keys: renewed.keys });
  });

  test('a device that another account registers is that one only, without what waited for the one before', async () => {
    const bob = await newPerson();
    const group = await server.createGroup();
    const token = newToken();
    const before = await register(alice, { kind: 'google', token });
    await server.database.query(
      (sql) => sql`
        insert into push_pending (device_id, conversation_id, kind, first_seq, last_seq, next_at)
        values (${before.id}, ${group.id}, 'google', 1, 1, now() + interval '1 day')`,
    );
    const after = await register(bob, { kind: 'google', token });
    expect(after.id).not.toBe(before.id);
    expect(await list(alice)).toEqual([]);
    expect((await list(bob)).map(({ id }) => id)).toEqual([after.id]);
    const [waiting] = await server.database.query(
      (sql) => sql<{ count: number }[]>`select count(*)::int as count from push_pending`,
    );
    expect(waiting!.count).toBe(0);
  });

  test('one more than there may be takes the place of the one that was registered longest ago', async () => {
    const tokens = Array.from({ length: LIMIT }, newToken);
    const made: Registered[] = [];
    for (const token of tokens) made.push(await register(alice, { kind: 'google', token }));
    await register(alice, { kind: 'google', token: tokens[0]! });
    const last = await register(alice, { kind: 'google', token: newToken() });
    expect((await list(alice)).map(({ id }) => id)).toEqual([made[0]!.id, made[2]!.id, made[3]!.id, last.id]);
  });

  test('many at once, the same and others, of two accounts, leave each its bound and each device one owner', async () => {
    const bob = await newPerson();
    const shared = newToken();
    const work = [alice, bob].flatMap((person) =>
      Array.from({ length: 12 }, (_, n) => {
        const token = n % 3 === 0 ? shared : newToken();
        return register(person, { kind: 'google', token });
      }),
    );
    const done = await Promise.allSettled(work);
    const refused = done.filter((each) => each.status === 'rejected').map(({ reason }) => (reason as Error).message);
    // The database may refuse one of two transactions that wait for each other. No other failure may occur.
    for (const sentence of refused) expect(sentence).toMatch(/please repeat/);
    expect((await rowsOf(alice.id)).length).toBeLessThanOrEqual(LIMIT);
    expect((await rowsOf(bob.id)).length).toBeLessThanOrEqual(LIMIT);
  });

  const web = newSubscription();
  const keys = (changes: object): object => ({
    kind: 'web',
    subscription: { ...web, keys: { ...web.keys, ...changes } },
  });
  const at = (endpoint: string): object => ({ kind: 'web', subscription: { ...web, endpoint } });
  const offCurve = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 7)]).toString('base64url');
  const compressed = Buffer.concat([Buffer.from([2]), Buffer.alloc(64, 7)]).toString('base64url');

  test.each<[string, object, string]>([
    ['no kind', { token: 'x' }, 'kind: '],
    ['another kind', { kind: 'huawei', token: 'x' }, 'kind: '],
    ['google without a token', { kind: 'google' }, 'token: is required'],
    ['google with a subscription', { kind: 'google', token: 'x', subscription: web }, 'subscription: is for'],
    ['a token with a space', { kind: 'google', token: 'a b' }, 'token: is no registration token'],
    ['an empty token', { kind: 'google', token: '' }, 'token: is no registration token'],
    ['a token that is too long', { kind: 'google', token: 'x'.repeat(4_097) }, 'token: is no registration token'],
    ['one that is much too long', { kind: 'google', token: 'x'.repeat(10_000) }, 'token: '],
    ['letters that are no ASCII', { kind: 'google', token: 'töken' }, 'token: is no registration token'],
    ['an app that is not configured', { kind: 'google', token: 'x', app: 'third' }, 'services.google.push.keys'],
    ['an app of another vendor', { kind: 'apple', token: 'ab'.repeat(32), app: 'first' }, 'services.apple.push.keys'],
    ['a token that is not hexadecimal', { kind: 'apple', token: 'xy'.repeat(32) }, 'token: is no device token'],
    ['one of odd length', { kind: 'apple', token: `${'ab'.repeat(32)}a` }, 'token: is no device token'],
    ['one that is too short', { kind: 'apple', token: 'ab' }, 'token: is no device token'],
    ['one that is too long', { kind: 'apple', token: 'ab'.repeat(101) }, 'token: is no device token'],
    ['web with a token', { kind: 'web', token: 'x', subscription: web }, 'token: a browser'],
    ['web without a subscription', { kind: 'web' }, 'subscription: is required'],
    ['web with an app', { kind: 'web', subscription: web, app: 'first' }, 'app: is for the kinds'],
    ['no address', at('push'), 'subscription.endpoint: is no absolute'],
    ['an address of another scheme', at('file:///etc/passwd'), 'subscription.endpoint: is no absolute'],
    ['plain HTTP', at('http://push.example/x'), 'subscription.endpoint: must begin with https://'],
    ['plain HTTP to an address', at('http://9.9.9.9/x'), 'subscription.endpoint: must begin with https://'],
    ['credentials', at('https://a:b@push.example/x'), 'subscription.endpoint: must hold no credentials'],
    ['a fragment', at('https://push.example/x#'), 'subscription.endpoint: must hold no credentials'],
    ['port 0', at('https://push.example:0/x'), 'subscription.endpoint: has the port 0'],
    ['a long address', at(`https://push.example/${'x'.repeat(2_048)}`), 'subscription.endpoint: has the port 0'],
    ['a private address', at('https://10.0.0.1/x'), 'subscription.endpoint: the address policy refuses this host'],
    ['metadata of a cloud', at('http://169.254.169.254/latest'), 'subscription.endpoint: the address policy'],
    ['a point that is on no curve', keys({ p256dh: offCurve }), 'subscription.keys.p256dh: is no public key'],
    ['a point that is not uncompressed', keys({ p256dh: compressed }), 'subscription.keys.p256dh: is no public key'],
    ['a short point', keys({ p256dh: 'BA' }), 'subscription.keys.p256dh: is no public key'],
    ['a long point', keys({ p256dh: `${web.keys.p256dh}AAAA` }), 'subscription.keys.p256dh: is no public key'],
    ['a point in base64', keys({ p256dh: '+/'.repeat(44) }), 'subscription.keys.p256dh: is no public key'],
    ['a short secret', keys({ auth: 'AAAA' }), 'subscription.keys.auth: is no secret'],
    ['a long secret', keys({ auth: 'A'.repeat(24) }), 'subscription.keys.auth: is no secret'],
    ['a field that nobody knows', { kind: 'google', token: 'x', platform: 'x' }, 'input: '],
    ['a label with a line break', { kind: 'google', token: 'x', label: 'a\nb' }, 'label: '],
    ['a long label', { kind: 'google', token: 'x', label: 'x'.repeat(101) }, 'label: '],
  ])('refuses %s', async (_, input, sentence) => {
    const error = await register(alice, input).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining(sentence) });
    expect(await rowsOf(alice.id)).toEqual([]);
  });

  test('takes plain HTTP for what delivery.allow names, and keys whose last group is filled up', async () => {
    for (const endpoint of [
      'http://127.0.0.1:8080/up',
      'http://[::1]/up',
      'http://ntfy.lan/up',
      'https://ntfy.lan/up',
    ]) {
      const subscription = newSubscription(endpoint);
      const padded = { p256dh: `${subscription.keys.p256dh}=`, auth: `${subscription.keys.auth}==` };
      await register(alice, { kind: 'web', subscription: { endpoint, keys: padded } });
      const { sealed } = (await rowsOf(alice.id)).at(-1)!;
      expect(JSON.parse(new Sealer(SECRET).open('device-token', sealed))).toEqual({
        endpoint,
        keys: subscription.keys,
      });
    }
  });

  test('is refused to who has just signed out, though the session is still remembered', async () => {
    await list(alice);
    await server.database.query((sql) => sql`delete from session where id = ${alice.session}`);
    await expect(register(alice, { kind: 'google', token: newToken() })).rejects.toMatchObject({
      code: 'unauthenticated',
    });
    expect(await rowsOf(alice.id)).toEqual([]);
  });

  test('leaves no token and no address in the log', async () => {
    const token = newToken();
    const subscription = newSubscription();
    await register(alice, { kind: 'google', token });
    await register(alice, { kind: 'web', subscription });
    await register(alice, at('http://push.example/x')).catch(() => {});
    const text = lines.join('\n');
    expect(text).not.toBe('');
    for (const secret of [token, 'push.example', subscription.keys.auth]) expect(text).not.toContain(secret);
  });
});

describe('a kind that nothing is configured for', () => {
  let bare: TestServer;
  let carol: TestPerson;
  beforeAll(async () => {
    bare = await TestServer.start();
    carol = await createPerson(bare, 'carol');
  });
  afterAll(async () => bare.stop());

  test.each([
    ['google', { kind: 'google', token: 'x' }, 'services.google.push.keys'],
    ['apple', { kind: 'apple', token: 'ab'.repeat(32) }, 'services.apple.push.keys'],
    ['web', { kind: 'web', subscription: newSubscription() }, 'services.web-push'],
  ])('is refused with the key that is missing: %s', async (_, input, key) => {
    await expect(callAs(bare, carol, 'devices.register', input)).rejects.toMatchObject({
      status: 400,
      code: 'invalid_input',
      message: expect.stringContaining(`${key} is not configured`),
    });
  });
});

describe('devices.list and devices.remove', () => {
  test('a device that is removed is gone, and nobody removes those of others', async () => {
    const bob = await newPerson();
    const { id } = await register(alice, { kind: 'google', token: newToken() });
    await expect(callAs(server, bob, 'devices.remove', { device: id })).rejects.toMatchObject({ code: 'not_found' });
    expect(await callAs(server, alice, 'devices.remove', { device: id })).toEqual({ device: id });
    expect(await list(alice)).toEqual([]);
    await expect(callAs(server, alice, 'devices.remove', { device: id })).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a list goes on behind its page', async () => {
    const made: number[] = [];
    for (let n = 0; n < 3; n += 1) made.push((await register(alice, { kind: 'google', token: newToken() })).id);
    const page = await callAs(server, alice, 'devices.list', { limit: 2 });
    expect(page).toMatchObject({ devices: [{ id: made[0] }, { id: made[1] }], next: made[1] });
    expect(await callAs(server, alice, 'devices.list', { after: page.next })).toMatchObject({
      devices: [{ id: made[2] }],
      next: null,
    });
  });
});

describe('with its session goes a device', () => {
  const device = async (session: { token: string }): Promise<number> =>
    (await register(session, { kind: 'google', token: newToken() })).id;

  test('when it is ended, by itself or as one of the others', async () => {
    const other = await signIn(server, alice.id);
    const third = await signIn(server, alice.id);
    await device(other);
    await device(third);
    const own = await device(alice);
    await callAs(server, alice, 'sessions.end', { session: other.session });
    expect(await rowsOf(alice.id)).toHaveLength(2);
    await callAs(server, alice, 'sessions.end-others');
    expect((await rowsOf(alice.id)).map(({ id }) => id)).toEqual([own]);
  });

  test('when the account is deactivated', async () => {
    await device(alice);
    await server.operate('accounts.deactivate', { user: alice.nick });
    expect(await rowsOf(alice.id)).toEqual([]);
    await server.operate('accounts.activate', { user: alice.nick });
    expect(await rowsOf(alice.id)).toEqual([]);
  });

  test('also where it is registered in the moment in which the session ends, or the account is deactivated', async () => {
    for (let n = 0; n < 10; n += 1) {
      const person = await newPerson();
      const session = await signIn(server, person.id);
      const input = { kind: 'google', token: newToken() };
      const end =
        n % 2 === 0
          ? callAs(server, person, 'sessions.end', { session: session.session })
          : server.operate('accounts.deactivate', { user: person.nick });
      const [registered] = await Promise.allSettled([register(session, input), end]);
      if (registered.status === 'rejected') expect(registered.reason).toMatchObject({ code: 'unauthenticated' });
      expect(await rowsOf(person.id)).toEqual([]);
    }
  });

  test('when it is one of too many', async () => {
    await device(alice);
    await server.database.query(
      (sql) => sql`update session set last_used_at = now() - interval '1 year' where id = ${alice.session}`,
    );
    for (let n = 0; n < SESSIONS; n += 1) await signIn(server, alice.id);
    const { link } = await server.operate<{ link: string }>('accounts.invite', { user: alice.nick });
    await callAs(server, null, 'auth.verify', { link });
    expect(await rowsOf(alice.id)).toEqual([]);
  });
});
