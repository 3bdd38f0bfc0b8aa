import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine, type Machine } from '../../faults/machine.ts';
import type { Measures } from './rows.ts';
import type { WebStage } from './stage.ts';

const FILE = join(import.meta.dirname, 'result.json');

/** The result of a whole run, for the page with the figures (scripts/web-figures-page.ts). */
export interface WebResult {
  /** The day of the run, such as `2026-11-27`. */
  readonly date: string;
  readonly machine: Machine;
  readonly chromium: string;
  readonly lounge: string;
  readonly measures: Measures;
}

/** Stores the result of a whole run; it replaces the previous one. */
export async function storeResult(
  stage: WebStage,
  { measures, loungeVersion }: { readonly measures: Measures; readonly loungeVersion: string },
): Promise<void> {
  const result: WebResult = {
    date: new Date().toISOString().slice(0, 10),
    machine: await describeMachine(),
    chromium: await stage.browserVersion(),
    lounge: loungeVersion,
    measures,
  };
  writeFileSync(FILE, `${JSON.stringify(result, null, 2)}\n`);
}

/** Reads the stored result; null if there is none yet. */
export function readResult(): WebResult | null {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8')) as WebResult;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
