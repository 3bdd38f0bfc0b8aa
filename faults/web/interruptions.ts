import { setTimeout as wait } from 'node:timers/promises';
import { until } from '../until.ts';
import type { Tab } from './tab.ts';
import type { WatchedTabs } from './watched-tabs.ts';

/** A connection that is cut again carries at most so much: less than a second of what is posted. */
const MAX_CUT_BYTES = 4_000;
/** Connections that are cut again before the fault ends: two for each tab. */
const CUTS_OF_NEXT = 6;

/**
 * Cuts all connections of the tabs. Every second run cuts those that follow as well, each in the middle of what it
 * carries.
 */
export async function cutConnections({ proxy }: WatchedTabs, run: number): Promise<void> {
  if (run % 2 === 1) proxy.budget = () => Math.ceil(Math.random() * MAX_CUT_BYTES);
  const due = proxy.cuts + CUTS_OF_NEXT;
  proxy.cut();
  if (run % 2 === 0) return;
  await until('the next connections have been cut', () => proxy.cuts >= due);
  proxy.budget = () => Number.MAX_SAFE_INTEGER;
  // What is left of the others would be cut later.
  proxy.cut();
}

/** Kills the server, closes one tab while texts wait in it, and starts both again. `onKilled`: nothing else breaks. */
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
 * Takes the network from the browser. When it comes back, bytes that were under way arrive, or all connections end, or
 * they stay silent for ever: in turns.
 */
export async function takeNetwork({ proxy, profile, tabs }: WatchedTabs, run: number, ms: number): Promise<void> {
  proxy.hold();
  await profile.setOffline(true);
  await Promise.all(tabs.map((tab) => tab.hasWaitingText()));
  await Promise.all(tabs.map(keepsAllTexts));
  // The fault itself: how long there is no network.
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
