import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AddressPolicy } from '../../src/outbound/address-policy.ts';
import { DeliveryClient, type DeliveryClientOptions } from '../../src/outbound/delivery-client.ts';
import { DnsResolver, type ResolveName } from '../../src/outbound/dns-resolver.ts';
import { Receiver, type OnRequest } from './receiver.ts';

/** The options of a client that differ from the defaults of {@link Fixture}. */
export interface ClientOptions extends Partial<DeliveryClientOptions> {
  readonly allow?: readonly string[];
  readonly resolve?: ResolveName;
}

/** Opens receivers and clients for one test, and closes them all. */
export class Fixture {
  readonly #opened: { stop(): Promise<void> }[] = [];

  async receiver(onRequest: OnRequest, tls?: { key: string; cert: string }): Promise<Receiver> {
    const receiver = await Receiver.start(onRequest, tls);
    this.#opened.push(receiver);
    return receiver;
  }

  /**
   * Opens a client with one connection per host, and with loopback allowed. Each connection looks its name up; by
   * default the address is 127.0.0.1.
   */
  client({ allow = ['loopback'], resolve, ...options }: ClientOptions = {}): DeliveryClient {
    const client = new DeliveryClient({
      policy: new AddressPolicy(allow),
      lookup: new DnsResolver({
        timeoutMs: 200,
        successCacheMs: 0,
        failureCacheMs: 0,
        maxConcurrentLookups: 2,
        resolve: resolve ?? (() => Promise.resolve([{ address: '127.0.0.1', family: 4 }])),
      }),
      maxInFlightPerHost: 1,
      connectTimeoutMs: 2_000,
      responseHeadersTimeoutMs: 4_000,
      maxResponseBytes: 64 * 1024,
      responseBodyReadMs: 2_000,
      userAgent: 'Klatch/test',
      ...options,
    });
    this.#opened.push(client);
    return client;
  }

  /** Stops a part that the test has opened, when the test ends. */
  opened(part: { stop(): Promise<void> }): void {
    this.#opened.push(part);
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((opened) => opened.stop()));
  }
}

/** A self-signed certificate for `hooks.test` and 127.0.0.1, made by openssl. */
export function selfSigned(): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'klatch-certificate-'));
  try {
    const key = join(folder, 'key.pem');
    const cert = join(folder, 'cert.pem');
    const subject = ['-subj', '/CN=hooks.test', '-addext', 'subjectAltName=DNS:hooks.test,IP:127.0.0.1'];
    const keyType = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    execFileSync('openssl', ['req', '-x509', ...keyType, '-keyout', key, '-out', cert, '-days', '2', ...subject], {
      stdio: 'ignore',
    });
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
