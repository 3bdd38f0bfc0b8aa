import { createInterface, type Interface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { exitCodes } from './exit-codes.ts';
import { CommandError } from './failure.ts';

/** After this number of invalid answers to a question, the command gives up. */
const MAX_TRIES_PER_QUESTION = 5;

interface Question {
  readonly text: string;
  /** The answer if the person only presses Enter; undefined: an answer is required. */
  readonly defaultValue?: string;
  /** True: the terminal does not show the typed text. */
  readonly isTypingHidden?: boolean;
  /** Returns the problem of an answer, as a sentence; null: the answer is valid. */
  readonly check: (answer: string) => string | null;
}

/** Asks a person questions at a terminal. The caller has to call `stop` at the end, also after a failure. */
export class Prompt {
  readonly #readline: Interface;
  readonly #output: NodeJS.WritableStream;
  readonly #readlineClosed = new AbortController();
  #isMuted = false;

  constructor(input: NodeJS.ReadableStream, output: NodeJS.WritableStream & { isTTY?: boolean }) {
    this.#output = output;
    const echo = new Writable({
      write: (chunk: Buffer, _, done) => {
        if (!this.#isMuted) output.write(chunk);
        done();
      },
    });
    this.#readline = createInterface({ input, output: echo, terminal: output.isTTY === true });
    // `close` is emitted after Ctrl-D or Ctrl-C. Without the abort, the promise of an open question would never settle.
    this.#readline.once('close', () => this.#readlineClosed.abort());
  }

  /**
   * Asks a question until an answer passes the check. Rejects with CommandError when the person ends the prompt, or
   * after too many invalid answers.
   */
  async ask({ text, defaultValue, isTypingHidden = false, check }: Question): Promise<string> {
    const promptText = `${text}${defaultValue === undefined ? '' : ` [${defaultValue}]`}: `;
    for (let tries = 0; tries < MAX_TRIES_PER_QUESTION; tries += 1) {
      const typed = await this.#question(promptText, isTypingHidden);
      const answer = typed === '' ? defaultValue : typed;
      const problem = answer === undefined ? 'an answer is needed' : check(answer);
      if (answer !== undefined && problem === null) return answer;
      this.#output.write(`  ${problem}\n`);
    }
    throw new CommandError(exitCodes.usage, 'that was not understood, and nothing was written: repeat the command');
  }

  /** Shows lines between the questions. */
  say(...lines: readonly string[]): void {
    for (const line of lines) this.#output.write(`${line}\n`);
  }

  stop(): void {
    this.#readline.close();
  }

  async #question(promptText: string, isTypingHidden: boolean): Promise<string> {
    try {
      const answer = this.#readline.question(promptText, { signal: this.#readlineClosed.signal });
      // Set only after the question was shown, because nothing is shown while `#isMuted` is true.
      this.#isMuted = isTypingHidden;
      return isTypingHidden ? await answer : (await answer).trim();
    } catch (error) {
      if (!this.#readlineClosed.signal.aborted) throw error;
      const sentence = 'left without an answer; nothing was written: repeat the command';
      throw new CommandError(exitCodes.usage, sentence, { cause: error });
    } finally {
      if (isTypingHidden) this.#output.write('\n');
      this.#isMuted = false;
    }
  }
}
