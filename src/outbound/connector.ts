import { constants } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { AddressPolicy } from './address-policy.ts';
import { failureCategoryOf, codeOrNameOf, ConnectFailure } from './failure.ts';
import type { DnsResolver } from './dns-resolver.ts';

/**
 * The target of a connection: the parts of a normalised URL (IPv6 addresses without brackets; port empty for the
 * default).
 */
export interface OriginParts {
  readonly protocol: string;
  readonly hostname: string;
  readonly port: string;
}

/** The dependencies of {@link Connector}. */
interface ConnectorOptions {
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  /** Bound for TCP and TLS over all addresses of a name together; the look-up has its own bound. */
  readonly connectTimeoutMs: number;
  /** PEM of an authority trusted in addition to the system's and Node.js's. */
  readonly ca?: string;
}

/** Only the first addresses of a name are tried. */
const MAX_ADDRESSES = 8;
const TCP_KEEP_ALIVE_MS = 60_000;

/**
 * Opens TCP and TLS connections to allowed addresses only.
 *
 * It looks the name up, filters every address by the policy and connects to the literal address that passed. So nothing
 * can resolve the name a second time in between (rebinding). undici's own connector is not sufficient: it gives IP
 * literals directly to the kernel without calling any `lookup` function.
 */
export class Connector {
  readonly #options: ConnectorOptions;
  readonly #openingSockets = new Set<Socket>();
  #secureContext: SecureContext | undefined;
  #stopped = false;

  constructor(options: ConnectorOptions) {
    this.#options = options;
  }

  /**
   * Opens a connected (for https: verified) socket. It has an error listener, so that a failure before the caller
   * attaches its own is not fatal.
   * @throws ConnectFailure for every failure, with the category to report.
   */
  async open(target: OriginParts): Promise<Socket> {
    const addresses = await this.#allowedAddresses(target.hostname);
    const deadline = performance.now() + this.#options.connectTimeoutMs;
    let failure: ConnectFailure | null = null;
    for (const [index, address] of addresses.entries()) {
      const remainingMs = deadline - performance.now();
      if (this.#stopped || remainingMs <= 0) break;
      // An equal share of the remaining time, so that one blackholed address leaves time for the others.
      const outcome = await this.#openOne(target, address, remainingMs / (addresses.length - index));
      if (!(outcome instanceof ConnectFailure)) return outcome;
      failure = moreSpecific(failure, outcome);
      if (outcome.category === 'tls') break;
    }
    throw failure ?? new ConnectFailure(this.#stopped ? 'connection' : 'timeout', 'not connected');
  }

  /** Aborts connections that are being opened. Idempotent; later calls of `open` fail. */
  stop(): void {
    this.#stopped = true;
    for (const socket of this.#openingSockets) socket.destroy();
  }

  async #allowedAddresses(host: string): Promise<readonly string[]> {
    const [addresses] = await Promise.all([
      isIP(host) === 0 ? this.#resolve(host) : [host],
      this.#options.policy.refreshPublicHostsIfDue(),
    ]);
    let rule: string | null = null;
    const allowed = addresses.filter((address) => {
      const refusal = this.#options.policy.violatedRule(address, host);
      rule ??= refusal;
      return refusal === null;
    });
    if (allowed.length === 0) throw new ConnectFailure('address policy', `${rule} address`);
    return allowed.slice(0, MAX_ADDRESSES);
  }

  async #resolve(host: string): Promise<readonly string[]> {
    try {
      return (await this.#options.lookup.lookup(host)).map(({ address }) => address);
    } catch (error) {
      throw new ConnectFailure('dns', `look-up: ${codeOrNameOf(error as Error)}`);
    }
  }

  #openOne(target: OriginParts, address: string, timeoutMs: number): Promise<Socket | ConnectFailure> {
    return new Promise((resolve) => {
      const isSecure = target.protocol === 'https:';
      const socket = isSecure ? this.#startTls(target, address) : connectTcp(endpointOf(target, address));
      let isHandshaking = false;
      const settle = (outcome: Socket | ConnectFailure): void => {
        // undici handles the errors and the close of an opened socket.
        if (!this.#openingSockets.delete(socket)) return;
        clearTimeout(timer);
        if (outcome instanceof ConnectFailure) socket.destroy();
        resolve(outcome);
      };
      const timer = setTimeout(() => settle(new ConnectFailure('timeout', `connect to ${address}`)), timeoutMs);
      this.#openingSockets.add(socket);
      socket
        .setNoDelay(true)
        .setKeepAlive(true, TCP_KEEP_ALIVE_MS)
        // This listener stays for the life of the socket: an error may come before undici has attached its listeners.
        .on('error', (error: Error) => settle(toConnectFailure(error, address, isHandshaking)))
        .once('close', () => settle(new ConnectFailure('connection', `closed while connecting to ${address}`)))
        .once('connect', () => {
          isHandshaking = isSecure;
        })
        .once(isSecure ? 'secureConnect' : 'connect', () => settle(socket));
    });
  }

  #startTls(target: OriginParts, address: string): Socket {
    // All connections share one context: with `ca` creating one blocks the event loop for 14 ms (measured).
    // Renegotiation is off: a receiver with TLS 1.2 could force handshakes for the whole attempt. Only client
    // certificates need renegotiation, and we have none.
    const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
    this.#secureContext ??= createSecureContext({ ...trustedAuthorities(this.#options.ca), secureOptions });
    // Server names never end in a dot (RFC 6066, 3), and addresses are not sent: Node.js then checks the host's
    // address.
    const servername = isIP(target.hostname) === 0 ? target.hostname.replace(/\.$/, '') : '';
    return connectTls({
      ...endpointOf(target, address),
      servername,
      secureContext: this.#secureContext,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
    });
  }
}

function endpointOf(target: OriginParts, address: string): { host: string; port: number } {
  const defaultPort = target.protocol === 'https:' ? 443 : 80;
  return { host: address, port: target.port === '' ? defaultPort : Number(target.port) };
}

function trustedAuthorities(ca: string | undefined): { ca: string[] } | undefined {
  return ca === undefined ? undefined : { ca: [...getCACertificates('default'), ca] };
}

/** During the TLS handshake, every error except a network error is the certificate's or the protocol's. */
function toConnectFailure(error: Error, address: string, isHandshaking: boolean): ConnectFailure {
  const detail = `${codeOrNameOf(error)} ${address}`;
  const isNetworkError = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(codeOrNameOf(error));
  return new ConnectFailure(isHandshaking && !isNetworkError ? 'tls' : failureCategoryOf(error), detail);
}

/**
 * A machine without IPv6 always adds an "unreachable" when several addresses are tried, which would hide the real
 * reason.
 */
function moreSpecific(first: ConnectFailure | null, second: ConnectFailure): ConnectFailure {
  return first === null || /^E(?:HOST|NET)UNREACH|^EADDRNOTAVAIL/.test(first.detail) ? second : first;
}
