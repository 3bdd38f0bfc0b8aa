/** A change of a group: no two of them have the same three numbers. */
interface ChangeNumber {
  readonly group: number;
  readonly epoch: number;
  readonly rev: number;
}

/** What each change made of a message, as hooks and live clients tell it: the same for all, and at all times. */
export class TextByRev {
  /** Changes that were told with a second text. */
  conflicts = 0;
  readonly #texts = new Map<string, string>();

  /** `text` says which message it is, too. */
  note({ group, epoch, rev }: ChangeNumber, text: string): void {
    const key = `${group}:${epoch}:${rev}`;
    const known = this.#texts.get(key);
    if (known === undefined) this.#texts.set(key, text);
    else if (known !== text) this.conflicts += 1;
  }
}
