import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeMachine, type Machine } from '../../faults/machine.ts';
import type { Measures } from './rows.ts';
import type { WebStage } from './stage.ts';

const FILE = join(import.meta.dirname, 'result.json');

/** A whole run, for the page. */
export interface WebResult {
  /** `2026-11-27` */
  readonly date: string;
  readonly machine: Machine;
  readonly chromium: string;
  readonly lounge: string;
  readonly measures: Measures;
}

/** Keeps a whole run in place of the one before. */
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

/** Null: no whole run was made yet. */
export function readResult(): WebResult | null {
  try {
    return JSON.parse(readFileSync(FILE, 'utf8')) as WebResult;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
