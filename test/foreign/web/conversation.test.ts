import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { signIn } from '../../support/people.ts';
import { postJson, type TestServer } from '../../support/server.ts';
import { startServerForBrowsers, WebBrowser, type WatchedPage } from './web-browser.ts';

const HOSTILE =
  '<img src=x onerror=alert(1)> javascript:alert(1) **[x](javascript:alert(1))** \u202E"\'--><script>alert(1)</script>';

/**
 * Scrolls up in 60 steps. Measures by how many pixels the first row in view moves in the frames after each step, and
 * returns the largest distance. It measures only when all rows in view have their content: before that, rows may move.
 */
const SCROLL_AND_MEASURE_DRIFT = `(async () => {
  const feed = document.querySelector('.feed');
  const frame = () => new Promise(requestAnimationFrame);
  // Reports positions after the resize observers of a frame, which put rows back. A script that runs before them sees
  // unpainted positions.
  const painted = (row) => new Promise((resolve) => {
    const observer = new IntersectionObserver(([{ boundingClientRect, rootBounds }]) => {
      observer.disconnect();
      resolve(boundingClientRect.top - rootBounds.top);
    }, { root: feed });
    observer.observe(row);
  });
  const rowsInView = () => {
    const { top, bottom } = feed.getBoundingClientRect();
    return [...feed.querySelectorAll('.row')].filter((each) => {
      const place = each.getBoundingClientRect();
      return place.bottom > top && place.top < bottom;
    });
  };
  const isReady = (each) => each.querySelector('article') !== null;
  let [worst, measured] = [0, 0];
  for (let step = 0; step < 60; step += 1) {
    feed.scrollTop -= 700;
    await frame();
    await frame();
    // A row whose content arrives while it is in view gets its own height, and moves the rows below it.
    while (rowsInView().length === 0 || !rowsInView().every(isReady)) await frame();
    const { index } = rowsInView()[0].dataset;
    const sameRow = () => feed.querySelector('[data-index="' + index + '"]');
    const before = await painted(sameRow());
    measured += 1;
    for (let wait = 0; wait < 6; wait += 1) await frame();
    worst = Math.max(worst, Math.abs((await painted(sameRow())) - before));
  }
  return { worst, measured };
})()`;

/** The texts of the drafts that the browser keeps. */
const KEPT_DRAFTS = `new Promise((resolve, reject) => {
  const open = indexedDB.open('klatch/');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const all = open.result.transaction('drafts').objectStore('drafts').getAll();
    all.onsuccess = () => {
      open.result.close();
      resolve(all.result.map(({ text }) => text));
    };
  };
})`;

/** Counts how often the list of conversations shows the open conversation as unread. */
const COUNT_OWN_BADGES = `(() => {
  window.ownBadges = 0;
  const count = () => {
    if (document.querySelector('.sidebar [aria-current="page"] .badge') !== null) window.ownBadges += 1;
  };
  new MutationObserver(count).observe(document.querySelector('.sidebar'), { childList: true, subtree: true });
})()`;

/**
 * Keeps a transaction open on the browser's IndexedDB, so that nobody else reads it, until the page calls
 * `releaseStore`.
 */
const HOLD_STORE = `new Promise((resolve, reject) => {
  let isReleased = false;
  globalThis.releaseStore = () => {
    isReleased = true;
  };
  const open = indexedDB.open('klatch/');
  open.onerror = () => reject(open.error);
  open.onsuccess = () => {
    const store = open.result.transaction(['drafts', 'unsent'], 'readwrite').objectStore('unsent');
    // A transaction of IndexedDB lasts as long as requests to it follow each other.
    const ask = () => {
      resolve();
      if (isReleased) open.result.close();
      else store.count().onsuccess = ask;
    };
    ask();
  };
})`;

let server: TestServer;
let browser: WebBrowser;
const accounts = new Map<string, number>();
const profiles: BrowserContext[] = [];
const complaints: (readonly string[])[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
  server = await startServerForBrowsers();
  for (const nick of ['alice', 'bob']) {
    const { id } = await server.operate<{ id: number }>('accounts.create', { nick, name: nick });
    accounts.set(nick, id);
  }
});
afterEach(async () => {
  for (const profile of profiles.splice(0)) await profile.close();
  // No page may break its Content-Security-Policy, or throw.
  expect(complaints.splice(0).flat()).toEqual([]);
});
afterAll(async () => {
  await browser.stop();
  await server.stop();
});

async function newGroup(title: string) {
  const group = await server.createGroup(title);
  for (const user of accounts.keys()) await server.operate('groups.add-member', { group: group.id, user });
  return group;
}

/** Signs an account in with a new browser profile; resolves with a page at the path. */
async function openAs(nick: string, path: string): Promise<WatchedPage & { profile: BrowserContext }> {
  const profile = await browser.newProfile();
  profiles.push(profile);
  const watched = await WebBrowser.watch(profile);
  complaints.push(watched.complaints);
  const { link } = await server.operate<{ link: string }>('accounts.invite', { user: nick });
  await watched.page.goto(`${server.url}/#${link.split('#')[1]!}`);
  await watched.page.getByText(`Signed in as ${nick}`).waitFor();
  await watched.page.goto(`${server.url}${path}`);
  await watched.page.getByRole('textbox').waitFor();
  return { ...watched, profile };
}

const write = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox').fill(text);
  await page.getByRole('textbox').press('Enter');
};

/** The texts that are shown, in their order, including those that are being sent. */
const shownTexts = (page: Page) => page.locator('.feed .text').allInnerTexts();
const shows = (page: Page, texts: readonly string[]) =>
  eventually(
    () => shownTexts(page),
    (shown) => JSON.stringify(shown) === JSON.stringify(texts),
  );

/** The texts of a conversation as the server returns them. */
async function storedTexts(conversation: number): Promise<string[]> {
  const { token } = await signIn(server, accounts.get('alice')!);
  const answer = await postJson(
    `${server.url}/v1/api/messages.history`,
    { conversation },
    { authorization: `Bearer ${token}` },
  );
  return (answer.body as { messages: { text: string }[] }).messages.map(({ text }) => text);
}

/** How many messages of a conversation the server counts as unread. */
async function unreadIn(nick: string, conversation: number): Promise<number> {
  const { token } = await signIn(server, accounts.get(nick)!);
  const answer = await postJson(`${server.url}/v1/api/conversations.list`, {}, { authorization: `Bearer ${token}` });
  const { conversations } = answer.body as { conversations: { id: number; unread: number }[] };
  return conversations.find(({ id }) => id === conversation)!.unread;
}

test('a message that somebody reads as it comes is never shown as unread, one of another conversation at once', async () => {
  const [open, other] = [await newGroup('Open'), await newGroup('Other')];
  const { page } = await openAs('bob', `/c/${open.id}`);
  await page.evaluate(COUNT_OWN_BADGES);
  for (const text of ['one', 'two']) {
    await postJson(open.webhook, { text });
    await page.getByRole('article').getByText(text).waitFor();
    await eventually(
      () => unreadIn('bob', open.id),
      (unread) => unread === 0,
    );
  }
  await postJson(other.webhook, { text: 'three' });
  await page.getByRole('link', { name: 'Other' }).getByRole('img', { name: '1 unread' }).waitFor();
  expect(await page.evaluate('window.ownBadges')).toBe(0);
});

describe('two people in a conversation', () => {
  test('see what the other writes, edits and deletes, each message once and in order, and text stays text', async () => {
    const { id, webhook } = await newGroup(`Talk ${HOSTILE.replace('\u202E', '')}`);
    const { page: alice } = await openAs('alice', `/c/${id}`);
    const { page: bob } = await openAs('bob', `/c/${id}`);
    await write(alice, 'one');
    await shows(bob, ['one']);
    await write(bob, HOSTILE);
    // Waits until the message is posted: before that, its place among the messages of others may change.
    await shows(alice, ['one', HOSTILE]);
    await postJson(webhook, { text: 'three\nof a *script*' });
    const expected = ['one', HOSTILE, 'three\nof a *script*'];
    for (const page of [alice, bob]) await shows(page, expected);
    expect(await alice.locator('#app img, #app script, .feed a').count()).toBe(0);

    await bob.getByRole('textbox').press('ArrowUp');
    expect(await bob.getByRole('textbox').inputValue()).toBe(HOSTILE);
    await write(bob, 'two');
    await shows(alice, ['one', 'two', 'three\nof a *script*']);
    await alice.getByRole('article').filter({ hasText: 'two' }).getByText('edited').waitFor();

    const own = alice.getByRole('article').filter({ hasText: 'alice' });
    await own.hover();
    await own.getByRole('button', { name: 'Delete message 1' }).click();
    await own.getByRole('button', { name: 'Undo' }).click();
    await shows(alice, ['one', 'two', 'three\nof a *script*']);
    await own.hover();
    await own.getByRole('button', { name: 'Delete message 1' }).click();
    await shows(bob, ['two', 'three\nof a *script*']);
    await bob.getByText('This message was deleted').waitFor();
  });

  test('see what is unread, and that it was read once it was in view', async () => {
    const [first, second] = [await newGroup('First'), await newGroup('Second')];
    const { page } = await openAs('alice', `/c/${first.id}`);
    for (const text of ['a', 'b @alice']) await postJson(second.webhook, { text });
    const item = page.getByRole('link', { name: /Second/ });
    await item.getByRole('img', { name: '2 unread' }).waitFor();
    await item.getByRole('img', { name: '1 mention of you' }).waitFor();
    expect(await page.title()).toBe('(1) Klatch of a test');
    await item.click();
    await page.getByRole('separator', { name: 'New' }).or(page.locator('.new')).first().waitFor();
    await item.getByRole('img').first().waitFor({ state: 'detached' });
    const { token } = await signIn(server, accounts.get('alice')!);
    const { read_seq: readSeq } = (
      await eventually(
        () =>
          postJson(
            `${server.url}/v1/api/conversations.show`,
            { conversation: second.id },
            { authorization: `Bearer ${token}` },
          ),
        ({ body }) => body.read_seq === 2,
      )
    ).body;
    expect([readSeq, await page.title()]).toEqual([2, 'Klatch of a test']);
  });

  test('see the number of waiting messages in the title, also where the browser gives the page no frame', async () => {
    const [first, second] = [await newGroup('Drawn'), await newGroup('Hidden')];
    const { page } = await openAs('alice', `/c/${first.id}`);
    await page.getByRole('link', { name: /Hidden/ }).waitFor();
    // A page that becomes hidden never gets a frame that it has requested. A browser without a window hides no page.
    await page.evaluate('window.requestAnimationFrame = () => 1');
    await postJson(second.webhook, { text: '@alice' });
    await eventually(
      () => page.title(),
      (title) => title.startsWith('(1)'),
    );
  });
});

describe('what somebody writes', () => {
  test('and does not send stays with its conversation, and survives the page', async () => {
    const [first, second] = [await newGroup('Drafts 1'), await newGroup('Drafts 2')];
    const { page } = await openAs('alice', `/c/${first.id}`);
    await page.getByRole('textbox').fill('for the first');
    await page.getByRole('link', { name: /Drafts 2/ }).click();
    await page.getByRole('textbox', { name: 'Write to Drafts 2' }).waitFor();
    expect(await page.getByRole('textbox').inputValue()).toBe('');
    await page.getByRole('link', { name: /Drafts 1.*Draft/ }).waitFor();
    // The browser has to have stored the draft: a page that ends within 300 ms of the last key, or during the write,
    // may lose these keys.
    await eventually(
      () => page.evaluate<string[]>(KEPT_DRAFTS),
      (texts) => texts.includes('for the first'),
    );
    await page.reload();
    await page.getByRole('link', { name: /Drafts 1/ }).click();
    await eventually(
      () => page.getByRole('textbox').inputValue(),
      (text) => text === 'for the first',
    );
    await page.getByRole('textbox').press('Enter');
    await eventually(
      () => storedTexts(first.id),
      (texts) => texts.length === 1,
    );
    expect([await storedTexts(first.id), await storedTexts(second.id)]).toEqual([['for the first'], []]);
  });

  test('while the server cannot be reached is shown at once, survives the browser, and is sent once', async () => {
    const { id } = await newGroup('SendQueue');
    const { page, profile } = await openAs('alice', `/c/${id}`);
    // The server accepts the message, but the answer does not reach the page.
    await page.route('**/v1/api/messages.send', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await write(page, 'first');
    await write(page, 'second');
    await shows(page, ['first', 'second']);
    await eventually(
      () => storedTexts(id),
      (texts) => texts.length > 0,
    );
    complaints.length = 0;
    await page.close();
    const { page: again, complaints: others } = await WebBrowser.watch(profile);
    complaints.push(others);
    await again.goto(`${server.url}/c/${id}`);
    await shows(again, ['first', 'second']);
    await eventually(
      () => storedTexts(id),
      (texts) => texts.length === 2,
    );
    expect(await again.locator('.pending').count()).toBe(0);
    expect(await storedTexts(id)).toEqual(['first', 'second']);
  });

  test('and the server took is shown once where the browser gives it back late', async () => {
    const { id } = await newGroup('Late store');
    const { page, profile } = await openAs('alice', `/c/${id}`);
    await page.route('**/v1/api/messages.send', async (route) => {
      await route.fetch();
      await route.abort();
    });
    await write(page, 'taken');
    await eventually(
      () => storedTexts(id),
      (texts) => texts.length === 1,
    );
    await page.getByRole('textbox').fill('begun');
    await eventually(
      () => page.evaluate<string[]>(KEPT_DRAFTS),
      (drafts) => drafts.includes('begun'),
    );
    complaints.length = 0;
    await page.close();
    const holder = await profile.newPage();
    await holder.goto(`${server.url}/v1/about`);
    await holder.evaluate(HOLD_STORE);
    const { page: again } = await WebBrowser.watch(profile);
    await again.route('**/v1/api/messages.send', (route) => route.abort());
    await again.goto(`${server.url}/c/${id}`);
    await shows(again, ['taken']);
    await holder.evaluate('releaseStore()');
    await eventually(
      () => again.getByRole('textbox').inputValue(),
      (text) => text === 'begun',
    );
    expect(await shownTexts(again)).toEqual(['taken']);
  });

  test('and the server refuses keeps its text and says why', async () => {
    const { id } = await newGroup('Refused');
    const { page } = await openAs('alice', `/c/${id}`);
    await page.route('**/v1/api/messages.send', (route) =>
      route.fulfill({
        status: 403,
        json: { status: 'failure', code: 'blocked', message: 'The other one has blocked you' },
      }),
    );
    await write(page, 'not wanted');
    await page.getByText('Not sent: The other one has blocked you').waitFor();
    complaints.length = 0;
    await page.unroute('**/v1/api/messages.send');
    await page.getByRole('button', { name: 'Send again' }).click();
    await eventually(
      () => storedTexts(id),
      (texts) => texts.includes('not wanted'),
    );
    await shows(page, ['not wanted']);
  });
});

test('a conversation of 100,000 messages opens where reading goes on, is scrolled and jumped in, and nothing moves', async () => {
  const { id } = await newGroup('Long');
  await postJson((await newGroup('Other')).webhook, { text: 'x' });
  const sender = accounts.get('bob')!;
  await server.database.query(async (sql) => {
    await sql`insert into message (conversation_id, seq, rev, sender_id, text, sent_at)
      select ${id}, n, n, ${sender}, 'message ' || n || repeat(' and more of it', (n % 17)::int), now() from generate_series(1, 100000) n`;
    await sql`update conversation_head set last_seq = 100000, last_rev = 200000, last_at = now() where conversation_id = ${id}`;
    await sql`update membership set read_seq = 50000 where conversation_id = ${id}`;
  });
  const { page } = await openAs('alice', `/c/${id}`);
  const rowOf = (seq: number) => page.locator(`[aria-posinset="${seq}"]`);
  await rowOf(50_001).waitFor();
  await page.locator('.new').waitFor();
  for (const seq of [1, 77_777, 100_000, 33_333]) {
    await page.goto(`${server.url}/c/${id}/${seq}`);
    await rowOf(seq).getByText(`message ${seq}`).waitFor();
    expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(2_500);
  }
  // The row in view stays where it is, while rows around it are measured and others are fetched.
  const drift = await page.evaluate<{ worst: number; measured: number }>(SCROLL_AND_MEASURE_DRIFT);
  expect(drift.worst).toBeLessThanOrEqual(1);
  expect(drift.measured).toBe(60);
  expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(2_500);
});
