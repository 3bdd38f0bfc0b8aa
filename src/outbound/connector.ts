import { constants } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import type { AddressPolicy } from './address-policy.ts';
import { failureCategoryOf, codeOrNameOf, ConnectFailure } from './failure.ts';
import type { DnsResolver } from './dns-resolver.ts';

/**
 * The target of a connection, as parts of a normalised URL. An IPv6 address has no brackets; the port is empty for the
 * default port.
 */
export interface OriginParts {
  readonly protocol: string;
  readonly hostname: string;
  readonly port: string;
}

interface ConnectorOptions {
  readonly policy: AddressPolicy;
  readonly lookup: DnsResolver;
  /**
   * The time-out for TCP and TLS, over all addresses of a name together. The look-up of the name has a time-out of its
   * own.
   */
  readonly connectTimeoutMs: number;
  /** The PEM certificate of an authority that is trusted in addition to those of the system and of Node.js. */
  readonly ca?: string;
}

/** The most addresses of a name that are tried. */
const MAX_TRIED_ADDRESSES = 8;
const TCP_KEEP_ALIVE_MS = 60_000;

/**
 * Opens TCP and TLS connections to allowed addresses only.
 *
 * Looks the name up, checks every address by the policy, and connects to an address that passed. So the name is not
 * resolved a second time after the check (DNS rebinding). undici's own connector is not sufficient: for an IP address
 * in the URL it calls no `lookup` function.
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
   * Opens a connected socket; for https, also the certificate is verified. The socket has an error listener, so that an
   * error before the caller attaches its own does not end the process.
   * @throws ConnectFailure for every failure, with the category to report.
   */
  async open(target: OriginParts): Promise<Socket> {
    const addresses = await this.#allowedAddresses(target.hostname);
    const deadline = performance.now() + this.#options.connectTimeoutMs;
    let failure: ConnectFailure | null = null;
    for (const [index, address] of addresses.entries()) {
      const remainingMs = deadline - performance.now();
      if (this.#stopped || remainingMs <= 0) break;
      // Each address gets an equal share of the remaining time, so that an address that does not answer leaves time for
      // the others.
      const outcome = await this.#openOne(target, address, remainingMs / (addresses.length - index));
      if (!(outcome instanceof ConnectFailure)) return outcome;
      failure = moreSpecific(failure, outcome);
      if (outcome.category === 'tls') break;
    }
    throw failure ?? new ConnectFailure(this.#stopped ? 'connection' : 'timeout', 'not connected');
  }

  /** Aborts the connections that are being opened; later calls of `open` fail. Idempotent. */
  stop(): void {
    this.#stopped = true;
    for (const socket of this.#openingSockets) socket.destroy();
  }

  async #allowedAddresses(host: string): Promise<readonly string[]> {
    const [addresses] = await Promise.all([
      isIP(host) === 0 ? this.#resolve(host) : [host],
      this.#options.policy.refreshPublicHostsIfDue(),
    ]);
    let firstViolatedRule: string | null = null;
    const allowed = addresses.filter((address) => {
      const refusal = this.#options.policy.violatedRule(address, host);
      firstViolatedRule ??= refusal;
      return refusal === null;
    });
    if (allowed.length === 0) throw new ConnectFailure('address policy', `${firstViolatedRule} address`);
    return allowed.slice(0, MAX_TRIED_ADDRESSES);
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
      let isTlsHandshaking = false;
      const settle = (outcome: Socket | ConnectFailure): void => {
        // The socket is open already: undici handles its errors and its end.
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
        .on('error', (error: Error) => settle(toConnectFailure(error, address, isTlsHandshaking)))
        .once('close', () => settle(new ConnectFailure('connection', `closed while connecting to ${address}`)))
        .once('connect', () => {
          isTlsHandshaking = isSecure;
        })
        .once(isSecure ? 'secureConnect' : 'connect', () => settle(socket));
    });
  }

  #startTls(target: OriginParts, address: string): Socket {
    // All connections share one context, since its creation with `ca` blocks the event loop for 14 ms (measured).
    // Renegotiation is off: a receiver with TLS 1.2 could force handshakes for the whole attempt. Only client
    // certificates need renegotiation, and this server has none.
    const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
    this.#secureContext ??= createSecureContext({ ...trustedAuthorities(this.#options.ca), secureOptions });
    // A TLS server name never ends in a dot, and is never an address (RFC 6066, 3). With an empty one, Node.js compares
    // the certificate with the address.
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

/**
 * Makes a ConnectFailure of a socket error. During the TLS handshake, every error but a network error is about the
 * certificate or TLS itself.
 */
function toConnectFailure(error: Error, address: string, isHandshaking: boolean): ConnectFailure {
  const detail = `${codeOrNameOf(error)} ${address}`;
  const isNetworkError = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(codeOrNameOf(error));
  return new ConnectFailure(isHandshaking && !isNetworkError ? 'tls' : failureCategoryOf(error), detail);
}

/**
 * Returns the failure that says more. On a machine without IPv6, each IPv6 address fails with "unreachable", which must
 * not hide the failure of an IPv4 address.
 */
function moreSpecific(first: ConnectFailure | null, second: ConnectFailure): ConnectFailure {
  return first === null || /^E(?:HOST|NET)UNREACH|^EADDRNOTAVAIL/.test(first.detail) ? second : first;
}
