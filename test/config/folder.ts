import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** 43 random characters, as `createServerSecret` makes them. */
export const SECRET = 'mT4vX0cQ9uLr2YwKz7BnEjHs5PdGfA1oIiRtNqVkWxE';

/** The smallest valid configuration. */
export const MINIMAL = `secret = "${SECRET}"\nhttp.base-uri = "https://chat.example.org"\n`;

/** A folder of files for one test; `using` removes it. Other users cannot read its files unless `mode` allows it. */
export class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'klatch-config-'));

  write(name: string, content: string | Buffer, mode = 0o600): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
