import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import { walkViewTo, type ShownMessage } from '../../../faults/web/page-scripts.ts';
import { loadBackup, takeBackup } from '../../storage/backup/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { postJson, TestServer } from '../../support/server.ts';
import { openAs } from './signed-in-page.ts';
import { WebBrowser } from './web-browser.ts';

/** Records in `lostComposer` whether the page removes the composer of the open conversation, even for a moment. */
const WATCH_COMPOSER = `(() => {
  let wasThere = false;
  globalThis.lostComposer = false;
  new MutationObserver(() => {
    const isThere = document.querySelector('.composer textarea') !== null;
    if (wasThere && !isThere) globalThis.lostComposer = true;
    wasThere = isThere;
  }).observe(document, { subtree: true, childList: true });
})()`;

let browser: WebBrowser;
let profile: BrowserContext;
let server: TestServer;
let port: number;
const databases: TestDatabase[] = [];

beforeAll(async () => {
  browser = await WebBrowser.start();
});
afterAll(() => browser.stop());
beforeEach(async () => {
  port = await freePort();
  databases.push(await createTestDatabase());
  server = await startOn(databases[0]!);
  await server.operate('accounts.create', { nick: 'alice', name: 'alice' });
  profile = await browser.newProfile();
});
afterEach(async () => {
  await profile.close();
  await server.stop();
  for (const database of databases.splice(0)) await database.drop();
});

/** Starts a server at the same address and with the same folder of files, as after a restore of its database. */
function startOn(database: TestDatabase): Promise<TestServer> {
  const http = { port, baseUri: `http://127.0.0.1:${port}` };
  return TestServer.start({ http, files: { localFilesFolder: databases[0]!.filesFolder } }, { database });
}

async function newGroup(): Promise<{ id: number; webhook: string }> {
  const group = await server.createGroup('Log');
  await server.operate('groups.add-member', { group: group.id, user: 'alice' });
  return group;
}

async function post(webhook: string, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) expect(await postJson(webhook, { text })).toMatchObject({ status: 200 });
}

const shows = (page: Page, texts: readonly string[]): Promise<string[]> =>
  eventually(
    () => page.locator('.feed .text').allInnerTexts(),
    (shown) => JSON.stringify(shown) === JSON.stringify(texts),
  );

test('a conversation that begins at a later message than the first is shown from there on, and followed', async () => {
  const { id, webhook } = await newGroup();
  await post(webhook, ...Array.from({ length: 150 }, (_, n) => `message ${n + 1}`));
  await server.database.query(async (sql) => {
    await sql`delete from message where conversation_id = ${id} and seq <= 50`;
    await sql`update conversation_head set first_seq = 51 where conversation_id = ${id}`;
  });
  const { page } = await openAs(server, profile, 'alice', `/c/${id}/3`);
  const first = page.locator('[data-index="0"] [aria-posinset="51"]');
  await first.getByText('message 51').waitFor();
  await page.goto(`${server.url}/c/${id}/150`);
  await post(webhook, 'message 151');
  await page.locator('[data-index="100"] [aria-posinset="151"]').waitFor();
  const shown = new Map(await page.evaluate<ShownMessage[]>(walkViewTo(1)));
  expect([...shown.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 101 }, (_, n) => n + 51));
  for (const [seq, text] of shown) expect(text).toBe(`message ${seq}`);
});

describe('a page that is open while a backup is restored', () => {
  test('drops what the server has lost, shows what takes its place, and sends what was written meanwhile', async () => {
    const { id, webhook } = await newGroup();
    await post(webhook, 'one', 'two');
    await profile.addInitScript(WATCH_COMPOSER);
    const { page } = await openAs(server, profile, 'alice', `/c/${id}`);
    await shows(page, ['one', 'two']);
    const { bytes } = await takeBackup(databases[0]!.target);
    await post(webhook, 'lost 1', 'lost 2', 'lost 3');
    await shows(page, ['one', 'two', 'lost 1', 'lost 2', 'lost 3']);
    await server.stop();
    const field = page.locator('.composer textarea');
    await field.fill('written meanwhile');
    await field.press('Enter');
    await field.fill('not finished');

    const restored = await createTestDatabase({ empty: true });
    databases.push(restored);
    await loadBackup(restored.target, bytes, undefined, undefined, 0);
    server = await startOn(restored);
    await post(webhook, 'new 1');
    await eventually(
      () => page.locator('.feed-rows .text').allInnerTexts(),
      (shown) => shown.length === 4 && shown.includes('written meanwhile'),
    );
    await post(webhook, 'new 2');
    const stored = await server.database.query(
      (sql) => sql<{ text: string }[]>`select text from message where conversation_id = ${id} order by seq`,
    );
    expect(stored.map(({ text }) => text).toSorted()).toEqual(['new 1', 'new 2', 'one', 'two', 'written meanwhile']);
    await shows(
      page,
      stored.map(({ text }) => text),
    );
    expect(await field.inputValue()).toBe('not finished');
    expect(await page.evaluate('globalThis.lostComposer')).toBe(false);
    // The page repeats reads that failed during the restore. When they succeed, it no longer shows their problems.
    await eventually(
      () => page.locator('.timeline-problem, .bar-problem').allTextContents(),
      (problems) => problems.length === 0,
    );
  });
});
