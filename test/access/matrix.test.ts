import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Operation } from '../../src/operations/core/operation.ts';
import { operationTable } from '../../src/operations/table.ts';
import { CallError, callAs } from '../support/call.ts';
import { calls, type Call } from './calls.ts';
import { matrix, scopesByHand } from './matrix.ts';
import { callers, readMatrix, readScopes, type AccessRow, type Caller } from './read-matrix.ts';
import type { Situation } from './situation.ts';
import { Stage } from './stage.ts';

const operations = operationTable();
const rows = readMatrix(matrix);
const scopes = readScopes(scopesByHand);

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.set();
});
afterAll(() => stage.strike());

/**
 * Calls the operation as the caller. Resolves with `yes` or the error code. A success has to answer exactly the
 * documented fields.
 */
async function outcome(
  situation: Situation,
  operation: Operation,
  cell: { caller: Caller; call: Call },
): Promise<string> {
  const input = await cell.call.input(situation, cell.caller);
  try {
    const output: unknown = await callAs(stage.server, situation.caller(cell.caller), operation.name, input);
    expect(operation.output.parse(output)).toEqual(output);
    return 'yes';
  } catch (error) {
    if (error instanceof CallError) return error.code;
    throw error;
  }
}

async function outcomes({ label, operation: name }: AccessRow): Promise<Record<string, string>> {
  const operation = operations.get(name)!;
  const call = calls[label]!;
  const found: Record<string, string> = {};
  let situation: Situation | null = null;
  for (const caller of callers) {
    situation ??= await stage.situation(scopes.get(name) ?? null);
    found[caller] = await outcome(situation, operation, { caller, call });
    if (found[caller] === 'yes' && call.changes === true) situation = null;
  }
  return found;
}

describe('the matrix', () => {
  test('has a line for every operation that is served to clients, and for no other', () => {
    const served = [...operations.values()].filter(({ who }) => who !== 'system').map(({ name }) => name);
    expect([...new Set(rows.map(({ operation }) => operation))].sort()).toEqual([...served].sort());
  });

  test('has the scope of every operation, and the operations ask for that one', () => {
    const served = [...operations.values()].filter(({ who }) => who !== 'system');
    const asked = served.map(({ name, scope }) => [name, scope] as const);
    expect(Object.fromEntries(asked)).toEqual(Object.fromEntries(scopes));
  });

  test('has each line once, and a call for it', () => {
    const labels = rows.map(({ label }) => label);
    expect(labels.filter((label, index) => labels.indexOf(label) !== index)).toEqual([]);
    expect(Object.keys(calls).sort()).toEqual([...labels].sort());
  });

  test('demands a session wherever not everybody may', () => {
    for (const { operation, cells } of rows) {
      const isOpen = operations.get(operation)?.who === 'anybody';
      expect([operation, cells.anonymous === 'unauthenticated']).toEqual([operation, !isOpen]);
    }
  });

  test.each(rows)('holds for $label', async (row) => {
    expect(await outcomes(row)).toEqual(row.cells);
  });
});
