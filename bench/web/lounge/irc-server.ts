import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../../../test/support/eventually.ts';
import { freePort } from '../../../test/support/ports.ts';

/** The program of Debian's package ngircd. */
export const IRC_PROGRAM = '/usr/sbin/ngircd';

/** An IRC server that delays no sender. With its default penalties, the benchmark would measure those delays. */
export class IrcServer {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(port: number, child: ChildProcess) {
    this.port = port;
    this.#child = child;
  }

  static async start(folder: string): Promise<IrcServer> {
    const port = await freePort();
    const config = join(folder, 'ngircd.conf');
    await writeFile(config, configOf(port));
    const child = spawn(IRC_PROGRAM, ['--nodaemon', '--config', config], { stdio: 'ignore' });
    await eventually(
      () => child.exitCode !== null || isListening(port),
      (isDone) => isDone,
    );
    if (child.exitCode !== null) throw new Error(`ngircd ended with ${child.exitCode}`);
    return new IrcServer(port, child);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
  }
}

function configOf(port: number): string {
  return `[Global]
Name = irc.bench.test
Info = Benchmark
Listen = 127.0.0.1
Ports = ${port}
MotdPhrase = Benchmark
[Limits]
MaxConnections = 0
MaxConnectionsIP = 0
MaxJoins = 0
MaxPenaltyTime = 0
MaxNickLength = 30
PingTimeout = 120
[Options]
DNS = no
Ident = no
PAM = no
`;
}

function isListening(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port });
  return new Promise((resolve) => {
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
