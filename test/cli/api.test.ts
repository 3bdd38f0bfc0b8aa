import { describe, expect, test } from '@jest/globals';
import { operationTable } from '../../src/operations/table.ts';
import { runKlatch } from './program.ts';

describe('klatch api', () => {
  test('list names every operation, without a configuration and without a server', async () => {
    const { code, stdout, stderr } = await runKlatch(['api', 'list']);
    expect([code, stderr]).toEqual([0, '']);
    const names = stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(' ', 1)[0]);
    expect(names).toEqual([...operationTable().keys()]);
    const listed = JSON.parse((await runKlatch(['api', 'list', '--json'])).stdout) as { name: string }[];
    expect(listed.map(({ name }) => name)).toEqual(names);
  });

  test('describe prints what an operation takes, answers and fails with', async () => {
    const { code, stdout } = await runKlatch(['api', 'describe', 'hooks.update']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^hooks\.update: .+\.\n/);
    expect(stdout).toContain('POST /v1/api/hooks.update');
    expect(stdout).toMatch(/^hook +needed +whole number, 1 to 2147483647$/m);
    expect(stdout).toMatch(/^batch +whole number, 1 to 100\n +The most messages in a request; the default is 1\.$/m);
    expect(stdout).toMatch(/^forbidden +403 /m);
    expect(stdout).not.toContain('`');
  });

  test('describe --json prints its schemas', async () => {
    const { stdout } = await runKlatch(['api', 'describe', 'hooks.update', '--json']);
    const { name, input, output, errors } = JSON.parse(stdout) as Record<string, never>;
    expect([name, errors]).toEqual(['hooks.update', expect.arrayContaining(['unauthenticated'])]);
    expect(input).toMatchObject({ type: 'object', required: ['hook'], additionalProperties: false });
    expect(output).toMatchObject({ type: 'object' });
  });

  test('describe says so when there is no such operation', async () => {
    const { code, stdout, stderr } = await runKlatch(['api', 'describe', 'hooks.nothing']);
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toBe('klatch: There is no operation hooks.nothing: "klatch api list" lists them\n');
  });

  test('describe shows each of the answers that there can be, and what is for live connections only', async () => {
    const verify = (await runKlatch(['api', 'describe', 'auth.verify'])).stdout;
    expect(verify).toMatch(/^OUTPUT\nstatus +"signed_in"$/m);
    expect(verify).toMatch(/^OR OUTPUT\nstatus +"sign_up"$/m);
    const follow = (await runKlatch(['api', 'describe', 'live.subscribe'])).stdout;
    expect(follow).toContain('Call:     "method":"live.subscribe" on ws:// and tcp://');
  });
});
