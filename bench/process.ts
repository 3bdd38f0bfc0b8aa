import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A helper program with a process of its own, so that it shares no event loop with the measured program. */
export class BenchProcess {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /** Starts a script of this folder. Resolves when the script is ready, with the first line that it prints. */
  static async start(script: string, args: readonly string[] = []): Promise<{ process: BenchProcess; first: string }> {
    const child = spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const started = new BenchProcess(child);
    return { process: started, first: await started.#line() };
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** False if the process has ended for any reason. */
  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends a line and resolves with the line of the answer. */
  async ask(line: string): Promise<string> {
    this.#child.stdin!.write(`${line}\n`);
    return this.#line();
  }

  async stop(): Promise<void> {
    if (!this.running) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    await exited;
  }

  async #line(): Promise<string> {
    const next = await this.#answers.next();
    if (next.done === true) throw new Error('a process of the benchmark ended too early');
    return next.value;
  }
}
