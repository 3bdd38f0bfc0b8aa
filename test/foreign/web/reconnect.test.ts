import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CleanUp } from '../../../faults/clean-up.ts';
import { cutConnections, killServer, takeNetwork } from '../../../faults/web/interruptions.ts';
import { WatchedTabs } from '../../../faults/web/watched-tabs.ts';
import { CuttingProxy } from '../../client/core/cutting-proxy.ts';
import { ServerProcess } from '../../support/server-process.ts';

const CUTS = 4;
/** `make faults ONLY=browser-offline` takes the network away for 30 s, which the page notices in other ways. */
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

test('three tabs show each message once and in order over cuts, a kill and a time offline, and keep and send what is written', async () => {
  const interruptions = [
    ...Array.from({ length: CUTS }, (_, run) => () => cutConnections(watched, run)),
    () => killServer(watched, 0, () => {}),
    () => takeNetwork(watched, 0, OFFLINE_MS),
    () => takeNetwork(watched, 1, OFFLINE_MS),
  ];
  for (const interrupt of interruptions) {
    await interrupt();
    await watched.followAgain();
    await watched.walk();
  }
  await watched.settle();
  expect(watched.violations()).toEqual([]);
  for (const tab of watched.tabs) expect(tab.sent.length).toBeGreaterThan(interruptions.length);
});
