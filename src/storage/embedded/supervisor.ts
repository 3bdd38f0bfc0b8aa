import { startEmbedded, type EmbeddedOptions, type EmbeddedServer } from './embedded.ts';

const CHECK_INTERVAL_MS = 1_000;

/**
 * Keeps the private server running: when it does not answer, the supervisor starts it again (or finds that it runs, and
 * leaves it alone). Klatch survives the end of the server: it refuses messages for a moment, and nothing that was
 * committed is lost.
 */
export class EmbeddedSupervisor {
  readonly #options: EmbeddedOptions;
  readonly #pingDatabase: () => Promise<void>;
  #server: EmbeddedServer;
  #timer: NodeJS.Timeout | null = null;
  #runningCheck: Promise<void> = Promise.resolve();
  #stopped = false;

  /** `pingDatabase` resolves when the database answered a query just now. */
  constructor(server: EmbeddedServer, options: EmbeddedOptions, pingDatabase: () => Promise<void>) {
    this.#server = server;
    this.#options = options;
    this.#pingDatabase = pingDatabase;
    this.#scheduleCheck();
  }

  /** Stops the checks, and then the server. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#runningCheck;
    await this.#server.stop();
  }

  #scheduleCheck(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#runningCheck = this.#restartIfDown().finally(() => this.#scheduleCheck());
    }, CHECK_INTERVAL_MS);
  }

  async #restartIfDown(): Promise<void> {
    try {
      await this.#pingDatabase();
      return;
    } catch {
      // The database does not answer. The code below restarts the server and logs the result.
    }
    try {
      this.#server = await startEmbedded({ ...this.#options, isCancelled: () => this.#stopped });
      this.#options.log('the database server runs again', { adopted: this.#server.wasAlreadyRunning });
    } catch (error) {
      this.#options.log('the database server cannot be started, trying again', { error });
    }
  }
}
