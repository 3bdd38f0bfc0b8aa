import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { CleanUp } from '../../../faults/clean-up.ts';
import { cutConnections, killServer, takeNetwork } from '../../../faults/web/interruptions.ts';
import { WatchedTabs } from '../../../faults/web/watched-tabs.ts';
import { CuttingProxy } from '../../client/core/cutting-proxy.ts';
import { ServerProcess } from '../../support/server-process.ts';

/** The time without a network. `make faults ONLY=browser-offline` uses 30 s, which the page notices in other ways. */
const OFFLINE_MS = 2_000;

const cleanUp = new CleanUp();
let watched: WatchedTabs;

beforeAll(async () => {
  let server: ServerProcess | null = null;
  const proxy = await CuttingProxy.start(() => server!.port);
  await cleanUp.add('proxy', () => proxy.stop());
  const settings = `http.base-uri = "http://127.0.0.1:${proxy.port}"\nlog.level = warn`;
  server = await ServerProcess.create(settings);
  const created = server;
  await cleanUp.add('server', () => created.discard());
  await server.start();
  watched = await WatchedTabs.open({ server, proxy }, cleanUp);
});
afterAll(async () => {
  expect(await cleanUp.end()).toEqual([]);
});

type Interrupt = (watched: WatchedTabs) => Promise<void>;

describe('three tabs that read one conversation and write into it', () => {
  test.each<[string, Interrupt[]]>([
    ['connections are cut', [(all) => cutConnections(all, 0), (all) => cutConnections(all, 1)]],
    ['the server is killed', [(all) => killServer(all, 0, () => {})]],
    ['there is no network', [(all) => takeNetwork(all, 0, OFFLINE_MS), (all) => takeNetwork(all, 1, OFFLINE_MS)]],
  ])('follow again and send what was written meanwhile, after %s', async (_what, interruptions) => {
    for (const interrupt of interruptions) {
      await interrupt(watched);
      await watched.followAgain();
      await watched.walk();
    }
    for (const tab of watched.tabs) expect(tab.sent.length).toBeGreaterThan(interruptions.length);
  });

  test('have shown each message once and in order, have sent each text once, and have kept their drafts', async () => {
    await watched.settle();
    expect(watched.violations()).toEqual([]);
    // An own text stays in view from Enter on.
    expect(watched.tabs.map(({ hiddenTexts }) => hiddenTexts)).toEqual([0, 0, 0]);
  });
});
