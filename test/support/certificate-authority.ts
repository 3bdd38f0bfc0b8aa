import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The files of a key and its certificate, in PEM. */
export interface KeyFiles {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority for tests, made with openssl; `stop` removes the folder with its files. */
export class CertificateAuthority {
  readonly folder: string;
  #count = 0;

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'klatch-ca-'));
    chmodSync(this.folder, 0o755);
    this.#openssl([
      'req',
      '-x509',
      ...NEW_KEY,
      this.#path('ca.key'),
      '-out',
      this.caFile,
      '-days',
      '2',
      '-subj',
      '/CN=CA',
    ]);
  }

  get caFile(): string {
    return this.#path('ca.pem');
  }

  /**
   * Issues a certificate for a name. `names` are its subjectAltNames in the notation of openssl. `uid` owns the file of
   * the key.
   */
  issue(commonName: string, names: string | null, uid?: number): KeyFiles {
    this.#count += 1;
    const [key, request, certificate, extensions] = ['key', 'csr', 'pem', 'ext'].map((end) =>
      this.#path(`${this.#count}.${end}`),
    ) as [string, string, string, string];
    this.#openssl(['req', ...NEW_KEY, key, '-out', request, '-subj', `/CN=${commonName}`]);
    writeFileSync(extensions, names === null ? '' : `subjectAltName=${names}\n`);
    const signed = ['-CA', this.caFile, '-CAkey', this.#path('ca.key'), '-CAcreateserial', '-extfile', extensions];
    this.#openssl(['x509', '-req', '-in', request, '-out', certificate, '-days', '2', ...signed]);
    chmodSync(key, 0o600);
    chmodSync(certificate, 0o644);
    if (uid !== undefined) chownSync(key, uid, -1);
    return { certificate, key };
  }

  stop(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.folder, name);
  }

  #openssl(args: readonly string[]): void {
    execFileSync('openssl', args, { stdio: 'pipe' });
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout'];
