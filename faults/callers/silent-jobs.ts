import type { ServerProcess } from '../../test/support/server-process.ts';
import type { TestGroup } from '../../test/support/server.ts';
import { until } from '../until.ts';
import { queryDatabase, readStoredTexts } from './past-the-server.ts';
import { RepeatingCaller } from './repeating-caller.ts';

const nameOf = (job: number): string => `job-${job}`;
const doneText = (job: number): string => `${nameOf(job)} is done`;
const againText = (job: number): string => `${nameOf(job)} is done again`;
const backText = (job: number): string => `🟢 ${nameOf(job)} is back`;
const silenceBeginning = (job: number): string => `🔴 nothing from ${nameOf(job)} since `;

/**
 * Jobs with an expectation (a post is due in a given time). They stop posting and later post again. The group has to
 * show each silence once, and each return once.
 */
export class SilentJobs {
  readonly #server: ServerProcess;
  readonly #group: TestGroup;
  readonly #caller = new RepeatingCaller('a job');
  #jobs = 0;
  /** The number of the first job that has not posted again after its silence; all jobs before it have. */
  #firstSilent = 0;

  constructor(server: ServerProcess, group: TestGroup) {
    this.#server = server;
    this.#group = group;
  }

  get count(): number {
    return this.#jobs;
  }

  abort(): void {
    this.#caller.abort();
  }

  /** A new job posts, and its next post is due at once. Each job whose silence the group shows posts again. */
  async report(): Promise<void> {
    await this.#comeAgain(await this.#texts());
    const job = this.#jobs++;
    await this.#post(job, doneText(job), '1m');
    await queryDatabase(
      this.#server,
      (sql) =>
        sql`update expectation set due_ms = 0 where conversation_id = ${this.#group.id} and key = ${nameOf(job)}`,
    );
  }

  /** Resolves when every job has posted again and the group shows its return. */
  async finish(): Promise<void> {
    await until('every silence was said, and its end', async () => {
      const texts = await this.#texts();
      await this.#comeAgain(texts);
      return texts.filter((text) => text.startsWith('🟢 ')).length >= this.#jobs;
    });
  }

  /** The differences between the expected and the shown messages of the group, in words. Call it after `finish`. */
  async violations(): Promise<string[]> {
    const texts = await this.#texts();
    const wrong = Array.from({ length: this.#jobs }, (_, job) => job).filter((job) => {
      const shown = texts.filter((text) => text.includes(`${nameOf(job)} `));
      const silence = shown.find((text) => text.startsWith(silenceBeginning(job)));
      return shown.join('\n') !== [doneText(job), silence, againText(job), backText(job)].join('\n');
    });
    return [...this.#caller.violations, ...wrong.map((job) => `the silence of ${nameOf(job)} was not said once`)];
  }

  #texts(): Promise<string[]> {
    return readStoredTexts(this.#server, this.#group.id);
  }

  async #comeAgain(texts: readonly string[]): Promise<void> {
    while (texts.some((text) => text.startsWith(silenceBeginning(this.#firstSilent)))) {
      await this.#post(this.#firstSilent, againText(this.#firstSilent), '366d');
      this.#firstSilent += 1;
    }
  }

  #post(job: number, text: string, expect: string): Promise<boolean> {
    const headers = { 'idempotency-key': text.replaceAll(' ', '-') };
    return this.#caller.post(this.#group.webhook, { body: { text, key: nameOf(job), expect }, headers });
  }
}
