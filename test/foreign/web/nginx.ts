import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CertificateAuthority } from '../../support/certificate-authority.ts';
import { eventually } from '../../support/eventually.ts';
import { readRecipe } from '../../support/recipes.ts';

/** A real nginx with TLS in front of a server, configured by the lines of docs/reverse-proxy.md. */
export class Nginx {
  readonly #folder: string;
  readonly #authority: CertificateAuthority;
  readonly #child: ChildProcess;

  private constructor(folder: string, authority: CertificateAuthority, child: ChildProcess) {
    this.#folder = folder;
    this.#authority = authority;
    this.#child = child;
  }

  /** Serves `https://<host>:<port>/team/`, and forwards its requests to `serverPort`. */
  static async start(host: string, port: number, serverPort: number): Promise<Nginx> {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-nginx-'));
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue(host, `DNS:${host}`);
    const site = [
      ['listen 443 ssl', `listen 127.0.0.1:${port} ssl`],
      ['server_name chat.example.org', `server_name ${host}`],
      ['/etc/ssl/certs/chat.example.org.pem', certificate],
      ['/etc/ssl/private/chat.example.org.key', key],
      ['http://127.0.0.1:9090/', `http://127.0.0.1:${serverPort}/`],
    ].reduce((text, [from, to]) => replaceOnce(text, from!, to!), readRecipe('reverse-proxy.md', 'nginx'));
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`);
    // nginx runs as a single process: so it needs no other user, and a signal ends it.
    const lines = ['daemon off;', 'master_process off;', 'pid nginx.pid;', 'error_log stderr;', 'events {}'];
    await writeFile(join(folder, 'nginx.conf'), `${lines.join('\n')}\nhttp {\n${temporary.join('\n')}\n${site}\n}\n`);
    const child = spawn('/usr/sbin/nginx', ['-p', `${folder}/`, '-c', 'nginx.conf', '-e', 'stderr'], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const nginx = new Nginx(folder, authority, child);
    await eventually(
      () => child.exitCode !== null || canConnect(port),
      (isSettled) => isSettled,
    );
    if (child.exitCode === null) return nginx;
    await nginx.stop();
    throw new Error(`nginx ended with exit code ${child.exitCode}`);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
    this.#authority.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

function replaceOnce(text: string, from: string, to: string): string {
  if (text.split(from).length !== 2) throw new Error(`docs/reverse-proxy.md has "${from}" not once`);
  return text.replace(from, () => to);
}

function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}
