import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../until.ts';
import type { Tab } from './tab.ts';
import type { WatchedTabs } from './watched-tabs.ts';

/**
 * Every second run also cuts new connections. Each carries at most this many bytes to its tab: fewer than the posts of
 * a second.
 */
const MAX_CUT_BYTES = 4_000;
/** A run that cuts new connections ends its fault after this many of them: two for each tab. */
const CUTS_OF_NEXT = 6;

/**
 * Cuts all connections of the tabs. Every second run also cuts the connections that follow, each after a random number
 * of bytes.
 */
export async function cutConnections({ proxy }: WatchedTabs, run: number): Promise<void> {
  if (run % 2 === 1) proxy.budget = () => Math.ceil(Math.random() * MAX_CUT_BYTES);
  const due = proxy.cuts + CUTS_OF_NEXT;
  proxy.cut();
  if (run % 2 === 0) return;
  await until('the next connections have been cut', () => proxy.cuts >= due);
  proxy.budget = () => Number.MAX_SAFE_INTEGER;
  // Open connections still have a limit of bytes, and would be cut later.
  proxy.cut();
}

/**
 * Kills the server, closes one tab while texts wait in it, and starts the server and the tab again. Calls `onKilled`
 * after the kill.
 */
export async function killServer(watched: WatchedTabs, run: number, onKilled: () => void): Promise<void> {
  const { server, tabs } = watched;
  await server.end('SIGKILL');
  onKilled();
  const tab = tabs[run % tabs.length]!;
  await tab.hasWaitingText();
  await tab.close();
  await server.start();
  await tab.open();
  tab.startWriting();
}

/**
 * Takes the network from the browser for a time. When it comes back, one of these follows, in turn by run:
 * - the bytes in flight arrive;
 * - all connections end;
 * - the connections from before stay silent for ever, and new ones work.
 */
export async function takeNetwork({ proxy, profile, tabs }: WatchedTabs, run: number, ms: number): Promise<void> {
  proxy.hold();
  await profile.setOffline(true);
  await Promise.all(tabs.map((tab) => tab.hasWaitingText()));
  await Promise.all(tabs.map(keepsAllTexts));
  // The browser stays without a network for this time.
  await wait(ms);
  if (run % 3 === 1) proxy.cut();
  if (run % 3 === 2) proxy.releaseNew();
  else proxy.release();
  await profile.setOffline(false);
}

async function keepsAllTexts(tab: Tab): Promise<void> {
  await tab.stopWriting();
  await tab.keepsWaitingTexts();
  tab.startWriting();
}
