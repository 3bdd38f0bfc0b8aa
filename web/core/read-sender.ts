/** Sends read positions to the server. Until one could be sent, other devices show the messages as unread. */
export class ReadSender {
  readonly #markRead: (conversation: number, seq: number) => Promise<unknown>;
  readonly #unsentSeqs = new Map<number, number>();

  constructor(markRead: (conversation: number, seq: number) => Promise<unknown>) {
    this.#markRead = markRead;
  }

  /** By conversation, the read positions to send again on the next connection. */
  get unsentSeqs(): readonly (readonly [conversation: number, seq: number])[] {
    return [...this.#unsentSeqs];
  }

  /** Resolves to whether the server took the position. */
  async send(conversation: number, seq: number): Promise<boolean> {
    try {
      await this.#markRead(conversation, seq);
      this.#unsentSeqs.delete(conversation);
      return true;
    } catch {
      this.#unsentSeqs.set(conversation, seq);
      return false;
    }
  }
}
