import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { callAs } from '../support/call.ts';
import { eventually } from '../support/eventually.ts';
import { createPerson } from '../support/people.ts';
import { TestServer } from '../support/server.ts';
import { root } from '../cli/program.ts';

/** The lines that docs/live-protocol.md asks people to type. */
function typedLines(): string[] {
  const page = readFileSync(join(root, 'docs/live-protocol.md'), 'utf8');
  const block = /## Two lines by hand[^]*?```\n([^]*?)```/.exec(page)?.[1] ?? '';
  return block.trimEnd().split('\n');
}

/** Starts nc, or a replacement if it is not installed: a shell that carries bytes both ways. */
function netcat(port: number): ChildProcess {
  const shell = `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3 & cat >&3; wait`;
  const [command, args]: [string, string[]] = hasNc() ? ['nc', ['127.0.0.1', String(port)]] : ['bash', ['-c', shell]];
  return spawn(command, args, { stdio: 'pipe', detached: true });
}

function hasNc(): boolean {
  try {
    execFileSync('sh', ['-c', 'command -v nc']);
    return true;
  } catch {
    return false;
  }
}

test('nc sends a message with two typed lines', async () => {
  const endpoint = { type: 'tcp', interface: '127.0.0.1', port: 0, tls: null } as const;
  const server = await TestServer.start({ endpoints: [endpoint] });
  const alice = await createPerson(server, 'alice');
  const { id } = await server.createGroup();
  await server.operate('groups.add-member', { group: id, user: 'alice' });
  const nc = netcat(server.endpoints[0]!.port);
  try {
    let output = '';
    nc.stdout!.setEncoding('utf8').on('data', (text: string) => (output += text));
    const lines = typedLines();
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      const typed = line.replace(/kls_[^"]*/, alice.token).replace(/"conversation":\d+/, `"conversation":${id}`);
      nc.stdin!.write(`${typed}\n`);
    }
    await eventually(
      () => output,
      (text) => /^.*\n.*\n$/.test(text),
    );
    const answers = output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: number; result?: object });
    expect(answers).toMatchObject([
      { id: 1, result: { account: { nick: 'alice' } } },
      { id: 2, result: { id: `${id}:1` } },
    ]);
    const { messages } = await callAs(server, alice, 'messages.history', { conversation: id });
    expect(messages).toMatchObject([{ text: JSON.parse(lines[1]!).params.text, sender: { nick: 'alice' } }]);
  } finally {
    const ended = once(nc, 'close');
    // Kills the whole process group, since the shell has a child of its own.
    process.kill(-nc.pid!, 'SIGKILL');
    await ended;
    await server.stop();
  }
});
