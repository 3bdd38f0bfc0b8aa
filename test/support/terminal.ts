import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from './eventually.ts';

const ESCAPE = String.fromCharCode(0x1b);
/** Matches a control sequence, or any other single character. */
const SIGN = new RegExp(`${ESCAPE}\\[([?\\d;]*)([A-Za-z])|([^])`, 'gu');

/** A program at a terminal of its own (by util-linux's `script`), with the content of its screen. */
export class Terminal {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #output = '';

  constructor(command: readonly string[], options: { env?: NodeJS.ProcessEnv; cwd?: string } = {}) {
    const line = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
    const env = { ...process.env, TERM: 'xterm', NODE_OPTIONS: '', ...options.env };
    this.#child = spawn('script', ['-qfec', line, '/dev/null'], { env, cwd: options.cwd, stdio: 'pipe' });
    this.#child.stdin!.on('error', () => {});
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#output += text));
    }
    this.#ended = once(this.#child, 'close');
  }

  /** All text that is or was on the screen, without spaces at the ends of lines. */
  get screen(): string {
    return renderScreen(this.#output);
  }

  /** Every byte that the program wrote. */
  get output(): string {
    return this.#output;
  }

  /** The process id of the program that runs in the terminal. */
  get pid(): number {
    return this.#child.pid!;
  }

  type(text: string): void {
    this.#child.stdin!.write(text);
  }

  /** Resolves when the screen shows the pattern; fails with the content of the screen. */
  async shows(pattern: RegExp | string): Promise<void> {
    const isShown = (screen: string): boolean =>
      typeof pattern === 'string' ? screen.includes(pattern) : pattern.test(screen);
    await eventually(async () => this.screen, isShown);
  }

  /** Resolves with the program's exit status when it has exited on its own. */
  async ended(): Promise<number | null> {
    await this.#ended;
    return this.#child.exitCode;
  }

  /** Ends the program, if it still runs. */
  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

/**
 * The text on the screen of a terminal of any width after this output. It may contain only the usual control sequences.
 */
export function renderScreen(output: string): string {
  const rows: string[][] = [[]];
  let [row, column] = [0, 0];
  const moves: Readonly<Record<string, (count: number) => void>> = {
    A: (count) => (row = Math.max(0, row - count)),
    B: (count) => (row += count),
    C: (count) => (column += count),
    D: (count) => (column = Math.max(0, column - count)),
    G: (count) => (column = count - 1),
    J: () => {
      rows.length = row + 1;
      rows[row]!.length = Math.min(rows[row]!.length, column);
    },
    K: () => (rows[row]!.length = Math.min(rows[row]!.length, column)),
  };
  for (const [, parameters, command, sign] of output.matchAll(SIGN)) {
    if (command !== undefined) moves[command]?.(Number(parameters) || (command === 'G' ? 1 : Number(command < 'E')));
    else if (sign === '\r') column = 0;
    else if (sign === '\n') row += 1;
    else if (sign === '\b') column -= 1;
    else {
      const cells = rows[row]!;
      while (cells.length < column) cells.push(' ');
      cells[column] = sign!;
      column += 1;
    }
    while (rows.length <= row) rows.push([]);
  }
  return rows.map((cells) => cells.join('').trimEnd()).join('\n');
}
