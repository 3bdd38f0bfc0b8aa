import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerKeyFiles } from '../../src/config/config.ts';
import { ensureServerKeys } from '../../src/config/keys/server-key-files.ts';

/** Key pairs of a server in a folder of their own. `verifies` checks their signatures with openssl. */
export class TestKeys implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'klatch-keys-'));
  readonly pairs: readonly ServerKeyFiles[];

  constructor(count: number) {
    this.pairs = Array.from({ length: count }, (_, n) => {
      const files = ensureServerKeys(join(this.folder, String(n)));
      return { public: files.public, private: files.private };
    });
  }

  /**
   * Whether openssl accepts `signature` (base64) as one of `text` by the pair at index `place`. Throws if openssl is
   * missing.
   */
  verifies(place: number, text: string, signature: string): boolean {
    const [signed, file] = [join(this.folder, 'signed'), join(this.folder, 'signature')];
    writeFileSync(signed, text);
    writeFileSync(file, Buffer.from(signature, 'base64'));
    const key = this.pairs[place]!.public;
    const args = ['pkeyutl', '-verify', '-pubin', '-inkey', key, '-rawin', '-in', signed, '-sigfile', file];
    try {
      return execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' }).includes('Verified Successfully');
    } catch (error) {
      // openssl exits with 1 for an invalid signature; any other failure is no verdict.
      if ((error as { status?: number | null }).status === 1) return false;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
