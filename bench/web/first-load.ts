import { get } from 'node:http';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { BrowserContext } from 'playwright-core';
import { BUILD } from '../../scripts/package/paths.ts';
import { addProbe, startTimes, type Condition } from './page-probe.ts';
import type { Measures } from './rows.ts';
import { withPage, type Side } from './sides.ts';
import { VIEW, type WebStage } from './stage.ts';
import { within } from './within.ts';

const KB = 1_000;
const START_S = 60;
const PARTS: ReadonlySet<string> = new Set(['Document', 'Script', 'Stylesheet']);
const EXTRAS: ReadonlySet<string> = new Set(['Font', 'Image']);

/** The requests that a browser makes before a page can be used. */
interface Load {
  /** The URLs of HTML, scripts and styles. */
  readonly parts: readonly string[];
  readonly fontsAndImages: number;
}

/** Measures the bytes and requests of the first load of Klatch, and of The Lounge if it takes part. */
export async function measureFirstLoad(stage: WebStage, sides: readonly Side[]): Promise<Measures> {
  const loads = new Map<string, Load>();
  for (const side of sides) {
    if (side.name === 'bare') continue;
    loads.set(side.name, await loadOf(await side.newProfile(), side.urlOf(0), side.conditionsOf(0)));
  }
  const [klatch, lounge] = [loads.get('klatch')!, loads.get('lounge')];
  const beside = async (of: (load: Load) => number | Promise<number>) => ({
    klatch: await of(klatch),
    ...(lounge === undefined ? {} : { lounge: await of(lounge) }),
  });
  const stranger = await stage.browser.newProfile({ viewport: VIEW });
  const signIn = await loadOf(stranger, `${stage.server.url}/`, [{ present: '#app *' }]);
  return {
    firstLoadBr: await beside(({ parts }) => kilobytes(parts, 'br')),
    firstLoadGz: await beside(({ parts }) => kilobytes(parts, 'gzip')),
    signInBr: { klatch: await kilobytes(signIn.parts, 'br') },
    allAssetsBr: { klatch: allAssetsBr() },
    requests: await beside(({ parts }) => parts.length),
    fontsAndImages: await beside(({ fontsAndImages }) => fontsAndImages),
  };
}

async function loadOf(profile: BrowserContext, url: string, conditions: readonly Condition[]): Promise<Load> {
  try {
    return await withPage(profile, async (page) => {
      const parts = new Set<string>();
      let fontsAndImages = 0;
      const cdp = await profile.newCDPSession(page);
      await cdp.send('Network.enable');
      cdp.on('Network.requestWillBeSent', ({ request, type = 'Other' }) => {
        if (request.url.startsWith('data:')) return;
        if (PARTS.has(type)) parts.add(request.url);
        else if (EXTRAS.has(type)) fontsAndImages += 1;
      });
      await addProbe(page, conditions);
      await page.goto(url, { waitUntil: 'commit' });
      await within(START_S, `the first load of ${url}`, startTimes(page));
      return { parts: [...parts], fontsAndImages };
    });
  } finally {
    await profile.close();
  }
}

async function kilobytes(urls: readonly string[], encoding: 'br' | 'gzip'): Promise<number> {
  let bytes = 0;
  for (const url of urls) bytes += await bodyBytes(url, encoding);
  return bytes / KB;
}

/** The size of a body as it is transferred, in the given content encoding. */
function bodyBytes(url: string, encoding: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { accept: 'text/html,*/*', 'accept-encoding': encoding };
    get(url, { headers }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve(bytes));
      response.on('error', reject);
    }).on('error', reject);
  });
}

function allAssetsBr(): number {
  const folder = join(BUILD, 'web', 'assets');
  const compressed = readdirSync(folder).filter((name) => name.endsWith('.br'));
  return compressed.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0) / KB;
}
