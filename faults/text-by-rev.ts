/** The three numbers that identify a change of a message among the changes of all groups. */
interface ChangeNumber {
  readonly group: number;
  readonly epoch: number;
  readonly rev: number;
}

/** The text of a message after each change. All hooks and live clients have to get the same text for one change. */
export class TextByRev {
  /** The number of changes that arrived with a second text. */
  conflicts = 0;
  readonly #texts = new Map<string, string>();

  /**
   * Records what a hook or client got. `text` also contains the message's `seq`, so that another message under the same
   * rev is a conflict too.
   */
  note({ group, epoch, rev }: ChangeNumber, text: string): void {
    const key = `${group}:${epoch}:${rev}`;
    const known = this.#texts.get(key);
    if (known === undefined) this.#texts.set(key, text);
    else if (known !== text) this.conflicts += 1;
  }
}
