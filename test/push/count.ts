/** Lets tests wait until a count reaches a number. */
export class Count {
  #count = 0;
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  get value(): number {
    return this.#count;
  }

  add(): void {
    this.#count += 1;
    this.#waiting = this.#waiting.filter(({ count, resolve }) => {
      if (count > this.#count) return true;
      resolve();
      return false;
    });
  }

  /** Resolves once the total reaches this number. */
  reached(count: number): Promise<void> {
    if (this.#count >= count) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ count, resolve }));
  }
}
