import { randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { request } from 'undici';
import { errorKinds } from '../../src/errors.ts';
import { describeOperation } from '../../src/operations/describe/operation-docs.ts';
import type { Scope } from '../../src/model/scopes.ts';
import type { Operation } from '../../src/operations/core/operation.ts';
import { operationTable } from '../../src/operations/table.ts';
import { recordingLog } from '../support/recording-log.ts';
import { calls } from './calls.ts';
import { hostileBodies, hostileValues } from './hostile-values.ts';
import { matrix } from './matrix.ts';
import { callers, readMatrix, type AccessRow, type Caller } from './read-matrix.ts';
import type { Situation } from './situation.ts';
import { Stage } from './stage.ts';

/** The number of concurrent calls. */
const AT_ONCE = 16;

const operations = operationTable();
const rows = readMatrix(matrix);
const served = [...operations.values()].filter(({ who }) => who !== 'system');

let stage: Stage;
const lines: string[] = [];
beforeAll(async () => {
  stage = await Stage.set(recordingLog(lines));
});
afterAll(() => stage.strike());

interface Answer {
  readonly status: number;
  readonly text: string;
  /** The Retry-After of the answer, in seconds; null if it has none. */
  readonly retryAfterS: number | null;
}

/** A random IP address for each call: sign-ins are limited for each address. */
const address = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`;

async function send(operation: Operation, token: string | undefined, body: string | Buffer): Promise<Answer> {
  // Uses undici and not fetch, which takes more CPU time: the test makes 14,000 calls.
  const response = await request(`${stage.server.url}/v1/api/${operation.name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': address(),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body,
  });
  const retryAfter = response.headers['retry-after'];
  return {
    status: response.statusCode,
    text: await response.body.text(),
    retryAfterS: retryAfter === undefined ? null : Number(retryAfter),
  };
}

/** Sends a call, and repeats it after temporary refusals: the database of a busy machine may not answer in time. */
async function sendUntilAdmitted(...call: Parameters<typeof send>): Promise<Answer> {
  for (;;) {
    const answer = await send(...call);
    if (answer.status !== 503 || answer.retryAfterS === null) return answer;
    await wait(answer.retryAfterS * 1_000);
  }
}

/** The faults of an answer to hostile input. None if the server accepted the input, or refused it with a sentence. */
function faultOf({ status, text }: Answer): string[] {
  if (status === 200) return [];
  const { message, code } = JSON.parse(text) as { message: unknown; code: unknown };
  const faults: string[] = [];
  if (status < 400 || status > 499) faults.push(`status ${status} (${String(code)})`);
  if (typeof code !== 'string' || !Object.hasOwn(errorKinds, code)) faults.push(`code ${String(code)}`);
  if (typeof message !== 'string' || message.length < 10 || message.length > 2_500) faults.push('no sentence');
  if (/\n {4}at |node_modules|\.ts:\d|select |postgres|ZodError|undefined|\[object/i.test(String(message))) {
    faults.push(`leaks: ${String(message)}`);
  }
  return faults;
}

/**
 * Returns a caller with the necessary rights, and the line of the matrix with the call. A call that the access check
 * refuses would test nothing after that check.
 */
function ableRow(operation: Operation): { row: AccessRow; caller: Caller } {
  const able = (row: AccessRow): Caller | undefined =>
    callers.find((each) => each !== 'anonymous' && row.cells[each] === 'yes');
  const row = rows.find((each) => each.operation === operation.name && able(each) !== undefined);
  if (row !== undefined) return { row, caller: able(row)! };
  return { row: rows.find((each) => each.operation === operation.name)!, caller: 'owner' };
}

/**
 * Yields the correct input, and inputs with one fault: each field with every hostile value, each field missing, and one
 * unknown field.
 */
function* inputs(operation: Operation, good: object): Generator<object> {
  const { properties = {} } = describeOperation(operation).input;
  yield good;
  for (const [key, schema] of Object.entries(properties)) {
    for (const value of hostileValues) {
      yield { ...good, [key]: value };
      if (schema.type === 'array') yield { ...good, [key]: [value] };
    }
    const { [key as keyof object]: _, ...without } = good;
    yield without;
  }
  yield { ...good, unknown: 1 };
}

/**
 * Calls the operation with each input, some at the same time. After an input that changed the situation, it continues
 * with a new situation.
 */
async function attack(operation: Operation): Promise<string[]> {
  const { row, caller } = ableRow(operation);
  const call = calls[row.label]!;
  const faults: string[] = [];
  let situation = await stage.situation(operation.scope);
  let good = await call.input(situation, caller);
  const attempt = async (input: object): Promise<boolean> => {
    const answer = await sendUntilAdmitted(operation, situation.caller(caller)?.token, JSON.stringify(input));
    for (const fault of faultOf(answer)) faults.push(`${fault} for ${JSON.stringify(input).slice(0, 200)}`);
    return answer.status === 200;
  };
  const atOnce = call.changes === true ? 1 : AT_ONCE;
  const all = [...inputs(operation, good)];
  const originals = new Map(Object.entries(good));
  for (let at = 0; at < all.length; at += atOnce) {
    // Replaces each id of the first situation by the id of the same object in the current situation.
    const renewed = all.slice(at, at + atOnce).map((input) => renew(input, originals, good));
    const done = await Promise.all(renewed.map(attempt));
    if (call.changes === true && done.includes(true)) {
      situation = await stage.situation(operation.scope);
      good = await call.input(situation, caller);
    }
  }
  return faults;
}

function renew(input: object, originals: ReadonlyMap<string, unknown>, good: object): object {
  const entries = Object.entries(input).map(([key, value]) => {
    const isGood = originals.has(key) && originals.get(key) === value;
    return [key, isGood ? (good as Record<string, unknown>)[key] : value];
  });
  return Object.fromEntries(entries) as object;
}

describe('a hostile input', () => {
  test.each(served)('of $name is done or refused in a sentence, whatever the field holds', async (operation) => {
    expect(await attack(operation)).toEqual([]);
    expect(lines.filter((line) => line.includes('a request failed'))).toEqual([]);
  });

  // The server accepts none of the bodies, so all operations with the same scope share one situation.
  const situations = new Map<Scope | null, Promise<Situation>>();
  const shared = ({ scope }: Operation): Promise<Situation> => {
    const found = situations.get(scope) ?? stage.situation(scope);
    situations.set(scope, found);
    return found;
  };

  test.each(served)('as the whole body of $name is refused', async (operation) => {
    const { caller } = ableRow(operation);
    const token = (await shared(operation)).caller(caller)?.token;
    const found = await Promise.all(
      hostileBodies.map(async (body) => {
        const answer = await send(operation, token, body);
        // A byte order mark does not belong to the JSON body: an operation without input accepts this body.
        const isDone = answer.status === 200 && body !== '\ufeff{}';
        return [...faultOf(answer), ...(isDone ? ['done'] : [])].map((fault) => `${fault} for ${body.slice(0, 50)}`);
      }),
    );
    expect(found.flat()).toEqual([]);
  });

  test('of 10 MiB is refused, and costs nobody anything', async () => {
    const body = Buffer.alloc(10 * 1024 * 1024, 0x20);
    const { people } = await stage.situation(null);
    for (const operation of served) {
      // The body is refused by its length, or because the owner lacks the right. The server may close the connection
      // before the body has been sent.
      const answer = await send(operation, people.owner.token, body).catch(() => null);
      if (answer !== null) expect([403, 413]).toContain(answer.status);
    }
    expect((await fetch(`${stage.server.url}/v1/ready`)).status).toBe(200);
    // The server closes a connection that stalls after 30 s; that counts as an answer too.
  });

  test('leaves no token, number or text of anybody in the log', () => {
    expect(lines.length).toBeGreaterThan(0);
    const secret = /kl[sbl]_[\w-]{20}|\+?4917\d{6}|whsec_|drop table|of the integration/;
    expect(lines.filter((line) => secret.test(line))).toEqual([]);
  });

  test('has changed nothing for all objects', () => {
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined();
  });
});
