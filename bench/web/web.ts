import { measureAnchorDrift } from './anchor-drift.ts';
import { measureFirstLoad } from './first-load.ts';
import { measureFlood } from './flood.ts';
import { measureLongConversation } from './long-conversation.ts';
import { LoungeSide, type LoungeFlood } from './lounge/lounge-side.ts';
import { measureManyGroups } from './many-groups.ts';
import { isQuick, planOf, type WebPlan } from './plan.ts';
import { printWeb } from './report.ts';
import { storeResult } from './result.ts';
import type { Measures } from './rows.ts';
import type { BenchConversation } from './seed.ts';
import { bareSide, klatchSide, type Side } from './sides.ts';
import { WebStage } from './stage.ts';
import { measureStarts } from './starts.ts';
import { measureUse } from './use.ts';

/** The number of messages in each conversation in which starts and switches are measured. */
const MESSAGES = 200;

const PARTS = ['beside', 'long', 'anchor', 'flood', 'groups'] as const;
type Part = (typeof PARTS)[number];

/** The measurements of all pages side by side. `flood` is null if The Lounge took no part or did not keep up. */
interface Beside {
  readonly measures: Measures;
  readonly loungeVersion: string | null;
  readonly flood: LoungeFlood | null;
}

/**
 * Measures the browser client in Chromium, compared with a bare page and The Lounge. `QUICK=1` does less of everything.
 * `PEERS=none` leaves The Lounge out. `PARTS=long,anchor` runs some parts. Only a run of everything is stored for the
 * page with the figures.
 */
export async function benchWeb(): Promise<boolean> {
  const plan = planOf();
  const parts = chosenParts();
  const stage = await WebStage.start();
  try {
    let beside: Beside = { measures: {}, loungeVersion: null, flood: null };
    const run: Readonly<Record<Part, () => Promise<Measures>>> = {
      beside: async () => (beside = await measureBeside(stage, plan)).measures,
      long: () => measureLongConversation(stage, plan),
      anchor: () => measureAnchorDrift(stage, plan),
      flood: async () => withLounge(await measureFlood(stage, plan), beside.flood),
      groups: () => measureManyGroups(stage, plan),
    };
    let measures: Measures = {};
    const failed: Part[] = [];
    for (const part of parts) {
      console.log(`web: ${part} ...`);
      try {
        const ofPart = await run[part]();
        // The table comes at the end of the run: a run that is ended before still has the figures of these parts.
        console.log(`web: ${part}: ${JSON.stringify(ofPart)}`);
        measures = { ...measures, ...ofPart };
      } catch (error) {
        // The run continues with the next part, so that a run of 40 minutes does not lose the measurements of the other
        // parts.
        console.error(`web: ${part} failed:`, error);
        failed.push(part);
      }
    }
    const isWhole = !isQuick() && parts.length === PARTS.length && failed.length === 0;
    if (isWhole && beside.loungeVersion !== null)
      await storeResult(stage, { measures, loungeVersion: beside.loungeVersion });
    return printWeb(measures) && failed.length === 0;
  } finally {
    await stage.stop();
  }
}

function chosenParts(): readonly Part[] {
  const given = (process.env['PARTS'] ?? '').split(',').filter((name) => name !== '');
  const unknown = given.filter((name) => !(PARTS as readonly string[]).includes(name));
  if (unknown.length > 0) throw new Error(`there is no part ${unknown.join(', ')}; there are ${PARTS.join(', ')}`);
  return given.length === 0 ? PARTS : PARTS.filter((part) => given.includes(part));
}

async function measureBeside(stage: WebStage, plan: WebPlan): Promise<Beside> {
  const conversations: BenchConversation[] = [];
  for (let n = 0; n <= plan.rounds; n += 1) conversations.push(await stage.conversation(`Talk ${n}`, MESSAGES));
  const sides: Side[] = [klatchSide(stage, conversations)];
  try {
    sides.push(await bareSide(stage, conversations));
    const lounge = process.env['PEERS'] === 'none' ? null : await LoungeSide.start(stage, conversations);
    if (lounge !== null) sides.push(lounge);
    const measures: Measures = {
      ...(await measureFirstLoad(stage, sides)),
      ...(await measureStarts(sides, plan.rounds)),
      ...(await measureUse(sides, plan)),
    };
    return {
      measures,
      loungeVersion: lounge?.version ?? null,
      flood: (await lounge?.measureFlood(plan)) ?? null,
    };
  } finally {
    for (const side of sides) await side.stop();
  }
}

function withLounge(measures: Measures, flood: LoungeFlood | null): Measures {
  if (flood === null) return measures;
  const { floodLag, floodKeys, floodNodes, ...rest } = measures;
  return {
    ...rest,
    floodLag: { ...floodLag!, lounge: flood.lagMs },
    floodKeys: { ...floodKeys!, lounge: flood.keyMs },
    floodNodes: { ...floodNodes!, lounge: flood.nodes },
  };
}
