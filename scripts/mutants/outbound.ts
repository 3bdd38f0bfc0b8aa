import type { Mutant } from './mutant.ts';

const TESTS = 'test/outbound/own-addresses';

export const OUTBOUND_MUTANTS: readonly Mutant[] = [
  {
    name: 'policy-ignores-machine',
    promise: 'A delivery never connects to a public address of one of the machine’s interfaces.',
    file: 'src/outbound/address-policy.ts',
    find: 'return this.#machine.refusingRuleOf(address) ?? this.#ownPublicHosts?.refusingRuleOf(address) ?? null;',
    replace: 'return this.#ownPublicHosts?.refusingRuleOf(address) ?? null;',
    tests: [TESTS, '-t', 'this machine'],
  },
  {
    name: 'machine-network-read-once',
    promise: 'The policy sees an interface address that the machine got after the server started.',
    file: 'src/outbound/machine-network.ts',
    find: 'if (this.#now() - this.#lastReadAtMs < REFRESH_MS) return;',
    replace: 'if (this.#lastReadAtMs > 0 || this.#linkPrefixes.length + this.#ownAddresses.size > 0) return;',
    tests: [TESTS, '-t', '10 s old'],
  },
  {
    name: 'on-link-routes-ignored',
    promise: 'An IPv6 network that a router announces as on-link is refused.',
    file: 'src/outbound/machine-network.ts',
    find: ', ...linkPrefixesIn(routes)]',
    replace: ']',
    tests: [TESTS, '-t', 'refuses 2a01:4f8:10:30::1'],
  },
  {
    name: 'first-connection-does-not-wait',
    promise: 'No connection is opened before the addresses of http.base-uri are known.',
    file: 'src/outbound/connector.ts',
    find: 'this.#options.policy.refreshPublicHostsIfDue(),',
    replace: 'void this.#options.policy.refreshPublicHostsIfDue(),',
    tests: [TESTS, '-t', 'the first connection waits'],
  },
  {
    name: 'failed-look-up-forgets',
    promise: 'The addresses of http.base-uri stay refused while its name server is away.',
    file: 'src/outbound/public-hosts.ts',
    find: 'if (!this.#failingHosts.has(host)) this.#options.onFirstFailure?.(host, error as Error);',
    replace: 'this.#addressesByHost.delete(host);',
    tests: [TESTS, '-t', 'keeps the addresses'],
  },
];
