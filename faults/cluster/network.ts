import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { promisify } from 'node:util';
import type { CleanUp } from '../clean-up.ts';
import type { Lack } from '../fault.ts';
import { Machine } from './machine.ts';

const run = promisify(execFile);

/** A MAC address that no machine has: frames to it are lost silently, as after a cable was unplugged. */
const UNUSED_MAC_ADDRESS = '02:00:00:00:00:99';
/** The last number of the bridge's address, in the namespace of the run itself. Machines get higher numbers. */
const OWN_HOST_NUMBER = 1;

/** Machines that are network namespaces of this kernel. A bridge connects them with the run's own namespace. */
export class Network {
  /** The first three numbers of all addresses, with a dot at the end. */
  readonly prefix: string;
  readonly #id: string;

  private constructor() {
    // 198.18.0.0/15 is reserved for network tests. The third number is random, since another run may have a network
    // too.
    const number = randomInt(1, 255);
    this.prefix = `198.18.${number}.`;
    this.#id = `kl${number}`;
  }

  static async create(cleanUp: CleanUp): Promise<Network> {
    const network = new Network();
    const bridge = network.#bridge;
    await ip('link', 'add', bridge, 'type', 'bridge', 'forward_delay', '0');
    await cleanUp.add('bridge', () => ip('link', 'del', bridge));
    await ip('addr', 'add', `${network.prefix}${OWN_HOST_NUMBER}/24`, 'dev', bridge);
    await ip('link', 'set', bridge, 'up');
    return network;
  }

  async addMachine(name: string, hostNumber: number, cleanUp: CleanUp): Promise<Machine> {
    const namespace = `${this.#id}-${name}`;
    await ip('netns', 'add', namespace);
    // The deletion of the namespace removes the veth pair as well.
    await cleanUp.add(`machine ${name}`, () => ip('netns', 'del', namespace));
    await ip('link', 'add', namespace, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace);
    await ip('link', 'set', namespace, 'master', this.#bridge, 'up');
    const address = `${this.prefix}${hostNumber}`;
    const machine = new Machine({ name, namespace, address });
    await machine.ip('addr', 'add', `${address}/24`, 'dev', 'eth0');
    for (const device of ['lo', 'eth0']) await machine.ip('link', 'set', device, 'up');
    await cleanUp.add(`programs of ${name}`, () => machine.killAll(() => true));
    return machine;
  }

  get #bridge(): string {
    return `${this.#id}-bridge`;
  }
}

/** Drops the packets between two machines silently from now on, in both directions. */
export async function dropPackets(one: Machine, other: Machine): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    await from.ip('neigh', 'replace', to.address, 'lladdr', UNUSED_MAC_ADDRESS, 'dev', 'eth0', 'nud', 'permanent');
  }
}

export async function restorePackets(one: Machine, other: Machine): Promise<void> {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    await from.ip('neigh', 'del', to.address, 'dev', 'eth0');
  }
}

/** Does the same as `dropPackets`, but only for packets to and from one TCP port of a server. */
export async function dropPortPackets(server: Machine, client: Machine, port: number): Promise<void> {
  await server.ip('rule', 'add', ...portRule('sport', client, port));
  await client.ip('rule', 'add', ...portRule('dport', server, port));
}

export async function restorePortPackets(server: Machine, client: Machine, port: number): Promise<void> {
  await server.ip('rule', 'del', ...portRule('sport', client, port));
  await client.ip('rule', 'del', ...portRule('dport', server, port));
}

function portRule(kind: 'sport' | 'dport', to: Machine, port: number): string[] {
  return ['to', to.address, 'ipproto', 'tcp', kind, String(port), 'blackhole'];
}

/** Checks whether a network namespace can be created here. It tries, since root may lack the right in a container. */
export async function lacksNetwork(): Promise<Lack> {
  if (process.getuid?.() !== 0) return 'network namespaces need root: run it as root';
  const name = `kl-${process.pid}`;
  try {
    await ip('netns', 'add', name);
    try {
      await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
    } finally {
      await ip('netns', 'del', name);
    }
    return null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'ip is not installed: apt-get install iproute2';
    return 'network namespaces cannot be made here, though this is root: allow CAP_SYS_ADMIN and CAP_NET_ADMIN';
  }
}

async function ip(...args: string[]): Promise<void> {
  await run('ip', args);
}
