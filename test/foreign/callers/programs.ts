import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { text as readText } from 'node:stream/consumers';
import { describe, expect } from '@jest/globals';
import { storedMessages, type StoredMessage } from '../../http/wire.ts';
import type { TestGroup, TestServer } from '../../support/server.ts';
import { programEnv } from './program-env.ts';

/** `describe`, or `describe.skip` with the reason in the name if the program is missing. */
export function describeWith(path: string, name: string, tests: () => void): void {
  if (isReadable(path)) describe(name, tests);
  else describe.skip(`${name} (${path} is missing: make foreign-test installs it)`, tests);
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

export interface ProgramOutcome {
  readonly status: number | null;
  /** Standard output and standard error together. */
  readonly output: string;
}

/** Runs a program to its end, without a proxy. */
export async function runProgram(
  command: string,
  args: readonly string[],
  { env = {}, input = '' }: { readonly env?: Record<string, string>; readonly input?: string } = {},
): Promise<ProgramOutcome> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...programEnv(), ...env } });
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [output, errors, status] = await Promise.all([readText(child.stdout), readText(child.stderr), ended]);
  return { status, output: output + errors };
}

/** Runs a module in another Node process, for a library that cannot share a process with the server. */
export function runNode(script: string, env: Record<string, string> = {}): Promise<ProgramOutcome> {
  return runProgram(process.execPath, ['--input-type=module', '-'], { input: script, env });
}

/** The messages that a group gets while `work` runs. */
export async function messagesOf(
  server: TestServer,
  group: TestGroup,
  work: () => Promise<unknown>,
): Promise<StoredMessage[]> {
  const before = (await storedMessages(server, group)).length;
  await work();
  return (await storedMessages(server, group)).slice(before);
}

/** Expects that a program exits with 0, and that the group gets one message. */
export async function expectOneMessage(
  server: TestServer,
  group: TestGroup,
  expected: { readonly text: string; readonly label?: string | null },
  work: () => Promise<ProgramOutcome>,
): Promise<ProgramOutcome> {
  let outcome: ProgramOutcome | null = null;
  const posted = await messagesOf(server, group, async () => {
    outcome = await work();
  });
  const seen = posted.map(({ text, label }) => ('label' in expected ? { text, label } : { text }));
  // The comparison includes the output, which has the reason of a failure.
  expect({ status: outcome!.status, seen, output: outcome!.output }).toEqual({
    status: 0,
    seen: [expected],
    output: expect.any(String),
  });
  return outcome!;
}
