/** If the server has not closed the connections of the other tabs within this time, the sign-out failed. */
const SIGN_OUT_HEARD_MS = 30_000;

/**
 * Tells the other tabs of this browser that a person signs out. The server tells those tabs only that the session has
 * ended. After an end for another reason, the unsent texts stay in the browser.
 */
export class TabChannel {
  readonly #channel: BroadcastChannel;
  #signOutHeardAtMs: number | null = null;

  /** `basePathname` tells installations of one origin apart. */
  constructor(basePathname: string) {
    this.#channel = new BroadcastChannel(`klatch${basePathname}`);
    this.#channel.addEventListener('message', ({ data }: MessageEvent<boolean>) => {
      this.#signOutHeardAtMs = data ? performance.now() : null;
    });
  }

  /** Called before the request to sign out: the server closes the connections of the other tabs before it answers. */
  announceSignOut(): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel takes none
    this.#channel.postMessage(true);
  }

  /** Called when the request to sign out failed: a later end of the session then has another reason. */
  withdrawSignOut(): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a BroadcastChannel takes none
    this.#channel.postMessage(false);
  }

  /** Whether another tab signed out just now. */
  get heardSignOut(): boolean {
    return this.#signOutHeardAtMs !== null && performance.now() - this.#signOutHeardAtMs < SIGN_OUT_HEARD_MS;
  }
}
