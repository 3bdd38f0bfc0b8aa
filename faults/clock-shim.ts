// A server loads this file before its own modules (`node --import`). Its wall clock and its look-ups of names then
// follow the commands of its parent process. The monotonic clock does not change, as when somebody sets the clock of a
// machine.
import dnsPromises from 'node:dns/promises';
import { syncBuiltinESMExports } from 'node:module';

/** A command of the parent process; missing fields change nothing. */
export interface ShimCommand {
  /** The server adds this to the wall clock, in ms. */
  readonly clockOffsetMs?: number;
  /** Addresses by host name; other names use the real look-up. */
  readonly addresses?: Readonly<Record<string, readonly string[]>>;
}

let clockOffsetMs = 0;
let addresses: Readonly<Record<string, readonly string[]>> = {};

const RealDate = Date;
const now = (): number => RealDate.now() + clockOffsetMs;
// The new Date is a proxy and not a subclass, so that the dates that it makes pass every check for a Date.
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: unknown[], newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : (Reflect.get(target, name) as unknown)),
});

const realLookup = dnsPromises.lookup.bind(dnsPromises) as (host: string, options: object) => Promise<unknown>;
const lookup = async (host: string, options: object): Promise<unknown> => {
  const known = addresses[host];
  if (known === undefined) return realLookup(host, options);
  return known.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
};
Object.assign(dnsPromises, { lookup });
syncBuiltinESMExports();

process.on('message', (word: ShimCommand) => {
  clockOffsetMs = word.clockOffsetMs ?? clockOffsetMs;
  addresses = word.addresses ?? addresses;
  process.send!('heard');
});
// The IPC channel to the parent must not keep a stopped server alive.
process.channel?.unref();
