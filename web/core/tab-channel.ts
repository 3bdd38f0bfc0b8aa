/** For this time after another tab announced a sign-out, the end of the session counts as that sign-out. */
const SIGN_OUT_ANNOUNCEMENT_VALID_MS = 30_000;

/**
 * Tells the other tabs of this browser that a person signs out. The server tells those tabs only that the session has
 * ended. A sign-out deletes the unsent texts from the browser; after another end they stay.
 */
export class TabChannel {
  readonly #channel: BroadcastChannel;
  #signOutHeardAtMs: number | null = null;

  /** `basePathname` distinguishes several servers of one origin. */
  constructor(basePathname: string) {
    this.#channel = new BroadcastChannel(`klatch${basePathname}`);
    this.#channel.addEventListener('message', ({ data }: MessageEvent<boolean>) => {
      this.#signOutHeardAtMs = data ? performance.now() : null;
    });
  }

  /**
   * Called before the request to sign out: the server closes the connections of the other tabs before it answers that
   * request.
   */
  announceSignOut(): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel takes none
    this.#channel.postMessage(true);
  }

  /** Called when the request to sign out failed: a later end of the session then has another reason. */
  withdrawSignOut(): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel takes none
    this.#channel.postMessage(false);
  }

  /** Whether another tab announced a sign-out in the last 30 seconds, and did not withdraw it. */
  get heardSignOut(): boolean {
    return (
      this.#signOutHeardAtMs !== null && performance.now() - this.#signOutHeardAtMs < SIGN_OUT_ANNOUNCEMENT_VALID_MS
    );
  }
}
