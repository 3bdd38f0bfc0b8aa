import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A private key and its certificate, in PEM. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** Returns a sentence that says what to do if openssl is missing, and null otherwise. */
export async function lacksOpenssl(): Promise<string | null> {
  try {
    await run('openssl', ['version']);
    return null;
  } catch {
    return 'openssl is not installed: apt-get install openssl';
  }
}

/** Makes a self-signed certificate with openssl. `name` is its subjectAltName, such as `IP:127.0.0.1`. */
export async function makeCertificate(name: string): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), 'klatch-faults-'));
  try {
    const key = join(folder, 'key.pem');
    const cert = join(folder, 'cert.pem');
    const keyType = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    const subject = ['-subj', '/CN=receiver', '-addext', `subjectAltName=${name}`];
    await run('openssl', ['req', '-x509', ...keyType, '-keyout', key, '-out', cert, '-days', '2', ...subject]);
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
